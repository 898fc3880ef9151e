"""Routes: which records go to which table, and the columns that the table needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

import pyarrow as pa

from stele.errors import Invalid
from stele.spark.decode.formats import type_for
from stele.spark.decode.records import ReadPlan, ReadTarget
from stele.spark.functions import decode_column, to_spark_types
from stele.spark.pipeline.config import PipelineConfig, RouteConfig
from stele.spark.pipeline.raw_records import RAW
from stele.spark.pipeline.schema_evolution import RESERVED_PREFIX
from stele.spark.registry import PinnedSchemas, RegistryLike
from stele.spark.types import with_comments
from stele.spark.wires import get_wire

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructType

    from stele.client import ResolvedSchema

VALUE, ID, ERROR = "record", "schema_id", "record_error"
"""Columns of a classified batch beside the raw ones: the decoded record, the name of its schema, and its error."""
ID_COLUMN: Final = f"{RESERVED_PREFIX}schema_id"
VERSION_COLUMN: Final = f"{RESERVED_PREFIX}version"
"""Version column of every table, beside `ID_COLUMN`.

`ID_COLUMN` holds the id, or the wire's substitute, of the schema that each record was written with. This column holds
that schema's version number in the subject, and null when the schema belongs to another subject.
"""


@dataclass(frozen=True, slots=True)
class PinnedRoute:
    """A route and the schemas that its records are read with."""

    config: RouteConfig
    pinned: PinnedSchemas

    def record_type(self, config: PipelineConfig) -> StructType:
        """Return the columns of its records. Raises `Invalid` when the newest schema is not a record."""
        from pyspark.sql.types import StructType

        type_ = type_for(self.pinned.reader, self.config.message, config.source.recursion)
        if not pa.types.is_struct(type_):
            raise Invalid(f"the newest schema of {self.pinned.subject} is not a record, so it has no columns")
        columns = to_spark_types([type_])[0]
        assert isinstance(columns, StructType)
        taken = [field.name for field in columns.fields if field.name.casefold().startswith(RESERVED_PREFIX)]
        if taken:
            raise Invalid(
                f"{self.pinned.subject} has a field {taken[0]!r}: names that begin with {RESERVED_PREFIX} are reserved "
                "for the pipeline"
            )
        return columns

    def table_columns(self, config: PipelineConfig) -> StructType:
        """Return the columns its table needs, with the documentation of their fields as comments."""
        from pyspark.sql.types import IntegerType, StructField, StructType

        own = [StructField(ID_COLUMN, id_type(config)), StructField(VERSION_COLUMN, IntegerType())]
        kept_columns = zip(config.table.keep, to_spark_types([RAW[name] for name in config.table.keep]), strict=True)
        return StructType(
            [
                *with_comments(self.record_type(config), self.pinned.reader, self.config.message).fields,
                *own,
                *(StructField(RESERVED_PREFIX + name, type_) for name, type_ in kept_columns),
            ]
        )

    def select_rows(self, judged: DataFrame, config: PipelineConfig, value: Column) -> DataFrame:
        """Return the rows of its table from classified records; `value` is the column with its decoded records."""
        from pyspark.sql import functions as f

        fields = [value.getField(field.name).alias(field.name) for field in self.record_type(config).fields]
        own = [f.col(ID).alias(ID_COLUMN), version_column(self.pinned, f.col(ID)).alias(VERSION_COLUMN)]
        kept_columns = [f.col(name).alias(RESERVED_PREFIX + name) for name in config.table.keep]
        return judged.where(f.col(ERROR).isNull() & value.isNotNull()).select(*fields, *own, *kept_columns)


def version_column(pinned: PinnedSchemas, name: Column) -> Column:
    """Return a column with the version number of each record's schema, null for a schema of another subject.

    name   column with the id or other name of the schema
    """
    from pyspark.sql import functions as f

    known: dict[str, int] = {}
    for schema in sorted(pinned.snapshot.schemas, key=lambda schema: schema.version):
        if schema.subject == pinned.subject:
            known |= dict.fromkeys(schema_names(schema), schema.version)
    if not known:
        return f.lit(None).cast("int")
    return f.create_map(*(f.lit(each) for pair in known.items() for each in pair))[name.cast("string")]


def id_type(config: PipelineConfig) -> DataType:
    """Return the Spark type of the column that names a record's schema."""
    return to_spark_types([get_wire(config.source.wire).id_type])[0]


def schema_names(schema: ResolvedSchema) -> list[str]:
    """Return the names that records can use for a schema, as texts: its id and its GUID."""
    return [name for name in (str(schema.id) if schema.id else "", schema.guid) if name]


@dataclass(frozen=True, slots=True)
class RouteGroup:
    """Routes that share their records: those of one topic, or of all topics that have no routes of their own.

    others   topics that have routes of their own
    """

    topic: str
    routes: tuple[PinnedRoute, ...]
    others: tuple[str, ...] = ()

    def select_records(self, raw: DataFrame) -> DataFrame:
        """Return the records of this group among all records of a batch."""
        from pyspark.sql import functions as f

        if self.topic:
            return raw.where(f.col("topic") == self.topic)
        return raw.where(f.col("topic").isNull() | ~f.col("topic").isin(*self.others)) if self.others else raw

    def value_column(self, route: PinnedRoute) -> Column:
        """Return the column with a route's decoded records in a classified batch."""
        from pyspark.sql import functions as f

        return f.col(VALUE)[route.config.table] if len(self.routes) > 1 else f.col(VALUE)

    def make_read_plan(self, config: PipelineConfig, registry: RegistryLike) -> ReadPlan:
        """Return the plan by which its records are decoded."""
        source = config.source
        return ReadPlan(
            tuple(ReadTarget(route.config.table, route.pinned, route.config.message) for route in self.routes),
            registry,
            config.engine,
            get_wire(source.wire),
            source.rules,
            several=len(self.routes) > 1,
            topic=self.topic,
            patience=source.patience,
            recursion=source.recursion,
        )

    def decode_records(self, raw: DataFrame, config: PipelineConfig, registry: RegistryLike) -> DataFrame:
        """Return the decoded records of this group."""
        from pyspark.sql import functions as f

        reading = self.make_read_plan(config, registry)
        records = self.select_records(raw).withColumn(VALUE, f.col("value"))
        headers = "headers" if reading.wire.needs_headers else None
        return cast("DataFrame", decode_column(records, VALUE, reading, headers=headers, into=VALUE, id_column=ID))


def group_routes(routes: Sequence[PinnedRoute]) -> list[RouteGroup]:
    """Return the routes grouped by topic; the group without a topic comes last."""
    topics = dict.fromkeys(route.config.topic for route in routes)
    named = tuple(topic for topic in topics if topic)
    groups = [RouteGroup(topic, tuple(r for r in routes if r.config.topic == topic)) for topic in named]
    rest = tuple(route for route in routes if not route.config.topic)
    return [*groups, RouteGroup("", rest, named)] if rest else groups


def has_unrouted(config: PipelineConfig) -> bool:
    """Return whether there can be records of topics without a route."""
    topics = {route.topic for route in config.routes}
    return "" not in topics and set(config.source.topics) != topics
