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
from stele.spark.stream_sql.options import Reading, reading
from stele.spark.stream_sql.projection import chosen
from stele.spark.stream_sql.statements import ColumnWanted
from stele.spark.stream_sql.tokens import quote

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
class Made:
    """The tables of a stream, as the registry has it now.

    table   one row for each record
    dead    the records that could not be read, None unless mode is DEADLETTER
    reader  what the columns are of; None where there are several subjects, or none
    """

    table: DataFrame
    dead: DataFrame | None
    reader: ResolvedSchema | None


@dataclass(frozen=True)
class Stream:
    """A stream under its name. columns are those to have; none: all there are. Made by `stream_of`."""

    name: str
    reading: Reading
    registry: RegistryLike
    columns: tuple[ColumnWanted, ...] = ()

    @property
    def subjects(self) -> str:
        """The subjects it is read by, for people."""
        return ", ".join(self.reading.subjects) or "*"

    def made(self, spark: SparkSession, *, streaming: bool = False) -> Made:
        """Its tables, with the columns of the version that is newest now.

        Raises `SubjectNotFound`, `VersionNotFound`, `RegistryUnreachable`, `DataError`, `RulesRefused`, `Invalid`,
        `NotFound`, `NotInstalled`, and what Spark raises for a place it cannot read.
        """
        how = self.reading
        raw = self._raw(how.place.read(spark, streaming=streaming))
        reader = self._reader()
        several = len(how.subjects) != 1
        decoded = from_registry(
            raw,
            _RAW,
            subject=self._subject(),
            registry=self.registry,
            reader=reader or "latest",
            mode=cast("Any", how.mode),
            wire=how.wire,
            headers=f"_{how.place.headers}" if how.place.headers else None,
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
        table = self._table(split.good if split else decoded, reader)
        dead = _dead(split.dead, how.place.column) if split else None
        return Made(table, dead, None if several else reader)

    def _raw(self, df: DataFrame) -> DataFrame:
        """The source's columns with `_` before their names, the records apart."""
        column = self.reading.place.column
        if column not in df.columns:
            raise Invalid(
                f"{self.reading.place} have no column {column!r}: the option column is one of {', '.join(df.columns)}"
            )
        return df.toDF(*(_RAW if name == column else f"_{name}" for name in df.columns))

    def _subject(self) -> Subjects:
        names = self.reading.subjects
        return names[0] if len(names) == 1 else list(names) or None

    def _reader(self) -> ResolvedSchema | None:
        """The one version that columns are of, checked against `format.type`."""
        how = self.reading
        if len(how.subjects) != 1:
            if how.reader != "latest" or how.format_type:
                raise Invalid("several subjects are read by their newest versions: reader and format.type are for one")
            return None
        found = pin_schemas(self.registry, how.subjects[0], how.reader, patience=how.patience).reader
        if how.format_type and _language(how.format_type) != found.schema_type:
            raise Invalid(
                f"format.type is {how.format_type}, and version {found.version} of {how.subjects[0]!r} is "
                f"{found.schema_type}"
            )
        return found

    def _table(self, df: DataFrame, reader: ResolvedSchema | None) -> DataFrame:
        """The record's fields as columns, then what stands beside the record under names that are free."""
        from pyspark.sql import functions as f
        from pyspark.sql.types import StructType

        kind = df.schema[_VALUE].dataType
        made: dict[str, Column] = {}
        names: list[str] = []
        if isinstance(kind, StructType):
            names = kind.names
            columns = [f.col(f"{quote(_VALUE)}.{quote(name)}").alias(name) for name in names]
        else:
            names, columns = ["value"], [f.col(quote(_VALUE)).alias("value")]
        taken = {name.lower() for name in names}
        beside = {ID: _ID, ERROR: f"{_VALUE}_error"} | {name: name for name in df.columns if name.startswith("_")}
        for name, held in beside.items():
            if held in df.columns and name.lower() not in taken:
                taken.add(name.lower())
                made[name] = f.col(quote(held)).alias(name)
        wide = df.select(*columns, *made.values())
        if self.columns:
            version = f", version {reader.version}," if reader else ""
            return wide.select(*chosen(wide, self.columns, list(made), f"{self.subjects!r}{version}"))
        return wide if self.reading.extras else wide.select(*map(quote, [*names, *({ERROR} & made.keys())]))


def _dead(df: DataFrame, column: str) -> DataFrame:
    """The records that could not be read: what was wrong, the bytes, and what stands beside them."""
    from pyspark.sql import functions as f

    held = {ERROR: f"{_VALUE}_error", f"_{column}": _RAW}
    held |= {name: name for name in df.columns if name.startswith("_") and name not in held}
    return df.select(*(f.col(quote(own)).alias(name) for name, own in held.items()))


def stream_of(
    name: str,
    given: Mapping[str, str],
    settings: Mapping[str, str],
    columns: Sequence[ColumnWanted] = (),
    registry: RegistryLike | None = None,
) -> Stream:
    """The stream of a name; see `options.reading`. registry goes before the option."""
    how = reading(name, given, settings)
    if registry is None and not how.registry:
        raise Invalid("nothing says where the registry is: give the option registry or set stele.registry = 'http://…'")
    return Stream(name, how, as_picklable(registry if registry is not None else how.registry), tuple(columns))


def _language(word: str) -> str:
    """The registry's word for what another system calls a format."""
    plain = word.partition("-")[0].removesuffix("_SR")
    return {"PROTO": "PROTOBUF", "JSONSCHEMA": "JSON"}.get(plain, plain)
