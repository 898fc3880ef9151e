"""Starts Spark's Java machines for tests in half the time: light compilation and an archive of the classes they load.

`python -m tests.support.spark_jvm` records the archive once for an environment; without one, or with one of another
Java, the machine loads its classes from the jars as always.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.support.java_options import LIGHT, get_archive_option, get_recording_option

ARCHIVE: Final = Path(sys.prefix) / "spark.jsa"
"""The classes that a Spark session of this environment loads, parsed and verified (Java's class data sharing)."""

_LIGHT: Final = " ".join(LIGHT)


def start_machines_fast() -> None:
    """Set the options of Java machines that this process and its children start for Spark, unless some are set."""
    archive = f" {get_archive_option(ARCHIVE)}" if ARCHIVE.exists() and " " not in str(ARCHIVE) else ""
    os.environ.setdefault("SPARK_LAUNCHER_OPTS", _LIGHT)
    os.environ.setdefault("SPARK_SUBMIT_OPTS", _LIGHT + archive)


def record_archive() -> None:
    """Run a session that does what the tests' sessions do, and write the classes that it loads to `ARCHIVE`."""
    ARCHIVE.unlink(missing_ok=True)
    os.environ["SPARK_SUBMIT_OPTS"] = f"{_LIGHT} {get_recording_option(ARCHIVE)}"

    from stele.spark import local_session

    spark = local_session(
        "archive",
        spark__plugins="org.apache.spark.sql.connect.SparkConnectPlugin",
        spark__connect__grpc__binding__port="0",
    )
    with tempfile.TemporaryDirectory() as folder:
        spark.range(20).selectExpr("id", "cast(id AS string) AS name").write.parquet(f"{folder}/rows")
        rows = spark.read.parquet(f"{folder}/rows").mapInArrow(lambda batches: batches, "id long, name string")
        rows.groupBy("name").count().orderBy("name").toPandas()
        stream = spark.readStream.schema("id long, name string").parquet(f"{folder}/rows").where("id > 3")
        write = stream.writeStream.foreachBatch(lambda frame, _: frame.collect() and None)
        write.option("checkpointLocation", f"{folder}/kept").trigger(availableNow=True).start().awaitTermination()
    machine = spark.sparkContext._gateway.proc  # type: ignore[union-attr]
    spark.stop()
    machine.stdin.close()  # this ends the machine, which then writes the archive
    machine.wait(600)


if __name__ == "__main__":
    record_archive()
