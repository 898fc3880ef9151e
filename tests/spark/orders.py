"""Three versions of one record, data of each, and folders of framed files."""

from __future__ import annotations

import io
import os
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

SUBJECT = "orders-value"


def _record(*fields: tuple[Any, ...]) -> dict[str, Any]:
    keys = ("name", "type", "default")
    return {"type": "record", "name": "Order", "fields": [dict(zip(keys, field, strict=False)) for field in fields]}


_PLACE = {"type": "record", "name": "Place", "fields": [{"name": "city", "type": "string"}]}
_WIDER_PLACE = {
    "type": "record",
    "name": "Place",
    "fields": [{"name": "city", "type": "string"}, {"name": "country", "type": ["null", "string"], "default": None}],
}
V1 = _record(("id", "int"), ("place", _PLACE), ("tags", {"type": "array", "items": "string"}))
V2 = _record(
    ("id", "long"),
    ("place", _PLACE),
    ("tags", {"type": "array", "items": "string"}),
    ("at", {"type": "long", "logicalType": "timestamp-millis"}, 0),
)
V3 = _record(
    ("id", "long"),
    ("place", _WIDER_PLACE),
    ("tags", {"type": "array", "items": "string"}),
    ("at", {"type": "long", "logicalType": "timestamp-millis"}, 0),
    ("note", ["null", "string"], None),
    ("places", {"type": "map", "values": "Place"}, {}),
)
VERSIONS = (V1, V2, V3)


def datum(version: int, number: int) -> dict[str, Any]:
    """Return a record of a version, 1 to 3."""
    record: dict[str, Any] = {"id": number, "place": {"city": f"city {number}"}, "tags": ["a"] * (number % 3)}
    if version > 1:
        record["at"] = 1_700_000_000_000 + number
    if version > 2:
        record["place"]["country"] = "NO"
        record |= {"note": f"note {number}", "places": {"home": {"city": "here", "country": None}}}
    return record


def frame_record(document: Any, value: Any, schema_id: int) -> bytes:
    """Return a framed record as fastavro writes it."""
    out = io.BytesIO(struct.pack(">bI", 0, schema_id))
    out.seek(5)
    fastavro.schemaless_writer(out, fastavro.parse_schema(document), value)
    return out.getvalue()


def order(version: int, schema_id: int, number: int) -> bytes:
    """Return a framed order."""
    return frame_record(VERSIONS[version - 1], datum(version, number), schema_id)


def drop(folder: Path, name: str, frames: Sequence[bytes | None]) -> None:
    """Write a file of records into a folder atomically."""
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder.parent / f".{name}"
    pq.write_table(pa.table({"value": pa.array(frames, pa.binary())}), draft)
    os.rename(draft, folder / name)
