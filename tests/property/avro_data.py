"""Random data of an Avro schema, in the Python types its codec takes."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

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

_NUMBERS = {
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32, allow_nan=False, allow_infinity=False),
    "double": st.floats(allow_nan=False, allow_infinity=False),
}
_PLAIN: dict[str, st.SearchStrategy[Any]] = {
    **_NUMBERS,
    "null": st.none(),
    "boolean": st.booleans(),
    "bytes": st.binary(max_size=4),
    "string": st.text(max_size=4),
}
_MOMENTS = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30))  # noqa: DTZ001 - zones are added where they belong


@st.composite
def avro_data(draw: st.DrawFn, node: AvroType, depth: int = 4) -> Any:
    """A datum; below depth unions are null where they can be, arrays and maps empty; endless data are rejected."""
    assume(depth > -5)
    match node:
        case AvroRecord():
            return {field.name: draw(avro_data(field.type, depth - 1)) for field in node.fields}
        case AvroEnum():
            return draw(st.sampled_from(node.symbols))
        case AvroArray():
            return [draw(avro_data(node.items, depth - 1)) for _ in range(draw(st.integers(0, 2 if depth > 0 else 0)))]
        case AvroMap():
            keys = draw(st.lists(st.text(max_size=2), max_size=2 if depth > 0 else 0, unique=True))
            return {key: draw(avro_data(node.values, depth - 1)) for key in keys}
        case AvroUnion():
            branches = node.branches
            if depth <= 0:
                branches = tuple(branch for branch in branches if branch.kind == "null") or branches
            branch = draw(st.sampled_from(branches))
            datum = draw(avro_data(branch, depth - 1))
            # With several branches a datum needs the name of its branch: without it, another branch may fit.
            several = sum(branch.kind != "null" for branch in node.branches) > 1
            return (getattr(branch, "name", branch.kind), datum) if several and branch.kind != "null" else datum
        case _:
            return draw(_scalar_data(node))


def _scalar_data(node: AvroPrimitive | AvroFixed) -> st.SearchStrategy[Any]:
    logical = node.logical.name if node.logical else ""
    match logical:
        case "decimal":
            assert node.logical is not None
            limit, scale = 10**node.logical.precision - 1, node.logical.scale
            return st.integers(-limit, limit).map(lambda unscaled: Decimal(unscaled).scaleb(-scale))
        case "uuid":
            return st.uuids()
        case "date":
            return st.dates()
        case "time-millis":
            return st.times().map(lambda value: value.replace(microsecond=value.microsecond // 1000 * 1000))
        case "timestamp-micros":
            return _MOMENTS.map(lambda value: value.replace(tzinfo=UTC))
        case "timestamp-millis" | "local-timestamp-millis":
            zone = UTC if logical == "timestamp-millis" else None
            return _MOMENTS.map(lambda at: at.replace(microsecond=at.microsecond // 1000 * 1000, tzinfo=zone))
    return st.binary(min_size=node.size, max_size=node.size) if isinstance(node, AvroFixed) else _PLAIN[node.kind]
