"""Encodes, decodes and validates single structs in the binary protocol: payload only, no message envelope.

| Thrift | Python |
|---|---|
| bool, i8 to i64, double, string, binary | bool, int, float, str, bytes |
| uuid | str; `uuid.UUID` is taken too |
| enum | the name of the value; an int where the schema has no name for the number |
| list, set | list; a set may also be given as a Python set |
| map | dict; a list of (key, value) where keys are structs or containers |
| struct, exception | dict of the fields that are set; a field that is not set is left out, or its default |
| union | dict of one field |
"""

from __future__ import annotations

from typing import Any

from stele.errors import EncodeError
from stele.formats.thrift.decode import decode_struct
from stele.formats.thrift.encode import ThriftWriter
from stele.formats.thrift.example import make_example
from stele.formats.thrift.layout import LayoutCache
from stele.formats.thrift.schema import ResolvedType, ThriftSchema
from stele.formats.thrift.syntax import ThriftStruct


class ThriftCodec:
    """A codec for data of one struct of writer, read with reader's when given. Safe to share between threads.

    name selects the struct; '' is the one that `type_name` names. The reader's struct is the one of the same name, or
    the reader's own `type_name` when it has none. Fields the reader does not know are passed over; values of another
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

        Raises `EncodeError` with the path of what is wrong.
        """
        writer = self._encode_struct(datum)
        if writer.problems:
            raise EncodeError("; ".join(writer.problems))
        return bytes(writer.out)

    def decode(self, data: bytes) -> Any:
        """Return one datum.

        Raises `DecodeError` with path and offset, also for left-overs and missing required fields.
        """
        return decode_struct(bytes(data), self._reader, self._layouts)

    def validate(self, datum: Any) -> list[str]:
        """Return why the datum does not fit, a sentence with its path each (100 at most)."""
        return self._encode_struct(datum).problems

    def example(self) -> Any:
        """Return a small datum that fits. Raises `Invalid` when there is no finite one."""
        return make_example(self._writer, self._layouts)

    def _encode_struct(self, datum: Any) -> ThriftWriter:
        writer = ThriftWriter(self._layouts)
        writer.write_struct(self._writer, datum)
        return writer
