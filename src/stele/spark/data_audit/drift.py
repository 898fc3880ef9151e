"""Drift: what a schema allows and its data never use, such as unset fields, unwritten symbols, and types too wide.

A finding describes the data that were read. It is a question to their owner, not an error. Fields are the columns of
`from_registry`. Each field is judged over all ids that have it, and over single ids where that gives more findings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from stele.client import ResolvedSchema
from stele.client.serdes.schemas import parse_schema
from stele.errors import Invalid
from stele.formats.capabilities import ToModel
from stele.formats.conversion.model import Array, Enumeration, Map, Model, RecordType, Type, TypeReference
from stele.spark.data_audit.aggregation import RecordColumn, aggregate_records
from stele.spark.data_audit.audit_scope import AuditScope, SubjectLike, load_scope
from stele.spark.data_audit.data_stats import (
    NO_ID,
    Fields,
    FieldStats,
    SchemaStats,
    SchemaStatsAggregator,
    merge_fields,
)
from stele.spark.data_audit.report import AuditReport, Bars, Fact, ReportState, Section, pluralize
from stele.spark.data_audit.subject_evolution import SubjectEvolution, describe_missing, draw_evolutions
from stele.spark.registry import PATIENCE, RegistryLike
from stele.spark.session import require_spark
from stele.spark.wires import WireLike

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LEAST: Final = 20
"""Default minimum number of values for a finding about a type."""
_FEW, _EACH = 16, 5
"""Limits of the finding FEW_VALUES: at most `_FEW` different texts, each occurring `_EACH` times on average."""
_INT32: Final = (-(2**31), 2**31 - 1)
_TELLING: Final = ("uuid", "timestamp", "date", "boolean", "integer", "number")
_MOST_NODES: Final = 2000


class Drift(msgspec.Struct, frozen=True):
    """One thing that the schema allows and the data do not use.

    kind    NEVER_SET, NULL_ITEMS, UNUSED_SYMBOLS, CONSTANT, CONSTANT_KEYS, FITS_INT, WHOLE_NUMBERS, FEW_VALUES,
            TEXT_IS_UUID and so on
    path    path of the column, as in `data_stats`
    type    type of the column
    why     one sentence with the figures
    fix     one sentence on what could be done
    values  number of values it is based on; for NEVER_SET, number of records that could hold the field
    ids     ids that it applies to
    """

    kind: str
    path: str
    type: str
    why: str
    fix: str
    values: int
    ids: tuple[str, ...]


_MakeDrift: TypeAlias = Callable[[str, str, str], Drift]


class DriftReport(msgspec.Struct, frozen=True):
    """The result of a comparison of schemas with their data.

    read        number of records that were read, out of `records`
    drifts      findings by path
    single      findings that apply to single ids only, whose records are of different versions
    notes       why the fields of an id were not examined, by id
    fields      the statistics of the fields, by path
    evolutions  histories of the subjects' versions and fields, as far as the registry has them
    """

    subjects: tuple[str, ...]
    records: int
    read: int
    ids: dict[str, tuple[str, ...]]
    drifts: tuple[Drift, ...]
    single: tuple[Drift, ...] = ()
    notes: dict[str, str] = {}
    fields: dict[str, FieldStats] = {}
    evolutions: tuple[SubjectEvolution, ...] = ()

    def report(self) -> AuditReport:
        """Return the result as a report."""
        return _make_report(self)


def drift(
    df: DataFrame,
    column: str = "value",
    *,
    registry: RegistryLike,
    subject: SubjectLike = "",
    least: int = LEAST,
    sample: float = 1.0,
    seed: int = 0,
    wire: WireLike = "confluent",
    headers: str | None = None,
    message: str = "",
    engine: str = "auto",
    patience: float = PATIENCE,
) -> DriftReport:
    """Compare schemas with their data. Runs one Spark job over a batch DataFrame.

    least   minimum number of values for a finding about a type
    sample  fraction of the records that is read
    other arguments as for `census`

    Raises `SubjectNotFound`, `RegistryUnreachable`, `Invalid`, `JobFailed`, `NotInstalled`.
    """
    require_spark()
    scope = load_scope(registry, subject, wire=wire, message=message, patience=patience, engine=engine)
    if not 0 < sample <= 1:
        raise Invalid(f"sample must be a fraction above 0 and at most 1, not {sample}")
    records = RecordColumn(df if sample == 1 else df.sample(fraction=sample, seed=seed), column, headers)
    return make_drift_report(aggregate_records(records, SchemaStatsAggregator(scope.context, deep=True)), scope, least)


def make_drift_report(stats_by_id: Mapping[str, SchemaStats], scope: AuditScope, least: int = LEAST) -> DriftReport:
    """Return the result from the statistics of each id."""
    named = {name: it for name, it in sorted(stats_by_id.items()) if name != NO_ID}
    whole: Fields = {}
    symbols: dict[str, dict[str, tuple[str, ...]]] = {}
    places: dict[str, tuple[str, ...]] = {}
    for name, sighting in named.items():
        whole = merge_fields(whole, sighting.fields)
        schema, _ = scope.find_schema(name)
        symbols[name] = collect_enumerations(schema) if schema else {}
        places[name] = tuple(str(it.location) for it in scope.matching_versions(schema)) if schema else ()
    everywhere: dict[str, tuple[str, ...]] = {}
    for declared in symbols.values():
        for path, words in declared.items():
            everywhere[path] = tuple(dict.fromkeys((*everywhere.get(path, ()), *words)))
    drifts: list[Drift] = []
    for path, stats in whole.items():
        ids = tuple(name for name, it in named.items() if path in it.fields)
        drifts += find_drifts(path, stats, everywhere.get(path, ()), ids, least)
    reported = {(it.kind, it.path) for it in drifts}
    single = [
        finding
        for name, it in named.items()
        for path, stats in it.fields.items()
        for finding in find_drifts(path, stats, symbols[name].get(path, ()), (name,), least)
        if (finding.kind, path) not in reported
    ]
    return DriftReport(
        subjects=tuple(dict.fromkeys(version.subject for version in scope.versions)),
        records=sum(it.records for it in stats_by_id.values()),
        read=sum(it.records - sum(it.reasons.values()) for it in named.values() if it.fields),
        ids=places,
        drifts=tuple(sorted(drifts, key=lambda it: (it.path, it.kind))),
        single=tuple(single),
        notes={name: it.note for name, it in named.items() if it.note},
        fields=whole,
        evolutions=scope.load_evolutions(),
    )


def find_drifts(
    path: str, stats: FieldStats, symbols: tuple[str, ...], ids: tuple[str, ...], least: int = LEAST
) -> Iterator[Drift]:
    """Yield the findings about a field. `symbols` are those that its enumeration declares, if it is one."""

    def say(kind: str, why: str, fix: str, values: int = stats.present) -> Drift:
        return Drift(kind, path, stats.type, why, fix, values, ids)

    if stats.slots and not stats.present:
        kind = "NULL_ITEMS" if path.endswith(("[]", "{}")) else "NEVER_SET"
        why = f"It is null in all {stats.slots:,} places it could be in."
        yield say(kind, why, "Find out whether a producer still writes it.", stats.slots)
        return
    if stats.present < least:
        return
    values = stats.values or {}
    if symbols:
        unused = [word for word in symbols if word not in values]
        if unused and stats.values is not None:
            why = f"Of {len(symbols)} symbols {len(unused)} were never written: {_join_words(unused)}."
            yield say("UNUSED_SYMBOLS", why, "Check whether the symbols are still needed.")
        return
    if stats.entries:
        if values and stats.entries == stats.present * len(values):
            why = f"Each of {stats.present:,} maps has the same keys: {_join_words(list(values))}."
            yield say("CONSTANT_KEYS", why, "A record with these fields says more than a map.")
        return
    if len(values) == 1:
        why = f"All {stats.present:,} values are {next(iter(values))!r}."
        yield say("CONSTANT", why, "Use a default, or check whether a producer sets the field.")
        return
    yield from _find_wide_types(stats, say)


def _find_wide_types(stats: FieldStats, say: _MakeDrift) -> Iterator[Drift]:
    """Yield findings about a type that is wider than its values need."""
    n = stats.present
    if stats.type in {"int64", "uint32", "uint64"} and stats.low is not None and stats.high is not None:
        if _INT32[0] <= stats.low and stats.high <= _INT32[1]:
            why = f"All {n:,} values, {stats.low:,} to {stats.high:,}, fit 32 bits."
            yield say("FITS_INT", why, "An int is enough; readers can widen it later.")
    elif stats.type in {"double", "float"} and stats.whole == n:
        why = f"All {n:,} values, {stats.low:,.0f} to {stats.high:,.0f}, are whole numbers."
        yield say("WHOLE_NUMBERS", why, "A long is exact where this is not.")
    elif stats.type in {"string", "large_string"}:
        shape = next((shape for shape in _TELLING if stats.shapes.get(shape) == n), "")
        if shape:
            why = f"All {n:,} texts can be read as {shape}."
            yield say(f"TEXT_IS_{shape.upper()}", why, f"Declare the type: {_TYPES[shape]}.")
        elif stats.values and len(stats.values) <= _FEW and n >= _EACH * len(stats.values):
            why = f"{n:,} texts have {len(stats.values)} different values: {_join_words(list(stats.values))}."
            yield say("FEW_VALUES", why, "An enumeration would show readers which values to expect.")


_TYPES: Final = {
    "uuid": "a logical type or a format uuid",
    "timestamp": "a timestamp, or the format date-time",
    "date": "a date",
    "boolean": "a boolean",
    "integer": "a long",
    "number": "a double or a decimal",
}


def _join_words(words: list[str], most: int = 8) -> str:
    first_words = ", ".join(sorted(words)[:most])
    return f"{first_words} and {len(words) - most} more" if len(words) > most else first_words


def collect_enumerations(schema: ResolvedSchema) -> dict[str, tuple[str, ...]]:
    """Return the symbols of each field that is an enumeration, by path; empty for a format without a neutral model."""
    try:
        parsed = parse_schema(schema)
        if not isinstance(parsed.format, ToModel):
            return {}
        model, _ = parsed.format.to_model(parsed.parsed)
    except Invalid:
        return {}
    symbols: dict[str, tuple[str, ...]] = {}
    todo: list[tuple[Type, str, frozenset[str]]] = [(model.root, "", frozenset())]
    for _ in range(_MOST_NODES):
        if not todo:
            break
        todo += _expand_type(model, *todo.pop(), symbols)
    return symbols


def _expand_type(
    model: Model, kind: Type, path: str, inside: frozenset[str], symbols: dict[str, tuple[str, ...]]
) -> Iterator[tuple[Type, str, frozenset[str]]]:
    """Yield the parts of a type, and add its symbols. The enclosing records `inside` are not entered again."""
    match kind:
        case Array():
            yield kind.items, f"{path}[]", inside
        case Map():
            yield kind.values, f"{path}{{}}", inside
        case TypeReference() if kind.name not in inside:
            declared = model.types.get(kind.name)
            if isinstance(declared, Enumeration):
                symbols[path] = tuple(symbol.name for symbol in declared.symbols)
            elif isinstance(declared, RecordType):
                for field in declared.fields:
                    yield field.type, f"{path}.{field.name}" if path else field.name, inside | {kind.name}


def _make_report(result: DriftReport) -> AuditReport:
    kinds: dict[str, int] = {}
    for it in result.drifts:
        kinds[it.kind] = kinds.get(it.kind, 0) + 1
    head = ("field", "type", "finding", "why", "what to do", "values", "ids")
    return AuditReport(
        title="Drift" + (f" of {', '.join(result.subjects)}" if result.subjects else ""),
        verdict=pluralize(len(result.drifts), "finding") if result.drifts else "the data use what their schemas allow",
        state=ReportState.from_outcome(good=not result.drifts),
        facts=(
            Fact("records", result.records),
            Fact("read", result.read),
            Fact("fields", len(result.fields)),
            Fact("schema ids", len(result.ids)),
        ),
        sections=(
            Section(
                "Findings",
                head,
                tuple(_drift_row(it) for it in result.drifts),
                bars=Bars("findings by kind", kinds),
            ),
            Section("Findings of single ids", head, tuple(_drift_row(it) for it in result.single)),
            Section("Not looked at", ("id", "why"), tuple(result.notes.items())),
            Section(
                "Schemas", ("id", "registered as"), tuple((name, ", ".join(it)) for name, it in result.ids.items())
            ),
            *draw_evolutions(result.evolutions),
        ),
        remarks=describe_missing(result.evolutions),
    )


def _drift_row(it: Drift) -> tuple[str | int, ...]:
    return (it.path or "(the datum)", it.type, it.kind, it.why, it.fix, it.values, ", ".join(it.ids))
