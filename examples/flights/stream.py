"""The stream: framed records in Parquet files, each with mixed versions and some corrupted records."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from schemas import ALL

from stele.formats.avro import AVRO
from stele.spark.engines import get_engine

BEFORE_V3 = 12
AFTER_V3 = 12
BAD_PER_FILE = 13
"""Corrupted records per file: 24 files × 13 = 312."""


def frame(rows: pa.Table, version: int, schema_id: int) -> list[bytes]:
    """Return the rows as Confluent-framed Avro of a version of the flight schema."""
    schema = AVRO.parse(ALL[version - 1].encode(), {})
    names = [field.path for field in AVRO.fields(schema) if "." not in field.path]
    encoder = get_engine("auto").encoder(schema, schema_id)
    framed = [encoder.encode(batch.to_struct_array()) for batch in rows.select(names).combine_chunks().to_batches()]
    return [record for array in framed for record in array.to_pylist()]


def corrupt(record: bytes, kind: int, chance: random.Random) -> bytes:
    """Return a damaged copy of a record, with one of six kinds of damage."""
    match kind % 6:
        case 0:
            return record[: chance.randrange(6, len(record) - 1)]
        case 1:
            return record + bytes(chance.randrange(1, 9))
        case 2:
            return b"\x00" + (999_999).to_bytes(4, "big") + record[5:]
        case 3:
            return b'{"carrier": "AA"}'
        case 4:
            return record[:3]
        case _:
            return record[:5] + b"\xff" * 12 + record[5:]


def write_file(path: Path, records: list[bytes], chance: random.Random) -> int:
    """Write one file of the stream with corrupted copies among the records, and return their number."""
    bad = [corrupt(chance.choice(records), kind, chance) for kind in range(BAD_PER_FILE)]
    mixed = records + bad
    chance.shuffle(mixed)
    # A reader of the folder sees only complete files: a file gets its name after it is written.
    hidden = path.with_name(f".{path.name}")
    pq.write_table(pa.table({"value": pa.array(mixed, pa.binary())}), hidden)
    hidden.rename(path)
    return len(bad)
