"""The stateless check: one schema against others under a policy; behind `POST /api/check` and `stele check`."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from stele.core.findings import Finding
from stele.core.policy import Extent, Kind, Reach, policy_named
from stele.errors import InvalidRequest, UnknownRuleset
from stele.formats import catalogue
from stele.service.limits import Limits

_MAX_AGAINST = 1000


class NamedText(msgspec.Struct, frozen=True):
    """A schema another one refers to by `name`."""

    name: str
    schema: str


class Candidate(msgspec.Struct, frozen=True):
    """A schema text with what it refers to; name is its file name, for imports between files."""

    schema: str
    references: tuple[NamedText, ...] = ()
    name: str = ""


class CheckRequest(msgspec.Struct, frozen=True):
    """What to check. `against` is oldest first; a policy that is not transitive looks at its last entry only.

    An empty `against` asks whether the schema is valid, nothing more. ruleset None is the format's default.
    """

    format: str
    schema: str
    policy: str = "BACKWARD"
    ruleset: str | None = None
    references: tuple[NamedText, ...] = ()
    against: tuple[Candidate, ...] = ()
    name: str = ""


class CheckAnswer(msgspec.Struct, frozen=True):
    """compatible is whether no finding breaks; findings name the entry of `against` they are about, from 1."""

    compatible: bool
    findings: tuple[Finding, ...]


def check(request: CheckRequest, limits: Limits | None = None) -> CheckAnswer:
    """Compare. Raises `UnknownFormat`, `UnknownRuleset`, `UnknownPolicy`, `MalformedSchema`, `TooLarge`."""
    limits = limits or Limits()
    fmt = catalogue.get(request.format)
    policy = policy_named(request.policy)
    ruleset = request.ruleset or ""
    if ruleset and ruleset not in fmt.rulesets:
        raise UnknownRuleset(f"{fmt.name} has no ruleset {ruleset!r}; known: {', '.join(fmt.rulesets) or 'none'}")
    if len(request.against) > _MAX_AGAINST:
        raise InvalidRequest(f"against has {len(request.against)} entries, at most {_MAX_AGAINST} are compared")

    def parse(candidate: Candidate | CheckRequest, *, strict: bool) -> object:
        text = candidate.schema.encode("utf-8", "surrogatepass")
        references = {ref.name: ref.schema.encode("utf-8", "surrogatepass") for ref in candidate.references}
        limits.check_text(text)
        limits.check_references(len(references))
        return fmt.parse(text, references, name=candidate.name, strict=strict)

    # Whether a text is valid is one question, what follows from its meaning another: comparing forgives bad style.
    new = parse(request, strict=not request.against)
    if policy.kind is not Kind.DIRECTIONAL:
        return CheckAnswer(compatible=True, findings=())
    numbered = [(number, parse(old, strict=False)) for number, old in enumerate(request.against, 1)]
    findings: list[Finding] = []
    for number, old in reversed(numbered):
        newest = number == len(numbered)
        if _looks_at(policy.backward, newest=newest):
            findings += [replace(finding, against=number) for finding in fmt.check(new, old, ruleset)]
        if _looks_at(policy.forward, newest=newest):
            findings += [replace(finding, against=number) for finding in fmt.check(old, new, ruleset)]
    return CheckAnswer(not any(finding.breaks for finding in findings), tuple(findings))


def _looks_at(extent: Extent, *, newest: bool) -> bool:
    return extent.reach is Reach.ALL or (extent.reach is Reach.LATEST and newest)
