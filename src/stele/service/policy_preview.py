"""Verdicts on the newest versions of a subject under another policy, as a preview before that policy is set."""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from stele.core import queries
from stele.core.access import Operation, subject_resource
from stele.core.compatibility_requests import CompatibilityRequest
from stele.core.decide.compatibility import list_candidates
from stele.core.findings import Finding
from stele.core.model import SubjectKey, Version
from stele.core.policy import Policy, PolicyKind
from stele.service.registry import Registry
from stele.service.version_verdicts import VersionQuestions, find_verdicts

MOST_VERSIONS: Final = 10
"""Maximum number of versions in a preview, the newest ones."""
_MOST_COMPARED: Final = 50
"""Maximum number of earlier versions with which each is compared."""
_MOST_FINDINGS: Final = 5


class PreviewedVersion(msgspec.Struct, frozen=True):
    """A version, and the verdict of another policy at the time of its registration.

    accepted  whether the policy would have accepted it; None: there was not enough time to find out
    against   the newest of the earlier versions that conflict with it; None: there is none
    findings  why, some of them
    policy    policy in force at the registration; '' if it is unknown
    """

    number: int
    accepted: bool | None
    against: int | None = None
    findings: tuple[Finding, ...] = ()
    policy: str = ""


class _Comparison(NamedTuple):
    against: int
    questions: tuple[CompatibilityRequest, ...]
    other_format: bool


async def preview_policy(
    registry: Registry, key: SubjectKey, policy: Policy, ruleset: str | None = None
) -> list[PreviewedVersion]:
    """Return the newest active versions of a subject with the verdict of a policy, newest first.

    Validators of the policy are not run: their verdict may depend on more than two texts.

    Args:
        registry: The node.
        key: The subject.
        policy: The policy to preview.
        ruleset: The ruleset to preview; None: the one in force.

    Raises:
        SteleError: `Forbidden`, `Unauthenticated`, `Overloaded`.
    """
    registry.access.require(Operation.READ, subject_resource(key))
    state = await registry.fresh_state()
    versions = queries.list_versions(state.find_subject(key))[: -MOST_VERSIONS - 1 : -1]
    if policy.kind is not PolicyKind.DIRECTIONAL:
        return [_judge_without_comparing(registry, version, policy) for version in versions]
    questions = VersionQuestions(state, key, ruleset)
    planned: list[tuple[Version, list[_Comparison]]] = []
    for version in versions:
        below = list_candidates(state, key, version.kind, version.schema.attachments, before=version.version_number)
        comparisons: list[_Comparison] = []
        for older, backward, forward in policy.list_comparisons(below):
            if len(comparisons) == _MOST_COMPARED:
                break
            pair_questions = [questions.ask(version, older)] if backward else []
            pair_questions += [questions.ask(older, version)] if forward else []
            comparisons.append(
                _Comparison(
                    older.version_number,
                    tuple(question for question in pair_questions if question is not None),
                    older.kind.format != version.kind.format,
                )
            )
        planned.append((version, comparisons))
    known = await find_verdicts(
        registry, [question for _, rows in planned for row in rows for question in row.questions]
    )
    previews = []
    for version, comparisons in planned:
        accepted: bool | None = True
        against, findings = None, []
        for row in comparisons:
            breaks = [finding for question in row.questions for finding in known.list_breaks(question)]
            if breaks or row.other_format:
                accepted, against, findings = False, row.against, breaks[:_MOST_FINDINGS]
                break
            if any(known.find_verdict(question) is None for question in row.questions):
                accepted = None
        previews.append(
            PreviewedVersion(version.version_number, accepted, against, tuple(findings), _name_policy(version))
        )
    return previews


def _judge_without_comparing(registry: Registry, version: Version, policy: Policy) -> PreviewedVersion:
    is_first = version is queries.list_versions(registry.state.find_subject(version.subject.key))[0]
    accepted = policy.kind is PolicyKind.ALLOW_ANY or is_first
    return PreviewedVersion(version.version_number, accepted, policy=_name_policy(version))


def _name_policy(version: Version) -> str:
    return version.policy.nearest_name if version.policy is not None else ""
