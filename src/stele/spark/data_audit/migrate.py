"""Migrate: write stored records again under another version, subject, schema language or wire.

The old records stay where they are. A record that cannot be written again becomes a dead letter with its reason. All
other columns (keys, headers, offsets) are copied unchanged. Within one schema language records are converted column by
column; between two languages, value by value. New records are written to another location, and then read again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from stele.client import ResolvedSchema
from stele.client.serdes.schemas import parse_schema
from stele.errors import Invalid, InvalidRequest, SubjectNotFound
from stele.formats import rulesets
from stele.formats.conversion.convert import convert_schema
from stele.formats.conversion.model import Loss
from stele.spark.data_audit.aggregation import limit_kinds
from stele.spark.data_audit.report import AuditReport, Bars, Fact, ReportState, Section, pluralize
from stele.spark.data_audit.stored_records import TABLE, TEXTS, load_data
from stele.spark.data_audit.transcoders import HeaderMerger
from stele.spark.decode.records import ReadPlan, WritePlan, plan_read, plan_write
from stele.spark.decode.rules import RulesLike
from stele.spark.engines import get_engine
from stele.spark.engines.base import error_structs, raise_first_error
from stele.spark.functions import from_registry
from stele.spark.registry import PATIENCE, ReaderLike, RegistryLike, SchemaLookup, as_picklable, pin_schemas
from stele.spark.session import require_spark, spark_failures
from stele.spark.types.names import quote_name
from stele.spark.wires import ResolvedId, Unframed, Wire, WireLike, get_wire

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


class ReencodedId(msgspec.Struct, frozen=True):
    """The records of one old id ('' without one)."""

    id: str
    records: int
    dead: int


class Verification(msgspec.Struct, frozen=True):
    """The result of reading the new records again.

    records  number of records at the target; there_before of them were there before
    read     number of them that their schema can read, including null ones
    values   whether their values equal those of the old records; None if values were not compared
    """

    records: int
    read: int
    there_before: int = 0
    values: bool | None = None


class Migration(msgspec.Struct, frozen=True):
    """The result of a migration.

    version, id  version number and id of the schema that the new records are written with
    languages    old and new schema language; equal within one language
    records      number of records without null ones, which stay null; dead are those that were not written
    codes        dead letters by error code
    reasons      dead letters by reason
    losses       what the new schema cannot express of the old data, and how fields are matched by name
    written      whether records were written, or only counted
    """

    subject: str
    to_subject: str
    version: int
    id: int
    wires: tuple[str, str]
    languages: tuple[str, str]
    records: int
    tombstones: int
    dead: int
    bytes: int
    new_bytes: int
    ids: tuple[ReencodedId, ...]
    codes: dict[str, int]
    reasons: dict[str, int]
    losses: tuple[Loss, ...] = ()
    written: bool = False
    verified: Verification | None = None

    @property
    def is_complete(self) -> bool:
        """Whether every record was written, and the verification succeeded if there was one."""
        return not self.dead and self.is_sound

    @property
    def is_sound(self) -> bool:
        """Whether the verification found all records readable and, if compared, equal. True without a verification."""
        verified, alive = self.verified, self.records - self.dead + self.tombstones
        if verified is None:
            return True
        new = verified.records - verified.there_before
        return new == alive and verified.read == verified.records and verified.values is not False

    def report(self) -> AuditReport:
        """Return the result as a report."""
        return _make_report(self)


def _make_report(migration: Migration) -> AuditReport:
    alive = migration.records - migration.dead
    done = "written" if migration.written else "would be written"
    verdict = f"{pluralize(alive, 'record')} {done} as {migration.to_subject} v{migration.version}"
    if migration.dead:
        verdict += f", {pluralize(migration.dead, 'dead letter')}"
    if not migration.is_sound:
        verdict += "; the new records differ from what was expected"
    elif migration.verified is not None:
        verdict += "; read again"
    verification = migration.verified
    facts = [
        Fact("records", migration.records),
        Fact("dead", migration.dead),
        Fact("tombstones", migration.tombstones),
        Fact("bytes", migration.bytes),
        Fact("new bytes", migration.new_bytes),
        Fact("wire", " to ".join(dict.fromkeys(migration.wires))),
        Fact("language", " to ".join(dict.fromkeys(migration.languages))),
    ]
    if verification is not None:
        facts += [Fact("there", verification.records), Fact("readable", verification.read)]
    if verification is not None and verification.values is not None:
        facts.append(Fact("values", "the same" if verification.values else "different"))
    return AuditReport(
        title=f"Migration of {migration.subject}",
        verdict=verdict,
        state=ReportState.from_outcome(good=migration.is_complete),
        facts=tuple(facts),
        sections=(
            Section(
                "Old ids",
                ("id", "records", "dead"),
                tuple((it.id, it.records, it.dead) for it in migration.ids),
                bars=Bars("records by old id", {it.id: it.records for it in migration.ids}),
            ),
            Section("Dead letters by code", ("code", "records"), tuple(migration.codes.items())),
            Section("Dead letters by reason", ("reason", "records"), tuple(migration.reasons.items())),
            Section(
                "What is lost",
                ("field", "what", "why", "data"),
                tuple((it.path or "/", it.what, it.why, "lost" if it.data else "kept") for it in migration.losses),
            ),
        ),
    )


ERROR: Final = "error"
"""The column of dead letters with the error struct of `from_registry`: (schema_id, offset, code, reason)."""
MOST_REASONS: Final = 200
"""Maximum number of different reasons."""


@dataclass(frozen=True)
class MigratedRecords:
    """Old records in their new form. Each DataFrame decodes again: call `every.persist()` first if both are used.

    good   all columns, with the records in their new form
    dead   all columns as they were, and the error
    every  the source of both, with column names of its own; raw and heads name the columns of old records and headers
    """

    good: DataFrame
    dead: DataFrame
    every: DataFrame
    plan: MigrationPlan
    raw: str
    heads: str | None = None

    def count_records(self) -> Migration:
        """Count records by old id and reason. Runs one Spark job. Raises `JobFailed`."""
        return _count_migration(self)


@dataclass(frozen=True, slots=True)
class MigrationPlan:
    """The plan of a migration. It is sent to tasks.

    reading  how records are decoded: within one language towards the new schema, else towards the old subject's schema
    writing  how they are encoded
    losses   losses that are known in advance
    """

    reading: ReadPlan
    writing: WritePlan
    to_subject: str
    losses: tuple[Loss, ...]
    fail_fast: bool

    @property
    def languages(self) -> tuple[str, str]:
        """The old and the new schema language."""
        return self.reading.targets[0].pinned.reader.schema_type, self.writing.writer.schema_type

    @property
    def subject(self) -> str:
        """Subject of the old records."""
        return self.reading.targets[0].pinned.subject


def migrate(
    df: DataFrame,
    column: str = "value",
    *,
    subject: str,
    registry: RegistryLike,
    to_subject: str = "",
    to_version: int | Literal["latest"] = "latest",
    wire: WireLike = "confluent",
    schema: ReaderLike | None = None,
    to_wire: WireLike | None = None,
    headers: str | None = None,
    headers_into: str = "headers",
    message: str = "",
    to_message: str = "",
    mode: Literal["FAILFAST", "DEADLETTER"] = "DEADLETTER",
    rules: RulesLike = "refuse",
    engine: str = "auto",
    patience: float = PATIENCE,
) -> MigratedRecords:
    """Write records again: decoded with their own schemas, encoded with one version, framed for one wire.

    subject      subject of the old records
    to_subject   subject of the new records, the same by default. The newest version is used unless to_version names
                 another. Between schema languages fields are matched by name; within one, by the language's own rules
    schema       for records without a frame (`wire="unframed"`), the schema they were written with: a version, a text,
                 a `Schema`; by default the subject's newest version
    to_wire      wire of the new records, by default the same
    headers      the column with the headers of records; those of the old wire are replaced
    headers_into column for headers, if there is none and the new wire needs it
    message, to_message   message or struct of Protobuf and Thrift schemas
    mode         FAILFAST: the first record that cannot be written fails the job
    engine       for Avro: vm, python, or auto
    other arguments as for `from_registry`

    No job runs yet. Raises `SubjectNotFound`, `VersionNotFound`, `CannotConvert` (fields that cannot be filled, types
    that cannot be converted), `RulesRefused`, `RegistryUnreachable`, `Invalid`, `NotInstalled`.
    """
    # Long because every choice is an argument, and all are documented here
    require_spark()
    if mode not in {"FAILFAST", "DEADLETTER"}:
        raise Invalid(f"there is no mode {mode!r}: choose FAILFAST or DEADLETTER")
    if not subject:
        raise SubjectNotFound(subject)
    get_engine(engine)
    registry = as_picklable(registry)
    writer = pin_schemas(registry, to_subject or subject, to_version, patience=patience).reader
    old = pin_schemas(registry, subject, patience=patience)
    chosen = _make_bare_wire(registry, subject, schema, patience) if wire == "unframed" else get_wire(wire)
    target = wire if to_wire is None else to_wire
    same = old.reader.schema_type == writer.schema_type
    reading = plan_read(
        registry,
        subject,
        writer if same else "latest",
        message=(to_message or message) if same else message,
        wire=chosen,
        rules=rules,
        engine=engine,
        patience=patience,
    )
    writing = plan_write(
        writer,
        registry,
        wire=Unframed(writer.id) if target == "unframed" else target,
        message=to_message or (message if same else ""),
        rules=rules,
        engine=engine,
    )
    losses = _losses_within(old.reader, writer) if same else _losses_between(old.reader, writer, message, to_message)
    plan = MigrationPlan(reading, writing, to_subject or subject, losses, mode == "FAILFAST")
    return _map_records(df, column, headers, headers_into, plan)


@dataclass(frozen=True, slots=True)
class BareRecords(Unframed):
    """Wire of records without a frame, which all have the given schema."""

    schema: ResolvedSchema = ResolvedSchema("")  # noqa: RUF009 - it cannot change

    def resolve_id(self, number: Any, lookup: SchemaLookup) -> ResolvedId | None:
        """Return the given schema for every id; see `Wire`."""
        del number, lookup
        return ResolvedId(self.schema, message="")


def _make_bare_wire(registry: RegistryLike, subject: str, schema: ReaderLike | None, patience: float) -> Wire:
    pinned = pin_schemas(registry, subject, "latest" if schema is None else schema, patience=patience).reader
    return BareRecords(pinned.id, schema=pinned)


def _losses_within(old: ResolvedSchema, new: ResolvedSchema) -> tuple[Loss, ...]:
    """Return the findings of the language's newest ruleset about reading old data with the new schema.

    Records that such a finding applies to can become dead letters.
    """
    reader, writer = parse_schema(new), parse_schema(old)
    if not reader.format.rulesets:
        return ()
    findings = rulesets.run_ruleset(reader.format, reader.parsed, writer.parsed, rulesets.newest_ruleset(reader.format))
    return tuple(Loss(it.path, it.rule, it.why, data=it.breaks) for it in findings)


def _losses_between(old: ResolvedSchema, new: ResolvedSchema, message: str, to_message: str) -> tuple[Loss, ...]:
    """Return what the new language cannot express of the old schema, and how fields are matched by name."""
    from stele.spark.data_audit.transcoders import make_neutral_model, map_by_name

    _, losses = map_by_name(make_neutral_model(old, message), make_neutral_model(new, to_message))
    reader, writer = parse_schema(old), parse_schema(new)
    conversion_losses = convert_schema(reader.format, reader.parsed, writer.format).losses if not message else []
    return (*losses, *(loss for loss in conversion_losses if loss.data))


# --- the job --------------------------------------------------------------------------------------------------------


def _map_records(
    df: DataFrame, column: str, headers: str | None, headers_into: str, plan: MigrationPlan
) -> MigratedRecords:
    """Decode and encode the records in one pass, and return good and dead ones.

    Columns are named by position: c0, c1 … are the old ones; record, headers, id and error are the result.
    """
    from pyspark.sql import functions as f
    from pyspark.sql import types as t

    names = df.columns
    raw = _column_index(names, column)
    if not isinstance(df.schema.fields[raw].dataType, t.BinaryType | t.NullType):
        raise Invalid(f"framed records are a binary column, {column!r} is {df.schema[column].dataType.simpleString()}")
    heads = None if headers is None else _column_index(names, headers)
    if heads is None and plan.reading.wire.needs_headers:
        raise Invalid("this wire has ids in record headers: name their column, such as headers='headers'")
    headed = heads is not None or plan.writing.wire.needs_headers
    if headed and heads is None and headers_into in names:
        raise Invalid(
            f"the data have a column {headers_into!r}: name it if it holds the headers, or choose another name"
        )
    every = df.toDF(*(f"c{n}" for n in range(len(names))))
    original_fields = [t.StructField(f"c{n}", field.dataType) for n, field in enumerate(df.schema.fields)]
    pairs = t.ArrayType(t.StructType([t.StructField("key", t.StringType()), t.StructField("value", t.BinaryType())]))
    added = [t.StructField("record", t.BinaryType())]
    added += [t.StructField("headers", pairs)] if headed else []
    error = t.StructType(
        [
            t.StructField("schema_id", t.StringType()),
            t.StructField("offset", t.IntegerType()),
            t.StructField("code", t.StringType()),
            t.StructField("reason", t.StringType()),
        ]
    )
    added += [t.StructField("id", t.StringType()), t.StructField("error", error)]
    mapped = every.mapInArrow(_MigrationTask(plan, raw, heads, headed=headed), t.StructType([*original_fields, *added]))
    news = {raw: "record"} | ({heads: "headers"} if heads is not None else {})
    columns = [f.col(news.get(n, f"c{n}")).alias(name) for n, name in enumerate(names)]
    if headed and heads is None:
        columns.append(f.col("headers").alias(headers_into))
    good = mapped.where("error IS NULL").select(*columns)
    dead = mapped.where("error IS NOT NULL").select(*(f"c{n}" for n in range(len(names))), "error")
    return MigratedRecords(
        good, dead.toDF(*names, _free_name(names)), mapped, plan, f"c{raw}", None if heads is None else f"c{heads}"
    )


def _free_name(names: Sequence[str]) -> str:
    """Return a name for the error column that no other column has."""
    name = ERROR
    while name in names:
        name = f"_{name}"
    return name


def _column_index(names: Sequence[str], name: str) -> int:
    if names.count(name) != 1:
        raise Invalid(f"there must be exactly one column {name!r}: the DataFrame has {', '.join(names)}")
    return names.index(name)


class _MigrationTask:
    """The function that Spark applies to each partition."""

    def __init__(self, plan: MigrationPlan, raw: int, heads: int | None, *, headed: bool) -> None:
        self._plan, self._raw, self._heads, self._headed = plan, raw, heads, headed

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        from stele.spark.data_audit.transcoders import make_transcoder

        transcoder = make_transcoder(self._plan.reading, self._plan.writing)
        merger = HeaderMerger(self._plan.reading.wire)
        for batch in batches:
            old = None if self._heads is None else batch.column(self._heads)
            records, headers = transcoder.transcode(batch.column(self._raw), old)
            if self._plan.fail_fast:
                raise_first_error(records)
            columns = [*batch.columns, records.values]
            if self._headed:
                columns.append(merger.merge_headers(old, headers, batch.num_rows))
            ids = records.schema_ids.cast(pa.string())
            columns += [ids, error_structs(replace(records, schema_ids=ids))]
            names = [*batch.schema.names, "record", *(["headers"] if self._headed else []), "id", "error"]
            yield pa.RecordBatch.from_arrays(columns, names)


# --- the answer -----------------------------------------------------------------------------------------------------


def _count_migration(migrated: MigratedRecords) -> Migration:
    from pyspark.sql import functions as f

    plan = migrated.plan
    there = f.col(migrated.raw).isNotNull()
    groups = migrated.every.groupBy("id", "error.code", "error.reason").agg(
        f.count_if(there).alias("records"),
        f.count_if(~there).alias("nulls"),
        f.sum(f.length(migrated.raw)).alias("old"),
        f.sum(f.length("record")).alias("new"),
    )
    with spark_failures():
        rows = groups.collect()
    ids: dict[str, list[int]] = {}
    codes: dict[str, int] = {}
    reasons: dict[str, int] = {}
    for row in rows:
        counts = ids.setdefault(row["id"] or "", [0, 0])
        counts[0] += row["records"]
        if row["code"] is not None:
            counts[1] += row["records"]
            codes[row["code"]] = codes.get(row["code"], 0) + row["records"]
            reasons[row["reason"]] = reasons.get(row["reason"], 0) + row["records"]
    return Migration(
        subject=plan.subject,
        to_subject=plan.to_subject,
        version=plan.writing.writer.version,
        id=plan.writing.writer.id,
        wires=(plan.reading.wire.name, plan.writing.wire.name),
        languages=plan.languages,
        records=sum(row["records"] for row in rows),
        tombstones=sum(row["nulls"] for row in rows),
        dead=sum(codes.values()),
        bytes=sum(row["old"] or 0 for row in rows),
        new_bytes=sum(row["new"] or 0 for row in rows),
        ids=tuple(ReencodedId(name, *counts) for name, counts in sorted(ids.items()) if counts[0]),
        codes=dict(sorted(codes.items())),
        reasons=limit_kinds(reasons, MOST_REASONS),
        losses=plan.losses,
    )


ExistingData = Literal["refuse", "append", "overwrite"]
"""What happens to data that are already at the target."""
_SPARK_MODE: Final = {"refuse": "errorifexists", "append": "append", "overwrite": "overwrite"}


class OutputTarget(msgspec.Struct, frozen=True):
    """Destination of records: a path, or a table's name for the format `table`.

    existing  what happens to data that are already there
    """

    path: str
    format: str = "parquet"
    existing: ExistingData = "refuse"


def check_separate(source: str, target: OutputTarget, dead: OutputTarget, source_format: str) -> None:
    """Raise `InvalidRequest` if the locations of old records, new records and dead letters overlap."""
    places = {
        "the old records": _absolute_location(source, source_format),
        "new ones": _absolute_location(target.path, target.format),
        "dead letters": _absolute_location(dead.path, dead.format),
    }
    names = list(places)
    for at, one in enumerate(names):
        for other in names[at + 1 :]:
            first, second = places[one], places[other]
            if first == second or first.startswith(f"{second}/") or second.startswith(f"{first}/"):
                raise InvalidRequest(f"{one} are at {first}, {other} would be at {second}: choose separate locations")


def check_empty(spark: SparkSession, target: OutputTarget) -> None:
    """Raise `InvalidRequest` if the target has data and `existing` is `refuse`."""
    if target.existing == "refuse" and _has_data(spark, target):
        raise InvalidRequest(f"{target.path} already exists: choose whether to append to it or to overwrite it")


def write_records(df: DataFrame, target: OutputTarget, column: str) -> None:
    """Write records; in formats of text their column is base64. Raises `JobFailed`."""
    from pyspark.sql import functions as f

    with spark_failures():
        if target.format in TEXTS:
            df = df.withColumn(column, f.base64(f.col(quote_name(column))))
        # an existing, empty folder needs no protection
        mode = "append" if target.existing == "refuse" else _SPARK_MODE[target.existing]
        writer = df.write.mode(mode)
        if target.format == TABLE:
            writer.saveAsTable(target.path)
        else:
            writer.format(target.format).option("header", "true").save(target.path)


def count_records(spark: SparkSession, target: OutputTarget) -> int:
    """Return the number of records at the target, 0 if nothing is there. Raises `JobFailed`."""
    if not _has_data(spark, target):
        return 0
    with spark_failures():
        return int(load_data(spark, target.path, target.format).count())


def verify_records(
    spark: SparkSession,
    target: OutputTarget,
    column: str,
    headers: str | None,
    moved: MigratedRecords,
    *,
    before: int = 0,
    values: bool = False,
) -> Verification:
    """Read the written records with their own schema, and compare them.

    before  number of records that were there already
    values  whether values are compared with those of the old records, read with the new schema. Possible within one
            language only, and only if the target was empty

    Raises `Invalid`, `JobFailed`.
    """
    from pyspark.sql import functions as f

    plan = moved.plan
    if values and (plan.languages[0] != plan.languages[1] or before):
        raise Invalid("values can only be compared within one schema language and for a target that was empty")
    with spark_failures():
        there = load_data(spark, target.path, target.format)
        if target.format in TEXTS:
            there = there.withColumn(column, f.unbase64(f.col(quote_name(column))))
        read = _read_new(there, column, headers, moved)
        row = read.agg(
            f.count("*").alias("n"), f.count_if(f.isnull("value_error")).alias("good"), _digest_column()
        ).collect()[0]
        same = None
        if values:
            old = moved.every.where("error IS NULL").select(f.col(moved.raw).alias(column), *_old_headers(moved))
            same = _read_old(old, column, moved).agg(_digest_column()).collect()[0]["digest"] == row["digest"]
    return Verification(row["n"], row["good"], before, same)


def with_verification(migration: Migration, verification: Verification | None) -> Migration:
    """Return the result of a migration whose records are written."""
    return msgspec.structs.replace(migration, written=True, verified=verification)


def _read_new(df: DataFrame, column: str, headers: str | None, moved: MigratedRecords) -> DataFrame:
    writing = moved.plan.writing
    return from_registry(
        df,
        column,
        subject=moved.plan.to_subject,
        registry=writing.registry,
        reader=writing.writer,
        mode="PERMISSIVE",
        wire=writing.wire,
        headers=headers if writing.wire.needs_headers else None,
        message=writing.message,
        rules="ignore",
        keep=(),
        engine=writing.engine,
    )


def _read_old(df: DataFrame, column: str, moved: MigratedRecords) -> DataFrame:
    reading = moved.plan.reading
    return from_registry(
        df,
        column,
        subject=moved.plan.subject,
        registry=reading.registry,
        reader=moved.plan.writing.writer,
        mode="PERMISSIVE",
        wire=reading.wire,
        headers="headers" if reading.wire.needs_headers else None,
        message=reading.targets[0].message,
        rules="ignore",
        keep=(),
        engine=reading.engine,
    )


def _old_headers(moved: MigratedRecords) -> list[Any]:
    from pyspark.sql import functions as f

    return [f.col(moved.heads).alias("headers")] if moved.heads is not None else []


def _digest_column() -> Any:
    """Return a column with a sum over all values that does not depend on their order."""
    from pyspark.sql import functions as f

    text = f.to_json(f.struct("value"))
    return f.sum(f.xxhash64(text).cast("decimal(38, 0)")).alias("digest")


def _has_data(spark: SparkSession, target: OutputTarget) -> bool:
    if target.format == TABLE:
        return bool(spark.catalog.tableExists(target.path))
    path = Path(target.path)
    if "://" in target.path:
        # only Spark can look into this scheme: reading an empty location fails, which means that it has no data
        from pyspark.errors import AnalysisException

        try:
            load_data(spark, target.path, target.format)
        except AnalysisException:
            return False
        return True
    return path.exists() and (path.is_file() or any(path.iterdir()))


def _absolute_location(path: str, format_: str) -> str:
    if format_ == TABLE:
        return f"table {path}"
    return path.rstrip("/") if "://" in path else str(Path(path).resolve())
