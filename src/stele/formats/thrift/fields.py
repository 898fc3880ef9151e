"""All fields of a schema by dotted path, for search, pages and lint."""

from __future__ import annotations

import json
from typing import Final

from stele.core.ports import Field
from stele.formats.thrift.constants import to_json_value
from stele.formats.thrift.printer import format_type
from stele.formats.thrift.schema import ResolvedType, ThriftSchema
from stele.formats.thrift.syntax import ContainerType, ThriftStruct

MAX_FIELDS: Final = 10_000
"""The list ends here: a struct used twice at each of n levels has 2**n fields."""

MAX_DEPTH: Final = 32
"""Structs inside structs that are listed."""

MAX_DEFAULT: Final = 1_000
"""Characters of a default that are listed; a longer one is cut and ends in an ellipsis, so it is no JSON any more."""


def list_fields(schema: ThriftSchema) -> list[Field]:
    """Return fields depth first; `[]` enters a list or set, `{}` the values of a map, `{}.key` its keys.

    Paths start in the struct that `type_name` names. Structs that no listed one uses follow in the order of the
    document, their paths beginning with their name. A struct inside itself is named, not entered again.
    """
    lister = _FieldLister()
    root = schema.type_name
    if root:
        lister.list_struct(ResolvedType(schema.unit, schema.find_struct(root)), "")
    for struct in schema.unit.structs:
        if id(struct) not in lister.seen:
            lister.list_struct(ResolvedType(schema.unit, struct), f"{struct.name}.")
    return lister.found


class _FieldLister:
    def __init__(self) -> None:
        self.found: list[Field] = []
        self.seen: set[int] = set()
        self._open: list[ThriftStruct] = []
        self._defaults: dict[int, str] = {}

    def list_struct(self, kind: ResolvedType, prefix: str) -> None:
        """List the fields of a struct and what is below them, their paths after prefix."""
        struct = kind.node
        if (
            not isinstance(struct, ThriftStruct)
            or len(self._open) >= MAX_DEPTH
            or any(struct is each for each in self._open)
        ):
            return
        self.seen.add(id(struct))
        self._open.append(struct)
        for field in struct.fields:
            if len(self.found) >= MAX_FIELDS:
                break
            default = None
            if field.default is not None:
                default = self._defaults.get(id(field))
                if default is None:
                    text = json.dumps(to_json_value(kind.unit, field.default), ensure_ascii=False)
                    default = text if len(text) <= MAX_DEFAULT else f"{text[: MAX_DEFAULT - 1]}…"
                    self._defaults[id(field)] = default
            self.found.append(Field(prefix + field.name, format_type(field.type), default, field.doc))
            self._list_type(kind.unit.resolve_type(field.type), prefix + field.name)
        self._open.pop()

    def _list_type(self, kind: ResolvedType, path: str) -> None:
        if isinstance(kind.node, ContainerType):
            if kind.kind == "map":
                self._list_type(kind.inner_type(0), f"{path}{{}}.key")
            self._list_type(kind.inner_type(-1), path + ("{}" if kind.kind == "map" else "[]"))
        elif isinstance(kind.node, ThriftStruct):
            self.list_struct(kind, f"{path}.")
