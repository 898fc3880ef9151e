"""A small datum that fits a schema, the same one each time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from stele.errors import Invalid
from stele.formats.avro.model import (
    AvroArray,
    AvroEnum,
    AvroFixed,
    AvroMap,
    AvroPrimitive,
    AvroRecord,
    AvroType,
    AvroUnion,
)
from stele.formats.avro.scalars import MAX_DIGITS

MAX_VALUES: Final = 10_000
"""Values in one example; a type used twice at each of n levels has 2**n."""

MAX_FIXED: Final = 1 << 20
"""Bytes of a fixed in an example."""

MAX_DEPTH: Final = 3
"""Records inside records; below, arrays, maps and unions stay empty."""

_MOMENT: Final = datetime(2024, 1, 31, 12, 30, tzinfo=UTC)
_PLAIN: Final[dict[str, Any]] = {
    "null": None,
    "boolean": True,
    "int": 1,
    "long": 1,
    "float": 1.5,
    "double": 1.5,
    "bytes": b"bytes",
    "string": "text",
}
_LOGICAL: Final[dict[str, Any]] = {
    "date": date(2024, 1, 31),
    "time-millis": time(12, 30),
    "time-micros": time(12, 30),
    "timestamp-millis": _MOMENT,
    "timestamp-micros": _MOMENT,
    "local-timestamp-millis": _MOMENT.replace(tzinfo=None),
    "local-timestamp-micros": _MOMENT.replace(tzinfo=None),
    "uuid": UUID("123e4567-e89b-42d3-a456-426614174000"),
}


def make_example(node: AvroType) -> Any:
    """Return a datum of a type: recursion ends at the first union, array or map that lets it.

    Raises `Invalid` when every datum would be infinite or has more than MAX_VALUES values.
    """
    return _ExampleMaker().make_datum(node)


class _ExampleMaker:
    def __init__(self) -> None:
        self.open: list[AvroRecord] = []
        self.made = 0

    def make_datum(self, node: AvroType) -> Any:
        """Return a datum. Raises `Invalid` where the type leads back into a record that is being made."""
        self.made += 1
        if self.made > MAX_VALUES:
            raise Invalid(f"an example of this schema would have more than {MAX_VALUES} values")
        match node:
            case AvroPrimitive() | AvroFixed():
                return _make_scalar(node)
            case AvroEnum():
                if not node.symbols:
                    raise Invalid(f"the enum {node.name} has no symbols, so no datum fits it")
                return node.symbols[0]
            case AvroArray():
                return self._wrap_item(node.items, list, lambda item: [item])
            case AvroMap():
                return self._wrap_item(node.values, dict, lambda item: {"key": item})
            case AvroUnion():
                return self._make_union(node)
            case AvroRecord():
                return self._make_record(node)

    def _wrap_item(self, node: AvroType, empty: Callable[[], Any], wrap: Callable[[Any], Any]) -> Any:
        """Return one item, or none where that would lead on and on."""
        if len(self.open) > MAX_DEPTH:
            return empty()
        try:
            return wrap(self.make_datum(node))
        except Invalid:
            return empty()

    def _make_union(self, node: AvroUnion) -> Any:
        """Return a datum of the first branch with content; deep down null, which ends the recursion."""
        deep = len(self.open) > MAX_DEPTH
        refused = Invalid("no datum fits an empty union")
        for branch in sorted(node.branches, key=lambda branch: (branch.kind == "null") != deep):
            try:
                return self.make_datum(branch)
            except Invalid as error:
                refused = error
        raise refused

    def _make_record(self, node: AvroRecord) -> dict[str, Any]:
        if node in self.open:
            raise Invalid(f"every datum of {node.name} would contain another one without end")
        self.open.append(node)
        try:
            return {field.name: self.make_datum(field.type) for field in node.fields}
        finally:
            self.open.pop()


def _make_scalar(node: AvroPrimitive | AvroFixed) -> Any:
    if isinstance(node, AvroFixed) and node.size > MAX_FIXED:
        raise Invalid(f"an example of {node.name} would have {node.size} bytes, more than {MAX_FIXED}")
    logical = node.logical
    if logical is not None and logical.name == "decimal":
        if logical.precision <= MAX_DIGITS:
            return Decimal(1).scaleb(-logical.scale)
        return bytes(node.size) if isinstance(node, AvroFixed) else b"\x01"
    if logical is not None and logical.name in _LOGICAL:
        return _LOGICAL[logical.name]
    return bytes(node.size) if isinstance(node, AvroFixed) else _PLAIN[node.kind]
