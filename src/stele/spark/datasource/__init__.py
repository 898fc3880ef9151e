"""The registry itself as tables: `spark.read.format("stele")` and, over its journal, `spark.readStream`.

    add_source(spark)
    spark.read.format("stele").options(registry="http://localhost:8081", table="versions").load()

    table       has one row for each
    subjects    subject that has a version or was created without one
    versions    version that is not purged, with its text
    journal     change: who did what, when, through which API; also as a stream
    usage       version whose records were seen in the last census of a place (`stele census --record`)

The first three are made from the journal up to one sequence number. It is the last one when the query is planned, or
the value of the option `asOf`. Tables of the same number agree with one another, and a repeated query has the same
result as long as nothing is purged.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from stele.errors import CannotConvert, Invalid
from stele.spark.session import require_spark
from stele.spark.types import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["add_source", "subject_tables"]

_PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


def add_source(spark: SparkSession) -> None:
    """Register the format `stele` in a session. Raises `NotInstalled` without PySpark.

    Also turns on filter pushdown to sources written in Python, including this one, if Spark supports it (from 4.1).
    """
    require_spark()
    from stele.spark.datasource.source import SteleSource

    spark.conf.set(_PUSHDOWN, "true")
    spark.dataSource.register(SteleSource)


_COLUMNS: Final = (
    "namespace string, subject string, format string, version int, schema_id int, spark_schema string, note string"
)
_MOST_REFERENCES: Final = 1000

_Key = tuple[str, str, int]


def subject_tables(spark: SparkSession, registry: str, **options: Any) -> DataFrame:
    """Return a row for each subject with a live version; the column spark_schema has its columns as DDL.

    registry, options   as for the source `stele`: `namespace`, `subject`, `asOf`, `patience`

    spark_schema is null for a schema without columns or without a text, and the column note has the reason. For what
    the types do not express, call `stele.spark.spark_schema`. Raises `NotInstalled`, and the errors of the source as
    errors of Spark.
    """
    add_source(spark)
    reader = spark.read.format("stele").options(registry=registry, table="versions", **options)
    texts: dict[_Key, Any] = {}
    newest: dict[tuple[str, str], Any] = {}
    for row in reader.load().select(*_NEEDED).collect():
        texts[row.namespace, row.subject, row.version] = row
        known = newest.get((row.namespace, row.subject))
        if not row.deleted and (known is None or row.version > known.version):
            newest[row.namespace, row.subject] = row
    return spark.createDataFrame([_describe_subject(row, texts) for _, row in sorted(newest.items())], _COLUMNS)


_NEEDED: Final = ("namespace", "subject", "format", "version", "schema_id", "schema", "references", "deleted")


def _describe_subject(row: Any, texts: dict[_Key, Any]) -> tuple[Any, ...]:
    shape, note = None, ""
    try:
        if row.schema is None:
            raise Invalid("the registry has no text of it")
        struct, _ = spark_schema(row.format, row.schema, dict(_resolve_references(row, texts)))
        shape = struct.toDDL()
    except (Invalid, CannotConvert) as error:
        note = str(error)
    return row.namespace, row.subject, row.format, row.version, row.schema_id, shape, note


def _resolve_references(row: Any, texts: dict[_Key, Any]) -> Iterator[tuple[str, str]]:
    """Yield the names and texts of all schemas that a schema refers to. Raises `Invalid` if one is not in the rows."""
    todo, seen = list(row.references or ()), set[_Key]()
    while todo:
        reference = todo.pop()
        key = reference.namespace, reference.subject, reference.version
        if key in seen:
            continue
        seen.add(key)
        version_row = texts.get(key)
        if version_row is None or version_row.schema is None or len(seen) > _MOST_REFERENCES:
            raise Invalid(f"its reference {reference.name!r} is not available")
        todo += version_row.references or ()
        yield reference.name, version_row.schema
