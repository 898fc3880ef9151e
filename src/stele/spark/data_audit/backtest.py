"""Backtest: whether a proposed schema can read all stored records."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from stele.client import ResolvedSchema
from stele.client.serdes.schemas import parse_schema
from stele.core.findings import Finding, Verdict, WhenUndecided
from stele.errors import DataError, DecodeError, Invalid
from stele.formats import rulesets
from stele.spark.data_audit.aggregation import (
    CHOSEN,
    HEADERS,
    POSITION,
    RAW,
    RecordColumn,
    add_counts,
    aggregate_records,
    count_values,
    limit_kinds,
    merge_sorted,
)
from stele.spark.data_audit.audit_scope import AuditScope, SubjectLike, load_scope
from stele.spark.data_audit.data_stats import MOST_REASONS, NO_ID, AuditContext, WriterDecoders
from stele.spark.data_audit.report import AuditReport, Bars, Fact, ReportState, Section, pluralize
from stele.spark.engines.arrow import Column
from stele.spark.engines.error_codes import describe_errors
from stele.spark.registry import PATIENCE, ReaderLike, RegistryLike, pin_schemas
from stele.spark.session import require_spark
from stele.spark.wires import WireLike
from stele.spark.wires.normalize import FrameNormalizer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

HEX: Final = 32
"""Number of leading bytes of a failing record that are shown."""
_JSON: Final = "JSON"


class FailingRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """A record that the proposed schema cannot read.

    position  the columns that locate it, as the text of a JSON object; '' without such columns
    bytes     its size in bytes
    hex       its first bytes
    """

    id: str
    position: str
    bytes: int
    hex: str
    reason: str
    damaged: bool = False


class BacktestCounts(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result for the records of one id.

    decoded  number of records that were tried
    broken   records that the proposed schema cannot read and their own can, by reason
    damaged  records that neither schema can read, by reason
    nulls    null records: under `NO_ID` only
    most     maximum number of examples
    """

    records: int = 0
    decoded: int = 0
    broken: dict[str, int] = {}
    damaged: dict[str, int] = {}
    examples: list[FailingRecord] = []
    nulls: int = 0
    most: int = 0

    def merge_with(self, other: BacktestCounts) -> BacktestCounts:
        """Return the result for both sets of records; see `PartialResult.merge_with`."""
        most = max(self.most, other.most)
        return BacktestCounts(
            records=self.records + other.records,
            decoded=self.decoded + other.decoded,
            broken=add_counts(self.broken, other.broken, MOST_REASONS),
            damaged=add_counts(self.damaged, other.damaged, MOST_REASONS),
            examples=merge_sorted(self.examples, other.examples, most, _sort_key),
            nulls=self.nulls + other.nulls,
            most=most,
        )


def _sort_key(example: FailingRecord) -> tuple[Any, ...]:
    """Return a sort key: broken records first, then damaged ones, each by position with numbers in numeric order."""
    try:
        parts = list(json.loads(example.position or "{}").values())
    except ValueError:
        parts = []
    ranked = [(0, part, "") if isinstance(part, int | float) else (1, 0, str(part)) for part in parts]
    return (example.damaged, ranked, example.hex, example.reason)


@dataclass(frozen=True, slots=True)
class BacktestAggregator:
    """Tries the proposed schema on records. `examples` is the number of failing records that are kept for each id."""

    context: AuditContext
    proposed: ResolvedSchema
    examples: int = 10
    result_type = BacktestCounts

    @property
    def needs_headers(self) -> bool:
        """Whether the wire needs the headers of records."""
        return self.context.wire.needs_headers

    def start_task(self) -> Callable[[pa.RecordBatch], Mapping[str, BacktestCounts]]:
        """Return the function for one task; see `Aggregator.start_task`."""
        return _BacktestTask(self).aggregate_batch


class _BacktestTask:
    """Computes the results of one task's batches, and keeps the decoders between batches."""

    def __init__(self, question: BacktestAggregator) -> None:
        self._question = question
        lookup = question.context.make_lookup()
        self._own = WriterDecoders(question.context, lookup)
        if question.proposed.schema_type.upper() == _JSON:
            self._reasons = JsonRecordValidator(question.context, question.proposed).reasons
        else:
            decoder = question.context.make_decoder(question.proposed)
            self._reasons = lambda raw, headers: describe_errors(decoder.decode(raw, headers))

    def aggregate_batch(self, batch: pa.RecordBatch) -> Mapping[str, BacktestCounts]:
        raw: Column = batch.column(RAW)
        headers: Column = batch.column(HEADERS) if HEADERS in batch.schema.names else None
        parts = self._question.context.wire.split(raw, headers)
        there = raw.is_valid()
        chosen = pc.and_(there, batch.column(CHOSEN)) if CHOSEN in batch.schema.names else there
        reasons = self._reasons(pc.if_else(chosen, raw, None), headers)
        counts = {str(key): count for key, count in count_values(parts.ids.filter(there)).items()}
        counts[NO_ID] = pc.sum(pc.and_(there, parts.ids.is_null())).as_py() or 0
        tried: dict[str, BacktestCounts] = {}
        names = parts.ids.cast(pa.string()).fill_null(NO_ID)
        for name, records in counts.items():
            mine = pc.equal(names, pa.scalar(name))
            decoded = pc.sum(pc.and_(mine, chosen)).as_py() or 0
            failing = pc.and_(pc.and_(mine, chosen), reasons.is_valid())
            tried[name] = self._examine_failures(
                name, batch, failing, parts.ids, reasons, BacktestCounts(records, decoded)
            )
        tried[NO_ID] = msgspec.structs.replace(tried[NO_ID], nulls=raw.null_count)
        return tried

    def _examine_failures(
        self, name: str, batch: pa.RecordBatch, failing: Column, ids: Column, reasons: Column, so_far: BacktestCounts
    ) -> BacktestCounts:
        """Return the counts of an id with its failures: those that are damaged in any case, and the first examples."""
        most = self._question.examples
        if not pc.any(failing).as_py():
            return msgspec.structs.replace(so_far, most=most)
        rows, why = batch.filter(failing), reasons.filter(failing)
        raw: Column = rows.column(RAW)
        heads: Column = pc.binary_slice(raw, 0, HEX)
        sizes: Column = pc.binary_length(raw)
        lost: Column = pa.array([True] * len(raw))
        if name != NO_ID:
            decoder, _ = self._own.get_decoder(ids.filter(failing)[0].as_py())
            if decoder is not None:
                headers = rows.column(HEADERS) if HEADERS in rows.schema.names else None
                lost = decoder.decode(raw, headers).is_bad()
        places = rows.column(POSITION).to_pylist() if POSITION in rows.schema.names else [""] * len(raw)
        failures = zip(places, heads.to_pylist(), sizes.to_pylist(), strict=True)
        examples = [
            FailingRecord(name, place or "", size, data.hex(), reason, bad)
            for (place, data, size), reason, bad in zip(failures, why.to_pylist(), lost.to_pylist(), strict=True)
        ]
        return msgspec.structs.replace(
            so_far,
            broken=limit_kinds(count_values(why.filter(pc.invert(lost))), MOST_REASONS),
            damaged=limit_kinds(count_values(why.filter(lost)), MOST_REASONS),
            examples=merge_sorted(examples, [], most, _sort_key),
            most=most,
        )


class JsonRecordValidator:
    """Validates JSON records against the proposed schema, as decoding checks them against their own schema only."""

    def __init__(self, frame: AuditContext, proposed: ResolvedSchema) -> None:
        self._normalizer = FrameNormalizer(frame.wire, frame.make_lookup(), frame.message)
        parsed = parse_schema(proposed)
        self._decode = parsed.format.codec(parsed.parsed).decode

    def reasons(self, raw: Column, headers: Column | None) -> Column:
        """Return the reason for each invalid record, and null for the others."""
        frames = self._normalizer.normalize(raw, headers)
        known = zip(
            describe_errors(frames).to_pylist(), pc.binary_slice(frames.frames, 5, 1 << 31).to_pylist(), strict=True
        )
        return pa.array([why or self._validate_record(data, padded=frames.padded) for why, data in known], pa.string())

    def _validate_record(self, data: bytes | None, *, padded: bool) -> str | None:
        if data is None:
            return None
        try:
            self._decode(data.rstrip(b"\0") if padded else data)
        except (DecodeError, DataError, Invalid) as error:
            return str(error)
        return None


class BacktestComparison(msgspec.Struct, frozen=True):
    """The comparison by rules of the proposed schema with the schema of an id.

    verdict  the verdict of the rules; `unknown` if the id has no schema, or one of another format
    """

    id: str
    places: tuple[str, ...]
    records: int
    verdict: str
    findings: tuple[Finding, ...] = ()
    note: str = ""


class BacktestFailure(msgspec.Struct, frozen=True):
    """Records that the proposed schema cannot read, by id ('' without one) and reason.

    damaged  whether their own schema cannot read them either, or is unknown
    """

    id: str
    reason: str
    records: int
    damaged: bool


class Backtest(msgspec.Struct, frozen=True):
    """The result of a backtest.

    ruleset   name of the ruleset that compared the schemas
    decoded   number of records that were tried, out of `records`
    sample    the fraction of records that was to be tried
    failures  most frequent first
    examples  the first failing records of each id
    """

    subjects: tuple[str, ...]
    ruleset: str
    records: int
    decoded: int
    tombstones: int
    sample: float
    comparisons: tuple[BacktestComparison, ...]
    failures: tuple[BacktestFailure, ...]
    examples: tuple[FailingRecord, ...]

    @property
    def broken_records(self) -> int:
        """Number of records that the proposed schema cannot read, but their own can."""
        return sum(it.records for it in self.failures if not it.damaged)

    @property
    def damaged_records(self) -> int:
        """Number of records that neither schema can read."""
        return sum(it.records for it in self.failures if it.damaged)

    @property
    def incompatible_ids(self) -> list[str]:
        """Ids in the data whose schemas the rules refuse, or cannot decide about."""
        return [it.id for it in self.comparisons if it.verdict in {"incompatible", "undecided"}]

    def has_passed(self, *, allow_damaged: bool = False) -> bool:
        """Return whether rules and records pass. With `allow_damaged`, damaged records do not count as failures."""
        return not self.incompatible_ids and not self.broken_records and (allow_damaged or not self.damaged_records)

    def report(self) -> AuditReport:
        """Return the result as a report."""
        return _make_report(self)


def backtest(
    df: DataFrame,
    column: str = "value",
    *,
    schema: ReaderLike,
    registry: RegistryLike,
    subject: SubjectLike,
    ruleset: str = "",
    undecided: WhenUndecided = WhenUndecided.REFUSE,
    sample: float = 1.0,
    seed: int = 0,
    wire: WireLike = "confluent",
    headers: str | None = None,
    message: str = "",
    position: Sequence[str] = (),
    examples: int = 10,
    engine: str = "auto",
    patience: float = PATIENCE,
) -> Backtest:
    """Read stored records with a proposed schema. Runs one Spark job over a batch DataFrame.

    schema     the proposed schema: text, `Schema` or file; a version number tries a registered one
    subject    subject of the proposed schema; of several, the first one decides the format and the context of ids
    ruleset    name of a ruleset; the format's default unless given
    sample     fraction of the records that is decoded; schema ids are collected from all records
    position   columns that locate a record, for examples
    examples   number of failing records that are shown for each id
    registry, wire, headers, message, engine, patience   as for `census`

    Raises `SubjectNotFound`, `VersionNotFound`, `MalformedSchema`, `UnknownRuleset`, `RegistryUnreachable`, `Invalid`,
    `JobFailed`, `NotInstalled`.
    """
    require_spark()
    scope = load_scope(registry, subject, wire=wire, message=message, patience=patience, engine=engine)
    if not scope.context.subject:
        raise Invalid("no subject given: name the subject of the proposed schema")
    proposed = pin_schemas(scope.context.registry, scope.context.subject, schema, patience=patience).reader
    fmt = parse_schema(proposed).format
    rules = rulesets.newest_ruleset(fmt, ruleset) if ruleset or fmt.rulesets else ""
    question = BacktestAggregator(scope.context, proposed, examples)
    records = RecordColumn(df, column, headers, position=tuple(position))
    tried = aggregate_records(records, question, sample=sample, seed=seed)
    return make_backtest(tried, scope, proposed, rules, undecided, sample)


def make_backtest(
    tried: Mapping[str, BacktestCounts],
    scope: AuditScope,
    proposed: ResolvedSchema,
    ruleset: str,
    undecided: WhenUndecided = WhenUndecided.REFUSE,
    sample: float = 1.0,
) -> Backtest:
    """Return the backtest from the counts of each id."""
    named = sorted(((n, it) for n, it in tried.items() if n != NO_ID), key=lambda item: (-item[1].records, item[0]))
    failures = [
        BacktestFailure(name, reason, count, damaged)
        for name, trial in tried.items()
        for damaged, reasons in ((False, trial.broken), (True, trial.damaged))
        for reason, count in reasons.items()
    ]
    return Backtest(
        subjects=tuple(dict.fromkeys(version.subject for version in scope.versions)),
        ruleset=ruleset,
        records=sum(trial.records for trial in tried.values()),
        decoded=sum(trial.decoded for trial in tried.values()),
        tombstones=tried.get(NO_ID, BacktestCounts()).nulls,
        sample=sample,
        comparisons=tuple(_compare_schema(name, it.records, scope, proposed, ruleset, undecided) for name, it in named),
        failures=tuple(sorted(failures, key=lambda it: (-it.records, it.id, it.reason))),
        examples=tuple(example for _, trial in sorted(tried.items()) for example in trial.examples),
    )


def _compare_schema(
    name: str, records: int, scope: AuditScope, proposed: ResolvedSchema, ruleset: str, undecided: WhenUndecided
) -> BacktestComparison:
    schema, note = scope.find_schema(name)
    if schema is None:
        return BacktestComparison(name, (), records, "unknown", note=note)
    places = tuple(map(str, scope.find_locations(schema)))
    if schema.schema_type != proposed.schema_type:
        reason = f"it is {schema.schema_type}, the proposed schema is {proposed.schema_type}"
        return BacktestComparison(name, places, records, "incompatible", note=reason)
    try:
        reader, writer = parse_schema(proposed), parse_schema(schema)
    except Invalid as error:
        return BacktestComparison(name, places, records, "unknown", note=str(error))
    ruleset_findings = rulesets.run_ruleset(reader.format, reader.parsed, writer.parsed, ruleset) if ruleset else []
    findings = undecided.weigh_findings(ruleset_findings)
    return BacktestComparison(name, places, records, Verdict.from_findings(findings).value, findings)


def _make_report(result: Backtest) -> AuditReport:
    good = result.has_passed()
    return AuditReport(
        title="Backtest" + (f" for {', '.join(result.subjects)}" if result.subjects else ""),
        verdict=f"the schema reads {pluralize(result.decoded, 'record')} of {result.records:,}"
        if good
        else _describe_failure(result),
        state=ReportState.from_outcome(good=good),
        facts=(
            Fact("records", result.records),
            Fact("decoded", result.decoded),
            Fact("not read", result.broken_records),
            Fact("damaged anyway", result.damaged_records),
            Fact("tombstones", result.tombstones),
            Fact("rules", result.ruleset or "none"),
        ),
        sections=(
            Section(
                "By the rules",
                ("id", "registered as", "records", "verdict", "note"),
                tuple((it.id, ", ".join(it.places), it.records, it.verdict, it.note) for it in result.comparisons),
            ),
            Section(
                "Findings",
                ("id", "rule", "at", "why", "fix"),
                tuple(
                    (it.id, each.rule, each.path or "/", each.why, each.fix)
                    for it in result.comparisons
                    for each in it.findings
                ),
            ),
            Section(
                "Records that are not read",
                ("id", "reason", "records", "by their own schema"),
                tuple(
                    (it.id, it.reason, it.records, "not read either" if it.damaged else "read")
                    for it in result.failures
                ),
                bars=Bars("failing records by reason", _sum_by_reason(result.failures)),
            ),
            Section(
                "First failing records",
                ("id", "position", "bytes", "begins with", "reason"),
                tuple((it.id, it.position, it.bytes, it.hex, it.reason) for it in result.examples),
            ),
        ),
    )


def _describe_failure(result: Backtest) -> str:
    parts = [
        f"the rules refuse {', '.join(f'id {name}' for name in result.incompatible_ids)}"
        if result.incompatible_ids
        else "",
        f"{pluralize(result.broken_records, 'record')} not read" if result.broken_records else "",
        f"{pluralize(result.damaged_records, 'record')} damaged, whatever the schema" if result.damaged_records else "",
    ]
    return ", ".join(part for part in parts if part)


def _sum_by_reason(failures: Sequence[BacktestFailure]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for it in failures:
        sums[it.reason] = sums.get(it.reason, 0) + it.records
    return sums
