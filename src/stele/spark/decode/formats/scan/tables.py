"""A message type as the tables of the scan: nodes for messages, slots for fields, scopes for what they count in."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from google.protobuf.descriptor import FieldDescriptor as F

from stele.formats.protobuf.model import DURATION, TIMESTAMP, WRAPPERS, enum_of, is_map, map_parts, message_of
from stele.spark.decode.formats.plans import ColumnPlan, ListPlan, MapPlan, ScalarPlan, Struct
from stele.spark.decode.formats.scan.kernel import BYTES, FIXED32, FIXED64, MESSAGE, TEXT, VARINT, ZIGZAG

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FieldDescriptor

HIGHEST: Final = 4096
"""Field numbers up to here have a place in the look-up; a message with others is left to the parser."""

_KINDS: Final = {
    **dict.fromkeys((F.TYPE_INT32, F.TYPE_INT64, F.TYPE_UINT32, F.TYPE_UINT64, F.TYPE_BOOL, F.TYPE_ENUM), VARINT),
    **dict.fromkeys((F.TYPE_SINT32, F.TYPE_SINT64), ZIGZAG),
    **dict.fromkeys((F.TYPE_FIXED32, F.TYPE_SFIXED32, F.TYPE_FLOAT), FIXED32),
    **dict.fromkeys((F.TYPE_FIXED64, F.TYPE_SFIXED64, F.TYPE_DOUBLE), FIXED64),
    F.TYPE_BYTES: BYTES,
    F.TYPE_STRING: TEXT,
    F.TYPE_MESSAGE: MESSAGE,
}


class ScanUnsupported(Exception):
    """The message has something that is left to the parser."""


@dataclass(slots=True)
class Slot:
    """A field at one place of the message; place is its number in the tables.

    scope   what its values are counted by: 0 the records, others the items of a repeated field
    owner   the scope the field stands in; the same as scope unless it is repeated
    plan    of one value
    names   of an enum's values by number
    """

    place: int
    number: int
    type: int
    kind: int
    scope: int
    owner: int
    plan: ColumnPlan
    optional: bool
    repeated: bool = False
    oneof: int = -1
    inner: list[Slot] = field(default_factory=list)
    node: int = -1
    names: dict[int, str] = field(default_factory=dict)


class Layout:
    """All slots of a message, and the tables. Raises `ScanUnsupported`."""

    def __init__(self, message: Descriptor, plan: Struct) -> None:
        self.slots: list[Slot] = []
        self.scopes = 1
        self.oneofs: list[int] = []
        self._nodes: list[dict[int, int]] = []
        self._entries: set[int] = set()
        self.root = self._add_message(message, plan, 0)[1]
        self.tables = self._build_tables()

    def _add_message(self, message: Descriptor, plan: Struct, scope: int) -> tuple[int, list[Slot]]:
        if plan.deeper:
            raise ScanUnsupported
        groups = {}
        for each in message.oneofs:
            groups[each.name] = len(self.oneofs)
            self.oneofs.append(scope)
        node, known = self._add_node()
        made = []
        for described, part in zip(message.fields, plan.parts, strict=True):
            slot = self._add_field(described, part.plan, scope, known)
            oneof = described.containing_oneof
            slot.oneof = -1 if oneof is None else groups[oneof.name]
            made.append(slot)
        return node, made

    def _add_node(self) -> tuple[int, dict[int, int]]:
        self._nodes.append({})
        return len(self._nodes) - 1, self._nodes[-1]

    def _add_field(self, described: FieldDescriptor, plan: ColumnPlan, scope: int, known: dict[int, int]) -> Slot:
        repeated = described.is_repeated
        owner = scope
        if repeated:
            scope, self.scopes = self.scopes, self.scopes + 1
        one: Any = plan.item if isinstance(plan, ListPlan) else plan
        slot = self._add_slot(described, one, scope, owner, known)
        slot.repeated = repeated
        if is_map(described):
            assert isinstance(plan, MapPlan)
            slot.node, inside = self._add_node()
            self._entries.add(slot.node)
            parts = zip(map_parts(described), (plan.key, plan.item), strict=True)
            slot.inner = [self._add_field(part, each, scope, inside) for part, each in parts]
            for each in slot.inner:
                each.optional = False  # an entry without key or value has the default
        return slot

    def _add_slot(
        self, described: FieldDescriptor, plan: ColumnPlan, scope: int, owner: int, known: dict[int, int]
    ) -> Slot:
        kind = _KINDS.get(described.type)
        if kind is None or described.number > HIGHEST or described.is_required:
            raise ScanUnsupported
        optional = described.has_presence and not described.is_repeated
        slot = Slot(len(self.slots), described.number, described.type, kind, scope, owner, plan, optional)
        known[described.number] = len(self.slots)
        self.slots.append(slot)
        if described.type == F.TYPE_ENUM:
            enum = enum_of(described)
            if enum.is_closed:
                raise ScanUnsupported
            slot.names = {number: value.name for number, value in enum.values_by_number.items()}
        elif kind == MESSAGE and not is_map(described):
            self._is_inside(message_of(described), slot)
        return slot

    def _is_inside(self, message: Descriptor, slot: Slot) -> None:
        if isinstance(slot.plan, Struct):
            slot.node, slot.inner = self._add_message(message, slot.plan, slot.scope)
        elif message.full_name in WRAPPERS or message.full_name in (TIMESTAMP, DURATION):
            assert isinstance(slot.plan, ScalarPlan)
            slot.node, inside = self._add_node()
            slot.inner = [self._add_slot(each, slot.plan, slot.scope, slot.scope, inside) for each in message.fields]
        else:
            raise ScanUnsupported

    def _build_tables(self) -> tuple[Any, ...]:
        first: list[int] = []
        highest: list[int] = []
        look: list[int] = []
        for known in self._nodes:
            first.append(len(look))
            highest.append(max(known, default=0))
            look += [known.get(number, -1) for number in range(highest[-1] + 1)]

        def column(values: list[int]) -> Any:
            return np.array(values or [0], np.int64)

        slots = self.slots
        return (
            column(first),
            column(highest),
            column([int(node in self._entries) for node in range(len(self._nodes))]),
            column(look),
            column([slot.kind for slot in slots]),
            column([int(slot.repeated) for slot in slots]),
            column([slot.node for slot in slots]),
            column([slot.scope for slot in slots]),
            column([slot.oneof for slot in slots]),
            column([int(slot.kind == MESSAGE and not slot.repeated) for slot in slots]),
        )
