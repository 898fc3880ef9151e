"""A small datum that fits a struct, the same one each time."""

from __future__ import annotations

from typing import Any, Final

from stele.errors import Invalid
from stele.formats.thrift.constants import make_map
from stele.formats.thrift.layout import FieldLayout, LayoutCache, StructLayout
from stele.formats.thrift.schema import ResolvedType
from stele.formats.thrift.syntax import ThriftEnum

MAX_VALUES: Final = 10_000
"""Values in one example; a struct used twice at each of n levels has 2**n."""

MAX_DEPTH: Final = 3
"""Structs inside structs; below, only what is required is set."""

_DEEPEST: Final = 32
"""Levels of any kind; below, containers are empty."""

_PLAIN: Final[dict[str, Any]] = {
    "bool": True,
    "i8": 1,
    "i16": 1,
    "i32": 1,
    "i64": 1,
    "double": 1.5,
    "string": "text",
    "binary": b"bytes",
    "uuid": "123e4567-e89b-42d3-a456-426614174000",
}


def make_example(kind: ResolvedType, layouts: LayoutCache) -> Any:
    """Return a datum with every field set, as far as it stays small.

    Raises `Invalid` when every datum would be endless.
    """
    return _ExampleMaker(layouts).make_datum(kind)


class _ExampleMaker:
    def __init__(self, layouts: LayoutCache) -> None:
        self._layouts = layouts
        self._open: list[StructLayout] = []
        self._levels = 0
        self._made = 0

    def make_datum(self, kind: ResolvedType) -> Any:
        """Return a datum of a type. Raises `Invalid` where it leads back into a struct that is being made."""
        self._made += 1
        if self._made > MAX_VALUES:
            raise Invalid(f"an example of this schema would have more than {MAX_VALUES} values")
        if kind.kind in _PLAIN:
            return _PLAIN[kind.kind]
        if isinstance(kind.node, ThriftEnum):
            return kind.node.values[0].name if kind.node.values else 0
        self._levels += 1
        try:
            return (
                self._make_struct(self._layouts.struct_layout(kind))
                if kind.kind == "struct"
                else self._make_container(kind)
            )
        finally:
            self._levels -= 1

    def _make_container(self, kind: ResolvedType) -> Any:
        """Return one item, or none where that would lead on and on."""
        filled: list[Any] = []
        if self._levels < _DEEPEST:
            try:
                filled = [self.make_datum(kind.inner_type(at)) for at in range(2 if kind.kind == "map" else 1)]
            except Invalid:
                filled = []
        return make_map(kind, [(filled[0], filled[1])] if filled else []) if kind.kind == "map" else filled

    def _make_struct(self, layout: StructLayout) -> dict[str, Any]:
        if layout in self._open or self._levels > _DEEPEST:
            raise Invalid(f"every datum of {layout.name} would contain another one without end, or go very deep")
        self._open.append(layout)
        try:
            if layout.kind == "union":
                return self._make_union(layout)
            made = ((slot, self._make_field(slot)) for slot in layout.slots)
            return {slot.name: value for slot, value in made if value is not None}
        finally:
            self._open.pop()

    def _make_union(self, layout: StructLayout) -> dict[str, Any]:
        refused = Invalid(f"the union {layout.name} has no members")
        for slot in layout.slots:
            if not slot.fits:
                continue
            try:
                return {slot.name: self.make_datum(slot.kind)}
            except Invalid as error:
                refused = error
        raise refused

    def _make_field(self, slot: FieldLayout) -> Any:
        """Return a value; None leaves the field out."""
        if not slot.fits:
            if slot.required:
                raise Invalid(f"no datum can hold the id {slot.id} of the required field {slot.name!r}")
            return None
        if slot.has_default:
            return slot.make_default()
        if slot.required:
            return self.make_datum(slot.kind)
        if len(self._open) > MAX_DEPTH and slot.kind.kind == "struct":
            return None
        try:
            return self.make_datum(slot.kind)
        except Invalid:
            return None
