"""Python workers of a session are forked with what they need imported."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import SparkSession

from stele.spark.session import WORKER_DAEMON

FOUND = "modules array<string>, frozen long, parent string"


def describe_worker(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """One row: the modules that are there before a task imports any, what no collection looks at, who forked it."""
    import gc
    import os
    import sys
    from pathlib import Path

    list(batches)
    parent = Path(f"/proc/{os.getppid()}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    row = {"modules": list(sys.modules), "frozen": gc.get_freeze_count(), "parent": parent}
    yield pa.RecordBatch.from_pylist([row])


def test_workers_are_forked_with_imports(spark: SparkSession) -> None:
    """A worker has Arrow and the decoder when it starts; garbage is not looked for among them."""
    (row,) = spark.range(1).coalesce(1).mapInArrow(describe_worker, FOUND).collect()
    assert WORKER_DAEMON in row.parent
    assert {"pyarrow.compute", "stele.spark.decode.records"} <= set(row.modules)
    assert row.frozen > 10_000
