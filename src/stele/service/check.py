"""The stateless check: one schema against others under a policy; behind `POST /api/check` and `stele check`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from stele.core.findings import Direction, Finding, WhenUndecided
from stele.core.policy import Policy, PolicyKind, find_policy
from stele.core.ports import Format
from stele.errors import InvalidRequest, MalformedSchema
from stele.formats import rulesets
from stele.formats.capabilities import HasLaxImports
from stele.formats.registry import get_format
from stele.service.limits import Limits
from stele.service.progress import ComparisonProgress, current_progress

_MAX_AGAINST = 1000
_MAX_FINDINGS = 10_000

Adopted = Mapping[tuple[str, str], int]
"""Versions of rulesets that a registry has adopted, by format and bare name."""


class NamedText(msgspec.Struct, frozen=True):
    """A schema another one refers to by `name`."""

    name: str
    schema: str


class Candidate(msgspec.Struct, frozen=True):
    """A schema text with the texts it refers to; name is its file name, for imports between files."""

    schema: str
    references: tuple[NamedText, ...] = ()
    name: str = ""


class CheckRequest(msgspec.Struct, frozen=True):
    """A schema to check, and the versions to compare it with.

    `against` is oldest first; a policy that is not transitive uses only its last entry. An empty `against` checks only
    whether the schema is valid. ruleset None is the format's default. A name without a version is the version in force,
    or the newest one without a registry. undecided says whether a finding that no rule can decide is refused. None uses
    the default of the server or command.
    """

    format: str
    schema: str
    policy: str = "BACKWARD"
    ruleset: str | None = None
    references: tuple[NamedText, ...] = ()
    against: tuple[Candidate, ...] = ()
    name: str = ""
    undecided: WhenUndecided | None = None


class CheckAnswer(msgspec.Struct, frozen=True):
    """Result of a check. compatible is True if no finding breaks.

    Findings name their entry of `against`, from 1. ruleset is the full name of the rules that decided, '' where nothing
    was compared. At most 10,000 findings are listed; omitted counts the others.
    """

    compatible: bool
    findings: tuple[Finding, ...]
    ruleset: str = ""
    omitted: int = 0


def check_compatibility(
    request: CheckRequest,
    limits: Limits | None = None,
    *,
    undecided: WhenUndecided = WhenUndecided.REFUSE,
    adopted: Adopted | None = None,
) -> CheckAnswer:
    """Compare a schema with earlier versions under a policy.

    `adopted` has the versions of rulesets that a registry has adopted; None without a registry. Raises `UnknownFormat`,
    `UnknownRuleset`, `UnknownPolicy`, `MalformedSchema`, `TooLarge`, and `InvalidRequest` for too many versions.
    """
    limits = limits or Limits()
    fmt = get_format(request.format)
    policy = find_policy(request.policy)
    ruleset = select_ruleset(fmt, request.ruleset or "", adopted)
    if len(request.against) > _MAX_AGAINST:
        raise InvalidRequest(f"against has {len(request.against)} entries; the limit is {_MAX_AGAINST}")

    # Only a check without comparison is strict: a comparison needs the meaning of the text, and ignores bad style.
    new = parse_candidate(
        fmt, request, limits, strict=not request.against, role="the new schema" if request.against else ""
    )
    if policy.kind is not PolicyKind.DIRECTIONAL:
        return CheckAnswer(compatible=True, findings=())
    progress = current_progress()
    progress.plan_comparisons(len(request.against))
    newest_first = _parse_newest_first(fmt, request.against, limits, progress)
    findings: list[Finding] = []
    omitted, compatible = 0, True
    for each in compare_versions(fmt, new, newest_first, policy, ruleset):
        finding = replace(each.finding, against=each.version_number)
        (weighed,) = (request.undecided or undecided).weigh_findings([finding])
        compatible = compatible and not weighed.breaks
        if len(findings) < _MAX_FINDINGS:
            progress.add_findings([weighed])
            findings.append(weighed)
        else:
            omitted += 1
    for _ in newest_first:
        pass  # Versions that the policy does not compare must be valid, too.
    decided = ruleset if request.against else ""
    return CheckAnswer(compatible, tuple(findings), decided, omitted)


def _parse_newest_first(
    fmt: Format[Any], against: tuple[Candidate, ...], limits: Limits, progress: ComparisonProgress
) -> Iterator[ParsedVersion]:
    """Yield the earlier versions, parsed, and count each as compared afterwards. Raises `MalformedSchema`."""
    for number, old in reversed(list(enumerate(against, 1))):
        try:
            parsed = parse_candidate(fmt, old, limits, strict=False, role=f"version {number} of against")
        except MalformedSchema as error:
            error.against = number
            raise
        yield ParsedVersion(number, parsed)
        progress.count_comparison()


class ParsedVersion(NamedTuple):
    """An earlier version to compare with."""

    version_number: int
    parsed: Any


class VersionFinding(NamedTuple):
    """A finding, the version it is about, and the direction: which schema reads data of which."""

    version_number: int
    direction: Direction
    finding: Finding


def compare_versions(
    fmt: Format[Any], new: Any, newest_first: Iterable[ParsedVersion], policy: Policy, ruleset: str
) -> Iterator[VersionFinding]:
    """Yield the findings of a ruleset between a schema and the earlier versions that a policy selects, newest first."""
    for old, backward, forward in policy.list_comparisons(newest_first):
        if backward:
            for finding in rulesets.run_ruleset(fmt, new, old.parsed, ruleset):
                yield VersionFinding(old.version_number, Direction.BACKWARD, finding)
        if forward:
            for finding in rulesets.run_ruleset(fmt, old.parsed, new, ruleset):
                yield VersionFinding(old.version_number, Direction.FORWARD, finding)


def parse_candidate(
    fmt: Format[Any], candidate: Candidate | CheckRequest, limits: Limits, *, strict: bool, role: str = ""
) -> Any:
    """Parse a candidate within the limits. `role` names it in errors, where there are several candidates.

    Raises `MalformedSchema`, `TooLarge`.
    """
    text = candidate.schema.encode("utf-8", "surrogatepass")
    references = {ref.name: ref.schema.encode("utf-8", "surrogatepass") for ref in candidate.references}
    limits.check_text(text)
    limits.check_references(len(references))
    strict = strict or isinstance(fmt, HasLaxImports)  # a missing type has no verdict
    try:
        return fmt.parse(text, references, name=candidate.name, strict=strict)
    except MalformedSchema as error:
        if not role:
            raise
        why = f"{role}{f' ({candidate.name})' if candidate.name else ''}: {error.why}"
        raise type(error)(why, line=error.line, column=error.column, path=error.path, expected=error.expected) from None


def select_ruleset(fmt: Format[Any], ruleset: str, adopted: Adopted | None) -> str:
    """Return the full name of the ruleset to compare with; '' for a format that compares nothing."""
    if not ruleset and not fmt.rulesets:
        return ""
    named = rulesets.newest_ruleset(fmt, ruleset)
    if adopted is None or rulesets.split_ruleset(ruleset)[1] is not None:
        return named
    return rulesets.require_effective(
        fmt, ruleset, {name: version for (of, name), version in adopted.items() if of == fmt.name}
    )
