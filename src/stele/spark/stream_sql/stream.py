"""A stream: where its records are and how they are read, and the tables that makes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from stele.client import ResolvedSchema
from stele.errors import Invalid
from stele.spark.functions import DecodedSplit, from_registry
from stele.spark.registry.clients import RegistryLike, as_picklable
from stele.spark.registry.snapshot import pin_schemas
from stele.spark.stream_sql.options import StreamOptions, resolve_options
from stele.spark.stream_sql.projection import select_columns
from stele.spark.stream_sql.statements import RequestedColumn
from stele.spark.stream_sql.tokens import quote_name

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from stele.spark.decode.planning import Subjects

DEAD: Final = "$dead"
"""Behind the name of a stream: its records that could not be read, where mode is DEADLETTER."""
ID, ERROR = "_schema_id", "_error"
"""Columns beside the record: what names the writer's schema, and what was wrong with the record."""

# names that no column has before it gets one with `_`
_VALUE, _ID, _RAW = "$value", "$id", "$raw"


@dataclass(frozen=True, slots=True)
class StreamTables:
    """The tables of a stream, as the registry has it now.

    table   one row for each record
    dead    the records that could not be read, None unless mode is DEADLETTER
    reader  what the columns are of; None where there are several subjects, or none
    """

    table: DataFrame
    dead: DataFrame | None
    reader: ResolvedSchema | None


@dataclass(frozen=True)
class RegisteredStream:
    """A stream under its name. columns are those to have; none: all there are. Made by `make_stream`."""

    name: str
    options: StreamOptions
    registry: RegistryLike
    columns: tuple[RequestedColumn, ...] = ()

    @property
    def subjects(self) -> str:
        """The subjects it is read by, for people."""
        return ", ".join(self.options.subjects) or "*"

    def make_tables(self, spark: SparkSession, *, streaming: bool = False) -> StreamTables:
        """Its tables, with the columns of the version that is newest now.

        Raises `SubjectNotFound`, `VersionNotFound`, `RegistryUnreachable`, `DataError`, `RulesRefused`, `Invalid`,
        `NotFound`, `NotInstalled`, and what Spark raises for a place it cannot read.
        """
        how = self.options
        raw = self._rename_columns(how.connector.read(spark, streaming=streaming))
        reader = self._resolve_reader()
        several = len(how.subjects) != 1
        decoded = from_registry(
            raw,
            _RAW,
            subject=self._subject_argument(),
            registry=self.registry,
            reader=reader or "latest",
            mode=cast("Any", how.mode),
            wire=how.wire,
            headers=f"_{how.connector.headers}" if how.connector.headers else None,
            message=how.message,
            rules=how.rules,
            topic=how.topic,
            engine=how.engine,
            into=_VALUE,
            id_column=_ID,
            patience=how.patience,
            recursion=how.recursion,
        )
        split = decoded if isinstance(decoded, DecodedSplit) else None
        table = self._select_table(split.good if split else decoded, reader)
        dead = _select_dead(split.dead, how.connector.column) if split else None
        return StreamTables(table, dead, None if several else reader)

    def _rename_columns(self, df: DataFrame) -> DataFrame:
        """The source's columns with `_` before their names, the records apart."""
        column = self.options.connector.column
        if column not in df.columns:
            raise Invalid(
                f"{self.options.connector} have no column {column!r}: "
                f"set the option column to one of {', '.join(df.columns)}"
            )
        return df.toDF(*(_RAW if name == column else f"_{name}" for name in df.columns))

    def _subject_argument(self) -> Subjects:
        names = self.options.subjects
        return names[0] if len(names) == 1 else list(names) or None

    def _resolve_reader(self) -> ResolvedSchema | None:
        """The one version that columns are of, checked against `format.type`."""
        how = self.options
        if len(how.subjects) != 1:
            if how.reader != "latest" or how.format_type:
                raise Invalid("several subjects are read by their newest versions: reader and format.type are for one")
            return None
        found = pin_schemas(self.registry, how.subjects[0], how.reader, patience=how.patience).reader
        if how.format_type and _format_name(how.format_type) != found.schema_type:
            raise Invalid(
                f"format.type is {how.format_type}, and version {found.version} of {how.subjects[0]!r} is "
                f"{found.schema_type}"
            )
        return found

    def _select_table(self, df: DataFrame, reader: ResolvedSchema | None) -> DataFrame:
        """The record's fields as columns, then what stands beside the record under names that are free."""
        from pyspark.sql import functions as f
        from pyspark.sql.types import StructType

        kind = df.schema[_VALUE].dataType
        made: dict[str, Column] = {}
        names: list[str] = []
        if isinstance(kind, StructType):
            names = kind.names
            columns = [f.col(f"{quote_name(_VALUE)}.{quote_name(name)}").alias(name) for name in names]
        else:
            names, columns = ["value"], [f.col(quote_name(_VALUE)).alias("value")]
        taken = {name.lower() for name in names}
        beside = {ID: _ID, ERROR: f"{_VALUE}_error"} | {name: name for name in df.columns if name.startswith("_")}
        for name, held in beside.items():
            if held in df.columns and name.lower() not in taken:
                taken.add(name.lower())
                made[name] = f.col(quote_name(held)).alias(name)
        wide = df.select(*columns, *made.values())
        if self.columns:
            version = f", version {reader.version}," if reader else ""
            return wide.select(*select_columns(wide, self.columns, list(made), f"{self.subjects!r}{version}"))
        return wide if self.options.extras else wide.select(*map(quote_name, [*names, *({ERROR} & made.keys())]))


def _select_dead(df: DataFrame, column: str) -> DataFrame:
    """The records that could not be read: what was wrong, the bytes, and what stands beside them."""
    from pyspark.sql import functions as f

    held = {ERROR: f"{_VALUE}_error", f"_{column}": _RAW}
    held |= {name: name for name in df.columns if name.startswith("_") and name not in held}
    return df.select(*(f.col(quote_name(own)).alias(name) for name, own in held.items()))


def make_stream(
    name: str,
    given: Mapping[str, str],
    settings: Mapping[str, str],
    columns: Sequence[RequestedColumn] = (),
    registry: RegistryLike | None = None,
) -> RegisteredStream:
    """The stream of a name; see `options.reading`. registry goes before the option."""
    how = resolve_options(name, given, settings)
    if registry is None and not how.registry:
        raise Invalid("nothing says where the registry is: give the option registry or set stele.registry = 'http://…'")
    return RegisteredStream(name, how, as_picklable(registry if registry is not None else how.registry), tuple(columns))


def _format_name(word: str) -> str:
    """The registry's word for what another system calls a format."""
    plain = word.partition("-")[0].removesuffix("_SR")
    return {"PROTO": "PROTOBUF", "JSONSCHEMA": "JSON"}.get(plain, plain)
