"""Registered streams as datasets of Spark Declarative Pipelines: for the definition files of `spark-pipelines`.

    from stele.spark import declarative as stele

    stele.streaming_table(
        "orders",
        subject="orders-value",
        registry="http://localhost:8081",
        source=lambda spark: spark.readStream.schema("value binary").parquet("/incoming/orders"),
    )

This declares three streaming tables:

- `orders_records` has the raw records, each with the id of its schema and its error, if it has one.
- `orders` has the good records, decoded.
- `orders_dead_letters` has the bad records, with the reason.

Each record is classified once, and the result is stored. So a record is in exactly one of the two last tables, even if
an unknown schema is registered between their updates. The raw records are stored, too, so `--full-refresh orders`
decodes all of them again with the newest schema.

Spark ensures that each record is processed exactly once: every table is a streaming query with a checkpoint. A
definition is evaluated once per run, and the schemas are pinned then.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import pyarrow as pa

from stele.errors import Invalid, NotInstalled
from stele.spark.decode.jvm_expressions import ERROR, ID, VALUE
from stele.spark.decode.jvm_expressions import decode_column as decode_by_jvm
from stele.spark.decode.records import ReadPlan, ReadTarget, plan_read
from stele.spark.decode.rules import refuse_reading
from stele.spark.engines.arrow import ArrowType, Column
from stele.spark.engines.base import error_structs, error_type, raise_first_error
from stele.spark.functions import to_spark_types
from stele.spark.pipeline.classification import select_unrouted
from stele.spark.pipeline.config import PipelineConfig, RouteConfig, load_config
from stele.spark.pipeline.dead_letters import dead_letter_fields
from stele.spark.pipeline.raw_records import RAW, read_raw_stream
from stele.spark.pipeline.routes import ERROR as RECORD_ERROR
from stele.spark.pipeline.routes import (
    ID_COLUMN,
    VERSION_COLUMN,
    PinnedRoute,
    RouteGroup,
    group_routes,
    has_unrouted,
    schema_names,
    version_column,
)
from stele.spark.pipeline.schema_evolution import RESERVED_PREFIX
from stele.spark.registry import PATIENCE, ReaderLike, RegistryLike, as_picklable, pin_schemas
from stele.spark.session import require_spark
from stele.spark.types.names import quote_name

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame, SparkSession

    from stele.spark.decode.rules import RulesLike
    from stele.spark.wires import WireLike

__all__ = ["Newer", "RawSource", "from_config", "streaming_table"]

RawSource: TypeAlias = "str | Callable[[SparkSession], DataFrame]"
"""Source of the raw records: a function that reads a stream, or the name of a streaming dataset of the pipeline.

The function is called once, while definitions are loaded.
"""

Newer = Literal["stop", "read"]
"""What happens to records whose schema was registered after the run had pinned the newest one.

With `stop` the run stops, and the next run reads these records with all their columns. With `read` they are read by the
pinned schema, without columns that are new.
"""

ERROR_COLUMN: Final = f"{RESERVED_PREFIX}error"
TABLE_COLUMN: Final = f"{RESERVED_PREFIX}table"
"""Name of the table that a good record belongs to. `ERROR_COLUMN` holds the error of a bad record.

Both are columns of the table of records, beside `_stele_schema_id`.
"""
_MADE: Final = f"{RESERVED_PREFIX}made"
_LETTER: Final = ("schema_id", "byte", "code", "reason")
_LATE: Final = (
    " was registered after this run began, or in another subject: run again, or take such records with newer='read'"
)


@dataclass(frozen=True, slots=True)
class _DecodeExpression:
    """Decodes a column of records into a struct of value, id and error, in the JVM's engine or else in Python tasks."""

    reading: ReadPlan
    fail_fast: bool

    @property
    def type(self) -> ArrowType:
        number = self.reading.wire.id_type
        return pa.struct([(VALUE, self.reading.type), (ID, number), (ERROR, error_type(number))])

    def make_function(self) -> Callable[[Iterator[Any]], Iterator[Column]]:
        """Return the function over batches. It is nested because Spark asks a function for its name."""
        reading, fail_fast, type_ = self.reading, self.fail_fast, self.type

        def decode(batches: Iterator[Any]) -> Iterator[Column]:
            decoder = reading.decoder()
            for batch in batches:
                decoded = decoder.decode(*(batch if isinstance(batch, tuple) else (batch,)))
                if fail_fast:
                    raise_first_error(decoded)
                parts = [decoded.values, decoded.schema_ids, error_structs(decoded)]
                yield pa.StructArray.from_arrays(parts, fields=list(type_))

        return decode

    def decode_column(self, spark: SparkSession, raw: Expression, headers: Expression | None) -> Expression:
        """Build the struct for a column of records.

        No call here makes Spark analyse a DataFrame. Spark's pipelines forbid that where tables are defined, and the
        dataset that is read need not exist yet.
        """
        from pyspark.sql.pandas.functions import ArrowUDFType, arrow_udf

        expression = decode_by_jvm(spark, raw, self.reading, fail_fast=self.fail_fast)
        if expression is not None:
            return expression
        returns: Any = to_spark_types([self.type])[0]  # a struct type works, although the hint allows flat types only
        decode = arrow_udf(self.make_function(), returns, ArrowUDFType.SCALAR_ITER)
        return decode(raw) if headers is None else decode(raw, headers)


@dataclass(frozen=True, slots=True)
class DeclaredStream:
    """Records that are classified together.

    reading  how they are decoded; its targets have the names of their tables
    records  name of the table of classified records
    keep     columns of the source that are kept
    stops    whether the run stops at a schema that was not pinned
    """

    reading: ReadPlan
    records: str
    column: str
    headers: str | None
    keep: tuple[str, ...]
    stops: bool
    fail_fast: bool

    def declare_tables(
        self,
        spark: SparkSession,
        raw: DataFrame,
        kept_columns: Mapping[str, str],
        format_: str | None,
        details: dict[str, Any],
    ) -> None:
        """Declare the table of records and the other tables.

        `kept_columns` maps the names of kept columns to their names in the tables.
        """
        from pyspark import pipelines as dp

        self._check_columns(kept_columns)
        judged = self._classify_records(spark, raw)
        table: Any = dp.table  # its type hints lack `format`
        table(name=self.records, format=format_, comment="raw records, judged once")(partial(_return_frame, judged))
        for target in self.reading.targets:
            rows = self._select_rows(spark, target, kept_columns)
            table(name=target.name, format=format_, **details)(partial(_return_frame, rows))

    def select_dead_letters(self, spark: SparkSession) -> DataFrame:
        """Return the dead letters among the records."""
        from pyspark.sql import functions as f

        error = f.col(ERROR_COLUMN)
        parts = dead_letter_fields(error)
        stored = spark.readStream.table(self.records).where(error.isNotNull())
        return stored.select(_column_named(self.column), *self._kept_columns(), *parts)

    def _kept_columns(self) -> list[Expression]:
        names = dict.fromkeys([*([self.headers] if self.headers else []), *self.keep])
        return [_column_named(name) for name in names if name != self.column]

    def _classify_records(self, spark: SparkSession, raw: DataFrame) -> DataFrame:
        from pyspark.sql import functions as f

        decoded = _DecodeExpression(self.reading, self.fail_fast).decode_column(spark, *self._record_columns())
        value, number, error = (f.col(_MADE)[part] for part in (VALUE, ID, ERROR))
        good = error.isNull()
        if self.stops:
            known = sorted({name for schema in self._pinned_schemas() for name in schema_names(schema)})
            strange = good & number.isNotNull() & ~number.cast("string").isin(*known)
            number = f.when(strange, f.raise_error(f.concat(f.lit("schema id "), number, f.lit(_LATE)))).otherwise(
                number
            )
        whose = f.lit(self.reading.targets[0].name)
        if self.reading.several:
            whose = f.coalesce(
                *(f.when(value[each.name].isNotNull(), f.lit(each.name)) for each in self.reading.targets)
            )
        own = [number.alias(ID_COLUMN), error.alias(ERROR_COLUMN), f.when(good, whose).alias(TABLE_COLUMN)]
        return raw.select("*", decoded.alias(_MADE)).select(_column_named(self.column), *self._kept_columns(), *own)

    def _select_rows(self, spark: SparkSession, target: ReadTarget, kept_columns: Mapping[str, str]) -> DataFrame:
        """Return the decoded records of one table. All of them are known to be good, so a bad one fails the task."""
        from pyspark.sql import functions as f

        mine = _column_named(self.column).isNotNull() & (f.col(TABLE_COLUMN) == target.name)
        reading = replace(self.reading, targets=(target,), several=False)
        decoded = _DecodeExpression(reading, fail_fast=True).decode_column(spark, *self._record_columns())
        own = [f.col(ID_COLUMN), version_column(target.pinned, f.col(ID_COLUMN)).alias(VERSION_COLUMN)]
        along = [_column_named(name).alias(alias) for name, alias in kept_columns.items()]
        stored = spark.readStream.table(self.records).where(mine)
        return stored.select("*", decoded.alias(_MADE)).select(f"{_MADE}.{VALUE}.*", *own, *along)

    def _record_columns(self) -> tuple[Expression, Expression | None]:
        return _column_named(self.column), _column_named(self.headers) if self.headers else None

    def _pinned_schemas(self) -> list[Any]:
        return [schema for target in self.reading.targets for schema in target.pinned.snapshot.schemas]

    def _check_columns(self, kept_columns: Mapping[str, str]) -> None:
        """Raise `Invalid` for a schema that is not a record, and for column names that are taken."""
        for target in self.reading.targets:
            type_ = replace(self.reading, targets=(target,), several=False).type
            if not pa.types.is_struct(type_):
                raise Invalid(f"the schema of {target.pinned.subject} is not a record, so it has no columns")
            names = {field.name.casefold() for field in type_}
            taken = [name for name in kept_columns.values() if name.casefold() in names]
            taken += [field.name for field in type_ if field.name.casefold().startswith(RESERVED_PREFIX)]
            if taken:
                raise Invalid(f"{target.pinned.subject} has a field {taken[0]!r} already: the column needs the name")
        if self.column in _LETTER or any(name in _LETTER for name in self.keep):
            raise Invalid(f"dead letters have columns {', '.join(_LETTER)} of their own: rename those of the source")


def declare_dead_letters(name: str, flows: Mapping[str, DataFrame], format_: str | None) -> None:
    """Declare the table of dead letters, and one flow into it for each of `flows`."""
    from pyspark import pipelines as dp

    create: Any = dp.create_streaming_table
    create(name, format=format_, comment="records that could not be decoded, and why")
    for source, letters in flows.items():
        flow = re.sub(r"\W", "_", f"{name}_of_{source}")  # the name of a flow must have one part
        dp.append_flow(target=name, name=flow)(partial(_return_frame, letters))


def active_session() -> SparkSession:
    """Return the session that loads the definitions."""
    from pyspark.sql import SparkSession

    return SparkSession.active()


def require_pipelines() -> None:
    """Raise `NotInstalled` if PySpark has no declarative pipelines."""
    require_spark()
    try:
        import pyspark.pipelines  # noqa: F401 - an optional part, only tried
    except ImportError as missing:
        what = "Spark's declarative pipelines (PySpark 4.1 or newer, with Spark Connect)"
        raise NotInstalled(what, "connect") from missing


def _return_frame(df: DataFrame) -> DataFrame:
    return df


def _column_named(name: str) -> Expression:
    """Return a column by its name, which can contain any characters."""
    from pyspark.sql import functions as f

    return f.col(quote_name(name))


def streaming_table(
    name: str,
    *,
    subject: str,
    registry: RegistryLike,
    source: RawSource,
    column: str = "value",
    headers: str | None = None,
    keep: Sequence[str] = (),
    dead_letters: str | None = "",
    records: str = "",
    newer: Newer = "stop",
    reader: ReaderLike = "latest",
    wire: WireLike = "confluent",
    message: str = "",
    rules: RulesLike = "refuse",
    topic: str = "",
    engine: str = "auto",
    patience: float = PATIENCE,
    format: str | None = None,  # noqa: A002 - as pyspark.pipelines.table has it
    **details: Any,
) -> None:
    """Declare a streaming table of a registered stream, with its records and dead letters beside it.

    source        see `RawSource`; column and headers are its columns as for `from_registry`
    keep          more of its columns that the table and the dead letters have
    dead_letters  name of the table of dead letters; '' is the table's name + `_dead_letters`; with None there is none,
                  and a bad record stops the run
    records       name of the table of raw records; '' is the table's name + `_records`
    newer         see `Newer`; used only if reader is `latest`
    format        format of all three tables; None is Spark's default
    details       for the table alone: comment, table_properties, partition_cols, cluster_by, spark_conf

    The other arguments are those of `from_registry`. The table has the schema's fields, `_stele_schema_id`,
    `_stele_version` (see `pipeline`) and the kept columns. Null records become no rows. Raises what `from_registry`
    raises, `Invalid` for a schema that is not a record, and `NotInstalled` before PySpark 4.1.
    """
    # Long because every choice is an argument, and all are documented here
    require_pipelines()
    if newer not in ("stop", "read"):
        raise Invalid(f"newer must be 'stop' or 'read', not {newer!r}")
    reading = plan_read(
        as_picklable(registry),
        subject,
        reader,
        wire=wire,
        message=message,
        rules=rules,
        topic=topic,
        engine=engine,
        patience=patience,
    )
    if reading.wire.needs_headers and headers is None:
        raise Invalid("this wire has ids in record headers: name their column, such as headers='headers'")
    stream = DeclaredStream(
        replace(reading, targets=(replace(reading.targets[0], name=name),)),
        records or f"{name}_records",
        column,
        headers if reading.wire.needs_headers else None,
        tuple(keep),
        stops=newer == "stop" and reader == "latest",
        fail_fast=dead_letters is None,
    )
    spark = active_session()
    raw = spark.readStream.table(source) if isinstance(source, str) else source(spark)
    stream.declare_tables(spark, raw, {each: each for each in keep}, format, details)
    if dead_letters is not None:
        declare_dead_letters(
            dead_letters or f"{name}_dead_letters", {stream.records: stream.select_dead_letters(spark)}, format
        )


_FORMATS: Final[Mapping[str, str]] = {"parquet": "parquet", "delta": "delta", "iceberg-spark": "iceberg"}


def from_config(path: Path | str, *, newer: Newer = "stop") -> None:
    """Declare the tables of a `pipeline.toml`, each with its records, and their dead letters.

    The file defines sources, routes, kept columns and names of tables. Spark's pipeline defines checkpoints, triggers,
    the session, its metrics, where tables are stored and how their columns change. Tables are of the kinds `parquet`,
    `delta` and `iceberg-spark`. Raises `Invalid` for another kind, for a wrong file, and for FAILFAST where topics can
    be without a route. Also raises what `streaming_table` raises.
    """
    require_pipelines()
    from pyspark.sql import functions as f

    config = load_config(path)
    if config.table.kind not in _FORMATS:
        kinds = ", ".join(_FORMATS)
        raise Invalid(f"{path}: Spark's pipelines cannot write tables of the kind {config.table.kind}: choose {kinds}")
    if config.mode == "FAILFAST" and has_unrouted(config):
        raise Invalid(f"{path}: in mode FAILFAST there must be a route for every topic, or one without a topic")
    spark, format_ = active_session(), _FORMATS[config.table.kind]
    raw = read_raw_stream(spark, config)
    kept_columns = {str(name): RESERVED_PREFIX + name for name in config.table.keep}
    letters = {}
    registry = config.source.open_registry()
    grouped = group_routes([_pin_route(route, config, registry) for route in config.routes])
    for group in grouped:
        stream = _make_stream(group, config, registry, newer)
        stream.declare_tables(spark, group.select_records(raw), kept_columns, format_, {})
        letters[stream.records] = stream.select_dead_letters(spark)
    rest = select_unrouted(raw, grouped, config)
    if rest is not None:
        error = f.col(RECORD_ERROR)
        parts = dead_letter_fields(error)
        letters["unrouted"] = rest.select(*RAW, *parts)
    if config.mode == "DEADLETTER":
        declare_dead_letters(_qualify_table(config, config.dead_letter_table), letters, format_)


def _pin_route(route: RouteConfig, config: PipelineConfig, registry: RegistryLike) -> PinnedRoute:
    pinned = pin_schemas(registry, route.subject, patience=config.source.patience)
    if config.source.rules == "refuse":
        refuse_reading(pinned)
    return PinnedRoute(route, pinned)


def _make_stream(group: RouteGroup, config: PipelineConfig, registry: RegistryLike, newer: Newer) -> DeclaredStream:
    """Return the records of a group, with the full names of their tables."""
    reading = group.make_read_plan(config, registry)
    named = tuple(replace(target, name=_qualify_table(config, target.name)) for target in reading.targets)
    return DeclaredStream(
        replace(reading, targets=named),
        f"{named[0].name}_records",
        "value",
        "headers" if reading.wire.needs_headers else None,
        tuple(name for name in RAW if name != "value"),
        stops=newer == "stop",
        fail_fast=config.mode == "FAILFAST",
    )


def _qualify_table(config: PipelineConfig, table: str) -> str:
    return f"{config.table.catalog}.{table}" if config.table.catalog else table
