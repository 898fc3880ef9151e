"""Backtest: would a proposed schema read all that is stored?

Two answers that check each other: by the rules of the format, proposed schema against each schema in the data; and by
decoding the records themselves with the proposed schema as the reader. A record that its own schema cannot read either
is damaged, which is no fault of the proposed one; it is counted apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from stele.client import ResolvedSchema
from stele.client.serdes.schemas import parse_schema
from stele.core.findings import Finding, Verdict, WhenUndecided
from stele.errors import Invalid
from stele.formats import rulesets
from stele.spark.data_audit.aggregation import RecordColumn, aggregate_records
from stele.spark.data_audit.audit_scope import AuditScope, SubjectLike, load_scope
from stele.spark.data_audit.backtest_tasks import BacktestAggregator, BacktestCounts, FailingRecord
from stele.spark.data_audit.report import AuditReport, Bars, Fact, Section, pluralize
from stele.spark.data_audit.schema_stats import NO_ID
from stele.spark.registry.clients import PATIENCE, RegistryLike
from stele.spark.registry.snapshot import ReaderLike, pin_schemas
from stele.spark.session import require_spark
from stele.spark.wires import WireLike

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class BacktestComparison(msgspec.Struct, frozen=True):
    """The proposed schema and the one of an id, by the rules.

    verdict  what the rules say; `unknown` where there is no schema, or one of another format, to compare with
    """

    id: str
    places: tuple[str, ...]
    records: int
    verdict: str
    findings: tuple[Finding, ...] = ()
    note: str = ""


class BacktestFailure(msgspec.Struct, frozen=True):
    """Records that the proposed schema does not read, by id ('' without one) and reason.

    damaged  whether their own schema does not read them either, or is not known
    """

    id: str
    reason: str
    records: int
    damaged: bool


class Backtest(msgspec.Struct, frozen=True):
    """The whole answer.

    ruleset   name of the rules that compared
    decoded   records that were tried, of all records
    sample    the part that was to be tried
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
        """Records that the proposed schema does not read, but their own does."""
        return sum(it.records for it in self.failures if not it.damaged)

    @property
    def damaged_records(self) -> int:
        """Records that nobody reads."""
        return sum(it.records for it in self.failures if it.damaged)

    @property
    def incompatible_ids(self) -> list[str]:
        """Ids in the data whose schemas the rules refuse, or cannot judge."""
        return [it.id for it in self.comparisons if it.verdict in {"incompatible", "undecided"}]

    def has_passed(self, *, allow_damaged: bool = False) -> bool:
        """Whether rules and records say yes; allow_damaged: whatever becomes of records that nobody reads."""
        return not self.incompatible_ids and not self.broken_records and (allow_damaged or not self.damaged_records)

    def report(self) -> AuditReport:
        """The answer for people."""
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

    schema     the proposed one: text, `Schema` or file; a version number tries a registered one
    subject    for which it is proposed; of several the first one says the format and the context of ids
    ruleset    of the format, its default unless given
    sample     which part of the records is decoded; ids are looked for in all of them
    position   columns that tell where a record is, for examples
    examples   how many failing records are shown for each id
    registry, wire, headers, message, engine, patience   as for `census`

    Raises `SubjectNotFound`, `VersionNotFound`, `MalformedSchema`, `UnknownRuleset`, `RegistryUnreachable`, `Invalid`,
    `JobFailed`, `NotInstalled`.
    """
    require_spark()
    asked = load_scope(registry, subject, wire=wire, message=message, patience=patience, engine=engine)
    if not asked.context.subject:
        raise Invalid("a schema is proposed for a subject: name it")
    proposed = pin_schemas(asked.context.registry, asked.context.subject, schema, patience=patience).reader
    fmt = parse_schema(proposed).format
    rules = rulesets.newest_ruleset(fmt, ruleset) if ruleset or fmt.rulesets else ""
    question = BacktestAggregator(asked.context, proposed, examples)
    records = RecordColumn(df, column, headers, position=tuple(position))
    tried = aggregate_records(records, question, sample=sample, seed=seed)
    return make_backtest(tried, asked, proposed, rules, undecided, sample)


def make_backtest(
    tried: Mapping[str, BacktestCounts],
    asked: AuditScope,
    proposed: ResolvedSchema,
    ruleset: str,
    undecided: WhenUndecided = WhenUndecided.REFUSE,
    sample: float = 1.0,
) -> Backtest:
    """The answer, of what was tried."""
    named = sorted(((n, it) for n, it in tried.items() if n != NO_ID), key=lambda item: (-item[1].records, item[0]))
    failures = [
        BacktestFailure(name, reason, count, damaged)
        for name, trial in tried.items()
        for damaged, reasons in ((False, trial.broken), (True, trial.damaged))
        for reason, count in reasons.items()
    ]
    return Backtest(
        subjects=tuple(dict.fromkeys(version.subject for version in asked.versions)),
        ruleset=ruleset,
        records=sum(trial.records for trial in tried.values()),
        decoded=sum(trial.decoded for trial in tried.values()),
        tombstones=tried.get(NO_ID, BacktestCounts()).nulls,
        sample=sample,
        comparisons=tuple(_compare_schema(name, it.records, asked, proposed, ruleset, undecided) for name, it in named),
        failures=tuple(sorted(failures, key=lambda it: (-it.records, it.id, it.reason))),
        examples=tuple(example for _, trial in sorted(tried.items()) for example in trial.examples),
    )


def _compare_schema(
    name: str, records: int, asked: AuditScope, proposed: ResolvedSchema, ruleset: str, undecided: WhenUndecided
) -> BacktestComparison:
    schema, note = asked.find_schema(name)
    if schema is None:
        return BacktestComparison(name, (), records, "unknown", note=note)
    places = tuple(map(str, asked.find_locations(schema)))
    if schema.schema_type != proposed.schema_type:
        said = f"it is {schema.schema_type}, the proposed schema is {proposed.schema_type}"
        return BacktestComparison(name, places, records, "incompatible", note=said)
    try:
        reader, writer = parse_schema(proposed), parse_schema(schema)
    except Invalid as error:
        return BacktestComparison(name, places, records, "unknown", note=str(error))
    found = rulesets.run_ruleset(reader.format, reader.parsed, writer.parsed, ruleset) if ruleset else []
    findings = undecided.weigh_findings(found)
    return BacktestComparison(name, places, records, Verdict.from_findings(findings).value, findings)


def _make_report(found: Backtest) -> AuditReport:
    good = found.has_passed()
    return AuditReport(
        title="Backtest" + (f" for {', '.join(found.subjects)}" if found.subjects else ""),
        verdict=f"the schema reads {pluralize(found.decoded, 'record')} of {found.records:,}"
        if good
        else _describe_failure(found),
        good=good,
        facts=(
            Fact("records", found.records),
            Fact("decoded", found.decoded),
            Fact("not read", found.broken_records),
            Fact("damaged anyway", found.damaged_records),
            Fact("tombstones", found.tombstones),
            Fact("rules", found.ruleset or "none"),
        ),
        sections=(
            Section(
                "By the rules",
                ("id", "registered as", "records", "verdict", "note"),
                tuple((it.id, ", ".join(it.places), it.records, it.verdict, it.note) for it in found.comparisons),
            ),
            Section(
                "Findings",
                ("id", "rule", "at", "why", "fix"),
                tuple(
                    (it.id, each.rule, each.path or "/", each.why, each.fix)
                    for it in found.comparisons
                    for each in it.findings
                ),
            ),
            Section(
                "Records that are not read",
                ("id", "reason", "records", "by their own schema"),
                tuple(
                    (it.id, it.reason, it.records, "not read either" if it.damaged else "read") for it in found.failures
                ),
                bars=Bars("failing records by reason", _sum_by_reason(found.failures)),
            ),
            Section(
                "First failing records",
                ("id", "position", "bytes", "begins with", "reason"),
                tuple((it.id, it.position, it.bytes, it.hex, it.reason) for it in found.examples),
            ),
        ),
    )


def _describe_failure(found: Backtest) -> str:
    parts = [
        f"the rules refuse {', '.join(f'id {name}' for name in found.incompatible_ids)}"
        if found.incompatible_ids
        else "",
        f"{pluralize(found.broken_records, 'record')} not read" if found.broken_records else "",
        f"{pluralize(found.damaged_records, 'record')} damaged, whatever the schema" if found.damaged_records else "",
    ]
    return ", ".join(part for part in parts if part)


def _sum_by_reason(failures: Sequence[BacktestFailure]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for it in failures:
        sums[it.reason] = sums.get(it.reason, 0) + it.records
    return sums
