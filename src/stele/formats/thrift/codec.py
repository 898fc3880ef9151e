"""Encodes, decodes and validates single structs in the binary protocol: payload only, no message envelope.

| Thrift | Python |
|---|---|
| bool, i8 to i64, double, string, binary | bool, int, float, str, bytes |
| uuid | str; `uuid.UUID` is accepted too |
| enum | the name of the value; an int where the schema has no name for the number |
| list, set | list; a set may also be given as a Python set |
| map | dict; a list of (key, value) where keys are structs or containers |
| struct, exception | dict of the fields that are set; an unset field is left out, or has its default |
| union | dict of one field |
"""

from __future__ import annotations

from typing import Any, Final

from stele.errors import EncodeError, Invalid
from stele.formats.thrift.binary_protocol import FieldLayout, LayoutCache, StructLayout, ThriftWriter, decode_struct
from stele.formats.thrift.constants import make_map
from stele.formats.thrift.schema import ResolvedType, ThriftEnum, ThriftSchema, ThriftStruct


class ThriftCodec:
    """A codec for data of one struct of writer, read with reader's when given. Safe to share between threads.

    name selects the struct; '' is the one that `type_name` names. The reader's struct is the one of the same name, or
    the reader's own `type_name` when it has none. Fields the reader does not know are skipped; values of another
    type than the reader's are refused. Raises `InvalidRequest` when there is no such struct.
    """

    def __init__(self, writer: ThriftSchema, reader: ThriftSchema | None = None, name: str = "") -> None:
        struct = writer.find_struct(name)
        reader = reader or writer
        known = isinstance(reader.unit.types.get(struct.name), ThriftStruct)
        self._writer = ResolvedType(writer.unit, struct)
        self._reader = ResolvedType(reader.unit, reader.find_struct(struct.name if known else ""))
        self._layouts = LayoutCache()

    def encode(self, datum: Any) -> bytes:
        """Return the bytes of one datum, fields in the order of their ids.

        Raises `EncodeError` with the path of each problem.
        """
        writer = self._encode_struct(datum)
        if writer.problems:
            raise EncodeError("; ".join(writer.problems))
        return bytes(writer.out)

    def decode(self, data: bytes) -> Any:
        """Return one datum.

        Raises `DecodeError` with path and offset, also for trailing bytes and missing required fields.
        """
        return decode_struct(bytes(data), self._reader, self._layouts)

    def validate(self, datum: Any) -> list[str]:
        """Return why the datum does not fit, a sentence with its path each (100 at most)."""
        return self._encode_struct(datum).problems

    def example(self) -> Any:
        """Return a small valid datum. Raises `Invalid` when there is no finite one."""
        return make_example(self._writer, self._layouts)

    def _encode_struct(self, datum: Any) -> ThriftWriter:
        writer = ThriftWriter(self._layouts)
        writer.write_struct(self._writer, datum)
        return writer


# --- examples ---------------------------------------------------------------------------------------------------------
# A small datum that fits a struct, the same one each time.

MAX_VALUES: Final = 10_000
"""Most values in one example. A struct that is used twice at each of n levels has 2**n."""

MAX_DEPTH: Final = 3
"""Levels of nested structs with all fields set. Below them, only required fields are set."""

_DEEPEST: Final = 32
"""Levels of structs and containers. Below them, containers are empty."""

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

    Raises `Invalid` when every datum would be infinite.
    """
    return _ExampleMaker(layouts).make_datum(kind)


class _ExampleMaker:
    def __init__(self, layouts: LayoutCache) -> None:
        self._layouts = layouts
        self._open: list[StructLayout] = []
        self._levels = 0
        self._made = 0

    def make_datum(self, kind: ResolvedType) -> Any:
        """Return a datum of a type. Raises `Invalid` for a struct that would contain itself."""
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
        """Return a container with one item, or an empty one if an item would not end."""
        filled: list[Any] = []
        if self._levels < _DEEPEST:
            try:
                filled = [self.make_datum(kind.inner_type(at)) for at in range(2 if kind.kind == "map" else 1)]
            except Invalid:
                filled = []
        return make_map(kind, [(filled[0], filled[1])] if filled else []) if kind.kind == "map" else filled

    def _make_struct(self, layout: StructLayout) -> dict[str, Any]:
        if layout in self._open or self._levels > _DEEPEST:
            raise Invalid(f"every datum of {layout.name} would contain another one infinitely, or go very deep")
        self._open.append(layout)
        try:
            if layout.kind == "union":
                return self._make_union(layout)
            fields = ((slot, self._make_field(slot)) for slot in layout.slots)
            return {slot.name: value for slot, value in fields if value is not None}
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
