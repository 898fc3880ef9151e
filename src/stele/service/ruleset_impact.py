"""Verdicts on registered schemas under another ruleset: a report to read before adopting that ruleset.

Every active version is compared with its predecessors as the policy of its subject requires, once by the ruleset that
decides now and once by the other one. A row is a pair whose verdicts differ. A registry may be large and a comparison
slow, so the report has pages that end after a few seconds. Each page says where the next one begins.
"""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import msgspec

from stele.core import queries
from stele.core.access import Operation
from stele.core.compatibility_requests import SchemaSource
from stele.core.decide.compatibility import list_candidates
from stele.core.findings import Direction, Finding, Verdict
from stele.core.model import SettingsLevel, SubjectKey
from stele.core.policy import PolicyKind
from stele.core.ports import Format
from stele.core.state import State
from stele.errors import InvalidRequest, SteleError
from stele.formats import rulesets
from stele.formats.registry import get_format
from stele.service.rulesets import installed_formats
from stele.service.schemas import SchemaParser, SchemaTexts, collect_texts

if TYPE_CHECKING:
    from stele.service.registry import Registry

SECONDS = 3.0
"""Seconds after which a page ends."""
_BATCH = 32
"""Pairs that are compared together, off the event loop."""
_FINDINGS = 20
"""Findings a row shows: a schema of a megabyte can have tens of thousands."""


class ComparedVersions(msgspec.Struct, frozen=True):
    """The last pair a page looked at."""

    namespace: str
    subject: str
    version: int
    against: int


class ReportRequest(msgspec.Struct, frozen=True):
    """The ruleset to compare with the one that decides now.

    format      one format, '' for all
    ruleset     the other ruleset: full name, or a bare one for its newest version; '' takes the newest of every name
    everywhere  False: as if the ruleset were adopted, which affects the subjects that use its name;
                True: as if every subject of the format used it
    namespace       one namespace, None for all
    limit       rows after which a page ends
    after       where the last page ended
    """

    format: str = ""
    ruleset: str = ""
    everywhere: bool = False
    namespace: str | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 1000
    after: ComparedVersions | None = None


class ImpactRow(msgspec.Struct, frozen=True):
    """A pair of versions whose verdicts differ: `now` by `ruleset_now`, `then` by `ruleset_then`.

    direction says which of the two reads: the version (backward), or the one it is compared with (forward). Verdicts
    are compatible, incompatible, undecided, or error where a comparison failed. findings (20 at most) are those of the
    ruleset that refuses the pair, of the other ruleset if both do.
    """

    namespace: str
    subject: str
    version: int
    against: int
    direction: Direction
    ruleset_now: str
    ruleset_then: str
    now: str
    then: str
    findings: tuple[Finding, ...] = ()


class ReportPage(msgspec.Struct, frozen=True):
    """Rows in the order of namespace, subject, version.

    compared is the number of pairs that were compared; next None is the end.
    """

    rows: tuple[ImpactRow, ...]
    compared: int
    next: ComparedVersions | None = None


class _Pair(NamedTuple):
    place: ComparedVersions
    format: Format[Any]
    now: str
    then: str
    directions: tuple[Direction, ...]
    version: tuple[SchemaSource, SchemaTexts]
    against: tuple[SchemaSource, SchemaTexts]


class _Plan(NamedTuple):
    """The other rulesets by format (bare name, version), and whether they replace every ruleset."""

    formats: Mapping[str, Format[Any]]
    versions: Mapping[str, Mapping[str, int]]
    everywhere: str


async def make_report(registry: Registry, request: ReportRequest) -> ReportPage:
    """Return one page about the subjects that the caller may read.

    Raises `UnknownFormat`, `UnknownRuleset`, `InvalidRequest`.
    """
    plan = await asyncio.to_thread(_make_plan, request)
    state = await registry.fresh_state()
    until = time.monotonic() + SECONDS
    rows: list[ImpactRow] = []
    compared = 0
    can_read = registry.access.make_filter(Operation.READ)
    async for key in registry.time_slices.iterate(_list_subjects(state, request)):
        if not can_read(key):
            continue
        place = request.after if request.after is not None and _sort_key(request.after) == key else None
        # The state changes while pairs are compared, so the remaining pairs of a subject are listed again.
        while pairs := list(islice(_list_pairs(registry.state, plan, key, place), _BATCH)):
            judged = await asyncio.to_thread(_compare_pairs, registry.parser, pairs, until)
            for pair, pair_rows in zip(pairs, judged, strict=False):
                rows += pair_rows
                compared += len(pair.directions)
                place = pair.place
                if len(rows) >= request.limit:
                    return ReportPage(tuple(rows), compared, place)
            if time.monotonic() > until:
                return ReportPage(tuple(rows), compared, place)
    return ReportPage(tuple(rows), compared)


def _make_plan(request: ReportRequest) -> _Plan:
    """Return the formats concerned, loaded, and the ruleset versions to compare with."""
    if not request.format:
        if request.ruleset:
            raise InvalidRequest("a ruleset belongs to a format: give the format as well")
        formats = {fmt.name: fmt for fmt in installed_formats()}
    else:
        fmt = get_format(request.format)
        formats = {fmt.name: fmt}
    if request.everywhere and not request.ruleset:
        raise InvalidRequest("give the ruleset that replaces the current one everywhere")
    versions: dict[str, dict[str, int]] = {}
    everywhere = ""
    for name, fmt in formats.items():
        wanted = (
            [rulesets.newest_ruleset(fmt, request.ruleset)] if request.ruleset else rulesets.installed_rulesets(fmt)
        )
        table = versions.setdefault(name, {})
        for bare, version in map(rulesets.split_ruleset, wanted):
            table[bare] = max(version or rulesets.FIRST, table.get(bare, 0))
        everywhere = wanted[0] if request.everywhere else ""
    return _Plan(formats, versions, everywhere)


def _list_subjects(state: State, request: ReportRequest) -> list[SubjectKey]:
    """Return the subjects from the end of the last page on, sorted."""
    namespaces = [request.namespace] if request.namespace is not None else list(state.namespaces)
    keys = sorted(
        SubjectKey(name, subject) for name in namespaces if (s := state.find_namespace(name)) for subject in s.subjects
    )
    return keys if request.after is None else keys[bisect_left(keys, _sort_key(request.after)) :]


def _sort_key(place: ComparedVersions) -> SubjectKey:
    return SubjectKey(place.namespace, place.subject)


def _list_pairs(state: State, plan: _Plan, key: SubjectKey, after: ComparedVersions | None) -> Iterator[_Pair]:
    """Yield pairs of a subject to which two different rulesets apply, oldest version first, then newest predecessor."""
    policy = queries.policy_for(state, key)
    if policy.kind is not PolicyKind.DIRECTIONAL:
        return
    preferred = queries.settings_for(state, SettingsLevel(*key)).ruleset or ""
    for version in queries.list_versions(state.find_subject(key)):
        if after is not None and version.version_number < after.version:
            continue
        fmt = plan.formats.get(version.kind.format)
        now, then = ("", "") if fmt is None else _rulesets_now_and_then(state, plan, fmt, preferred)
        if fmt is None or now == then:
            continue
        below = list_candidates(state, key, version.kind, version.schema.attachments, before=version.version_number)
        own: tuple[SchemaSource, SchemaTexts] | None = None
        for older, backward, forward in policy.list_comparisons(below):
            place = ComparedVersions(*key, version.version_number, older.version_number)
            is_compared = (
                after is not None and after.version == version.version_number and older.version_number >= after.against
            )
            if is_compared or older.kind.format != version.kind.format:
                continue
            own = own or _text_with_references(state, version.content.sha, version.schema.attachments.references)
            other = _text_with_references(state, older.content.sha, older.schema.attachments.references)
            directions: tuple[Direction, ...] = (
                *((Direction.BACKWARD,) if backward else ()),
                *((Direction.FORWARD,) if forward else ()),
            )
            yield _Pair(place, fmt, now, then, directions, own, other)


def _rulesets_now_and_then(state: State, plan: _Plan, fmt: Format[Any], preferred: str) -> tuple[str, str]:
    """Return the full names of the ruleset that decides now, and of the other one."""
    adopted = dict(queries.adopted_rulesets(state, fmt.name))
    now = rulesets.effective_name(fmt, preferred, adopted)
    return now, plan.everywhere or rulesets.effective_name(fmt, preferred, {**adopted, **plan.versions[fmt.name]})


def _text_with_references(state: State, sha: bytes, references: Any) -> tuple[SchemaSource, SchemaTexts]:
    source = SchemaSource(sha, queries.resolve_references(state, references))
    return source, collect_texts(state, source)


def _compare_pairs(schemas: SchemaParser, pairs: list[_Pair], until: float) -> list[list[ImpactRow]]:
    """Return the rows of each pair, for as many pairs as time allows, at least one."""
    judged: list[list[ImpactRow]] = []
    for pair in pairs:
        judged.append([row for direction in pair.directions if (row := _compare_direction(schemas, pair, direction))])
        if time.monotonic() > until:
            break
    return judged


def _compare_direction(schemas: SchemaParser, pair: _Pair, direction: Direction) -> ImpactRow | None:
    """Return the row of one direction, None where both rulesets agree."""
    sides = (pair.version, pair.against) if direction is Direction.BACKWARD else (pair.against, pair.version)
    (now, before), (then, after) = (_compare_sides(schemas, pair.format, sides, name) for name in (pair.now, pair.then))
    if now == then:
        return None
    findings = after or before
    return ImpactRow(
        namespace=pair.place.namespace,
        subject=pair.place.subject,
        version=pair.place.version,
        against=pair.place.against,
        direction=direction,
        ruleset_now=pair.now,
        ruleset_then=pair.then,
        now=now,
        then=then,
        findings=tuple(findings[:_FINDINGS]),
    )


def _compare_sides(
    schemas: SchemaParser, fmt: Format[Any], sides: tuple[tuple[SchemaSource, SchemaTexts], ...], ruleset: str
) -> tuple[str, list[Finding]]:
    try:
        reader, writer = (schemas.parse_source(fmt, *side) for side in sides)
        findings = rulesets.run_ruleset(fmt, reader, writer, ruleset)
    except SteleError as error:
        return "error", [Finding(rule="NO_VERDICT", path="", why=str(error))]
    return Verdict.from_findings(findings).value, [finding for finding in findings if finding.breaks]
