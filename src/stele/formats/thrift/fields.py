"""All fields of a schema by dotted path, for search, pages and lint."""

from __future__ import annotations

import json
from typing import Final

from stele.core.ports import Field
from stele.formats.thrift.printer import type_text
from stele.formats.thrift.schema import Resolved, ThriftSchema
from stele.formats.thrift.syntax import Container, Struct
from stele.formats.thrift.values import json_text

MAX_FIELDS: Final = 10_000
"""The list ends here: a struct used twice at each of n levels has 2**n fields."""

MAX_DEPTH: Final = 32
"""Structs inside structs that are listed."""

MAX_DEFAULT: Final = 1_000
"""Characters of a default that are listed; a longer one is cut and ends in an ellipsis, so it is no JSON any more."""


def fields(schema: ThriftSchema) -> list[Field]:
    """Fields depth first; `[]` enters a list or set, `{}` the values of a map, `{}.key` its keys.

    Paths start in the struct that `type_name` names. Structs that no listed one uses follow in the order of the
    document, their paths beginning with their name. A struct inside itself is named, not entered again.
    """
    lister = _Lister()
    root = schema.type_name
    if root:
        lister.struct(Resolved(schema.unit, schema.struct(root)), "")
    for struct in schema.unit.structs:
        if id(struct) not in lister.seen:
            lister.struct(Resolved(schema.unit, struct), f"{struct.name}.")
    return lister.found


class _Lister:
    def __init__(self) -> None:
        self.found: list[Field] = []
        self.seen: set[int] = set()
        self._open: list[Struct] = []
        self._defaults: dict[int, str] = {}

    def struct(self, kind: Resolved, prefix: str) -> None:
        """List the fields of a struct and what is below them, their paths after prefix."""
        struct = kind.node
        if not isinstance(struct, Struct) or len(self._open) >= MAX_DEPTH or any(struct is each for each in self._open):
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
                    text = json.dumps(json_text(kind.unit, field.default), ensure_ascii=False)
                    default = text if len(text) <= MAX_DEFAULT else f"{text[: MAX_DEFAULT - 1]}…"
                    self._defaults[id(field)] = default
            self.found.append(Field(prefix + field.name, type_text(field.type), default, field.doc))
            self._enter(kind.unit.resolve(field.type), prefix + field.name)
        self._open.pop()

    def _enter(self, kind: Resolved, path: str) -> None:
        if isinstance(kind.node, Container):
            if kind.kind == "map":
                self._enter(kind.inner(0), f"{path}{{}}.key")
            self._enter(kind.inner(-1), path + ("{}" if kind.kind == "map" else "[]"))
        elif isinstance(kind.node, Struct):
            self.struct(kind, f"{path}.")
