"""Python workers of a session are forked with the modules that they need, loaded from bytecode."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from stele.spark.decode.worker_daemon import prefer_installed_pyspark
from stele.spark.session import WORKER_DAEMON

FOUND = "modules array<string>, frozen long, parent string, sources array<string>"


def describe_worker(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return one row: modules imported before the task, Spark's sources, number of frozen objects, parent process."""
    import gc
    import os
    import sys
    from pathlib import Path

    import py4j
    import pyspark

    list(batches)
    parent = Path(f"/proc/{os.getppid()}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    row = {"modules": list(sys.modules), "frozen": gc.get_freeze_count(), "parent": parent}
    row["sources"] = [str(pyspark.__file__), str(py4j.__file__)]
    yield pa.RecordBatch.from_pylist([row])


def test_workers_are_forked_with_imports(spark: SparkSession) -> None:
    """A worker has Arrow and the decoder when it starts, and the garbage collector skips them."""
    (row,) = spark.range(1).coalesce(1).mapInArrow(describe_worker, FOUND).collect()
    assert WORKER_DAEMON in row.parent
    assert {"pyarrow.compute", "stele.spark.decode.records"} <= set(row.modules)
    assert row.frozen > 10_000
    assert not [source for source in row.sources if ".zip" in source]


def test_archives_stay_where_nothing_is_installed(tmp_path: Path) -> None:
    """Spark's archives are removed from a search path only if the same PySpark and py4j are installed."""
    site = tmp_path / "site-packages"
    library = site / "pyspark" / "python" / "lib"
    library.mkdir(parents=True)
    spark, py4j = str(library / "pyspark.zip"), str(library / "py4j-0.10.9.9-src.zip")
    other = str(tmp_path / "spark" / "python" / "lib" / "pyspark.zip")

    def drop(*path: str) -> list[str]:
        left = list(path)
        prefer_installed_pyspark(left)
        return left

    assert drop(spark, py4j, other, str(site)) == [spark, py4j, other, str(site)]
    (site / "pyspark" / "__init__.py").touch()
    (site / "py4j-0.10.9.7.dist-info").mkdir()
    assert drop(spark, py4j, other, str(site)) == [py4j, other, str(site)]
    (site / "py4j-0.10.9.9.dist-info").mkdir()
    assert drop(spark, py4j, other, str(site)) == [other, str(site)]
    assert drop(spark, py4j, other) == [spark, py4j, other]
