"""Names for Avro: legal, distinct, and as short as the namespace in force allows."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from stele.formats.conversion.unique_names import UniqueNames

RESERVED: Final = frozenset(
    [
        *("null", "boolean", "int", "long", "float", "double", "bytes", "string"),
        *("record", "error", "enum", "fixed", "array", "map", "union", "request", "error_union"),
    ]
)
"""Words that are no names of types."""

_DOTTED: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")
_WRONG: Final = re.compile(r"[^A-Za-z0-9_]")


class Names:
    """The Avro names of a model's types; legal names keep themselves, others make room for them."""

    def __init__(self, names: Iterable[str]) -> None:
        wanted = list(names)
        self._full = {name: name for name in wanted if self.legal(name) and name not in RESERVED}
        self._distinct = UniqueNames((*RESERVED, *self._full))
        self._made: dict[str, str] = {}
        for name in wanted:
            if name not in self._full:
                self._full[name] = self._distinct.claim_name(_bent(name), "_")

    @staticmethod
    def legal(name: str) -> bool:
        """Whether a dotted name is one to Avro."""
        return _DOTTED.fullmatch(name) is not None

    def full(self, name: str) -> str:
        """The full name of a type of the model."""
        return self._full.get(name, name)

    def made(self, name: str, space: str, *, fresh: bool = False) -> str:
        """The full name of a type the model does not have: the same one for the same name, unless fresh."""
        if fresh or name not in self._made:
            self._made[name] = self._distinct.claim_name(f"{space}.{_bent(name)}" if space else _bent(name), "_")
        return self._made[name]

    def heading(self, full: str, space: str) -> dict[str, str]:
        """The attributes that name a type where it is defined."""
        own, _, simple = full.rpartition(".")
        return {"name": simple} if own == space else {"name": simple, "namespace": own}

    def reference(self, full: str, space: str) -> str:
        """How a type defined before is named; a leading dot keeps a name without namespace from being looked up."""
        own, _, simple = full.rpartition(".")
        if own == space:
            return simple
        return full if own or f"{space}.{simple}" not in self._distinct.taken else f".{simple}"

    @staticmethod
    def symbols(names: Iterable[str]) -> dict[str, str]:
        """A legal, distinct name for each field or symbol."""
        wanted = list(dict.fromkeys(names))
        found = {name: name for name in wanted if _simple(name)}
        distinct = UniqueNames(found)
        for name in wanted:
            if name not in found:
                found[name] = distinct.claim_name(_bent_part(name), "_")
        return {name: found[name] for name in wanted}


def _simple(name: str) -> bool:
    return name.isascii() and name.isidentifier()


def _bent(name: str) -> str:
    return ".".join(_bent_part(part) for part in name.split("."))


def _bent_part(part: str) -> str:
    made = _WRONG.sub("_", part)
    return f"_{made}" if not made or made[0].isdigit() else made
