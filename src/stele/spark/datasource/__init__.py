"""The registry itself as tables: `spark.read.format("stele")` and, over its journal, `spark.readStream`.

    add_source(spark)
    spark.read.format("stele").options(registry="http://localhost:8081", table="versions").load()

    table       one row for each
    subjects    subject that has a version or was created without one
    versions    version that is not purged, with its text
    journal     change: who did what, when, through which API; also as a stream
    usage       version whose records the last census of a place saw (`stele census --record`)

The first three are made of the journal up to one sequence number, fixed when the query is planned or by the option
`asOf`: tables of one number agree with one another, and a repeated query says the same as long as nothing is purged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stele.spark.session import require_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["add_source"]

_PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


def add_source(spark: SparkSession) -> None:
    """Make the format `stele` known to a session. Raises `NotInstalled` without PySpark.

    Also lets Spark hand filters to sources written in Python, this one among them, where it can (from 4.1).
    """
    require_spark()
    from stele.spark.datasource.source import SteleSource

    spark.conf.set(_PUSHDOWN, "true")
    spark.dataSource.register(SteleSource)
