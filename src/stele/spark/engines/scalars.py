"""Numbers and promotions: which scalar reads as which, and how units of time convert."""

from __future__ import annotations

from math import gcd
from typing import Final

import pyarrow as pa

from stele.formats.avro.model import AvroFixed, AvroPrimitive, AvroType
from stele.spark.engines.steps import NumberCast, NumberEncoding, ReadNumber, Slot

WIRES: Final = {
    "int": NumberEncoding.INT,
    "long": NumberEncoding.LONG,
    "float": NumberEncoding.FLOAT,
    "double": NumberEncoding.DOUBLE,
    "boolean": NumberEncoding.BOOLEAN,
}
_PROMOTIONS: Final = {
    ("int", "long"),
    ("int", "float"),
    ("int", "double"),
    ("long", "float"),
    ("long", "double"),
    ("float", "double"),
    ("string", "bytes"),
    ("bytes", "string"),
}
_DAY: Final = 24 * 60 * 60
_PER_SECOND: Final = {"millis": 10**3, "micros": 10**6, "nanos": 10**9}
_PER_SECOND_ARROW: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def is_number(node: AvroType) -> bool:
    """Whether the node is encoded as one of Avro's numbers (booleans among them)."""
    return node.kind in WIRES


def can_promote(writer: AvroPrimitive | AvroFixed, reader: AvroPrimitive | AvroFixed) -> bool:
    """Whether the specification lets the reader take the writer's values."""
    if isinstance(writer, AvroFixed) and isinstance(reader, AvroFixed):
        return writer.size == reader.size
    return writer.kind == reader.kind or (writer.kind, reader.kind) in _PROMOTIONS


def read_number(writer: AvroType, reader: AvroType, slot: Slot | None) -> ReadNumber:
    """The step that reads a number; points in time change from the writer's unit to the slot's."""
    wire = WIRES[writer.kind]
    if slot is None:
        return ReadNumber(None, wire)
    cast = NumberCast.KEEP
    if reader.kind != writer.kind and reader.kind in ("float", "double"):
        cast = NumberCast.FLOAT if reader.kind == "float" else NumberCast.DOUBLE
    have, want = _time_units(writer, reader, slot)
    common = gcd(have, want)
    limit = _DAY * want if _time_unit(reader)[0] == "time" else 0
    return ReadNumber(slot, wire, cast, want // common, have // common, limit)


def _time_units(writer: AvroType, reader: AvroType, slot: Slot) -> tuple[int, int]:
    """(units per second the writer has, the slot has); equal where nothing is to convert."""
    family, theirs = _time_unit(reader)
    if theirs is None:
        return 1, 1
    mine_family, mine = _time_unit(writer)
    have = mine if mine is not None and mine_family == family else theirs
    temporal = pa.types.is_timestamp(slot.type) or pa.types.is_time(slot.type)
    return have, _PER_SECOND_ARROW[slot.type.unit] if temporal else theirs


def _time_unit(node: AvroType) -> tuple[str, int | None]:
    """The family of a logical type (`timestamp`, `local-timestamp`, `time`) and its units per second."""
    if node.logical is None:
        return "", None
    family, _, unit = node.logical.name.rpartition("-")
    return family, _PER_SECOND.get(unit)
