"""The history of a subject: its versions with the verdicts between neighbours, and a matrix of which reads which.

Behind `GET /api/history/{subject}` and `GET /api/matrix/{subject}`; `stele.pictures` draws the answers.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from stele.core import queries
from stele.core.access import Operation, subject_resource
from stele.core.compatibility_requests import CompatibilityRequest
from stele.core.findings import Verdict
from stele.core.model import SubjectKey, Version, VersionState
from stele.core.policy import Policy
from stele.errors import SubjectNotFound
from stele.protocol.history import (
    MOST_COMPARED,
    MOST_VERSIONS,
    CompatibilityMatrix,
    HistoryVersion,
    SubjectHistory,
    VersionLink,
)
from stele.service.registry import Registry
from stele.service.version_verdicts import KnownVerdicts, VersionQuestions, find_verdicts

_MOST_REASONS: Final = 3
_LONGEST_TEXT: Final = 500
"""Maximum length of a note in an answer, in characters."""


class _PlannedLink(NamedTuple):
    """A version, the one before it, the questions between them, and the question whether the newest reads this one."""

    version: Version
    before: Version | None
    backward: CompatibilityRequest | None = None
    forward: CompatibilityRequest | None = None
    newest: CompatibilityRequest | None = None


async def get_history(
    registry: Registry, key: SubjectKey, *, before: int | None = None, limit: int = MOST_VERSIONS
) -> SubjectHistory:
    """Return the newest versions of a subject with their verdicts.

    Each has the verdicts between it and the version before it, and whether the newest version reads its data.

    Args:
        registry: The node.
        key: The subject.
        before: Only versions with a lower number; None: up to the newest.
        limit: Maximum number of versions.

    Raises:
        SubjectNotFound: The subject has no version.
        SteleError: `Forbidden`, `Unauthenticated`, `Overloaded`.
    """
    registry.access.require(Operation.READ, subject_resource(key))
    state = await registry.fresh_state()
    rows = list_history_versions(registry, key)
    upper = len(rows) if before is None else bisect_left(rows, before, key=lambda row: row.version_number)
    lower = max(0, upper - min(limit, MOST_VERSIONS))
    newest = next((row for row in reversed(rows) if row.state is VersionState.ACTIVE), None)
    questions = VersionQuestions(state, key)
    planned = [
        _ask_questions(questions, link, newest)
        async for link in registry.time_slices.iterate(_pair_versions(rows, lower, upper))
    ]
    # Neighbours first: if time runs out, the most useful verdicts are there.
    wanted = [*(link.backward for link in planned), *(link.forward for link in planned)]
    wanted += [link.newest for link in reversed(planned)]
    verdicts = await find_verdicts(registry, [question for question in wanted if question is not None])
    return SubjectHistory(
        namespace=key.namespace,
        subject=key.name,
        policy=queries.policy_for(state, key).nearest_name,
        versions=tuple(_describe_version(link, verdicts) for link in planned),
        earlier=lower,
        complete=verdicts.is_complete,
        newest=newest.version_number if newest is not None else 0,
    )


async def get_matrix(
    registry: Registry, key: SubjectKey, *, limit: int = MOST_COMPARED, policy: Policy | None = None
) -> CompatibilityMatrix:
    """Return which of the newest active versions of a subject read data of which.

    Args:
        registry: The node.
        key: The subject.
        limit: Maximum number of versions.
        policy: Policy whose required comparisons are marked; None: the one in force.

    Raises:
        SubjectNotFound: The subject has no version.
        SteleError: `Forbidden`, `Unauthenticated`, `Overloaded`.
    """
    registry.access.require(Operation.READ, subject_resource(key))
    state = await registry.fresh_state()
    rows = [row for row in list_history_versions(registry, key) if row.state is VersionState.ACTIVE]
    newest = rows[-min(limit, MOST_COMPARED) :]
    ask = VersionQuestions(state, key).ask
    questions = {
        (reader.version_number, writer.version_number): ask(reader, writer)
        for reader in newest
        for writer in newest
        if reader is not writer
    }
    # Neighbours first: if time runs out, the most useful verdicts are there.
    near = sorted(questions, key=lambda pair: (abs(pair[0] - pair[1]), pair))
    verdicts = await find_verdicts(registry, [question for pair in near if (question := questions[pair]) is not None])
    policy = policy or queries.policy_for(state, key)
    numbers = tuple(row.version_number for row in newest)
    return CompatibilityMatrix(
        namespace=key.namespace,
        subject=key.name,
        versions=numbers,
        reads=tuple(
            tuple(
                Verdict.COMPATIBLE if reader == writer else verdicts.find_verdict(questions[reader, writer])
                for writer in numbers
            )
            for reader in numbers
        ),
        policy=policy.nearest_name,
        demands=tuple(_list_demands(newest, policy)),
        earlier=len(rows) - len(newest),
        complete=verdicts.is_complete,
    )


def list_history_versions(registry: Registry, key: SubjectKey) -> list[Version]:
    """Return the versions of a subject that are active or soft-deleted, ascending. Raises `SubjectNotFound`."""
    subject = registry.state.find_subject(key)
    rows = queries.list_versions(subject, queries.ACTIVE_OR_SOFT_DELETED)
    if not rows:
        raise SubjectNotFound(key.name)
    return rows


def _pair_versions(rows: Sequence[Version], lower: int, upper: int) -> Iterator[_PlannedLink]:
    """Pair the versions of a range with the nearest earlier active one, else with the nearest earlier one."""
    active = next((rows[index] for index in reversed(range(lower)) if rows[index].state is VersionState.ACTIVE), None)
    for index in range(lower, upper):
        row = rows[index]
        yield _PlannedLink(row, active if active is not None else rows[index - 1] if index else None)
        if row.state is VersionState.ACTIVE:
            active = row


def _ask_questions(questions: VersionQuestions, link: _PlannedLink, newest: Version | None) -> _PlannedLink:
    ask, version, before = questions.ask, link.version, link.before
    if before is not None:
        link = link._replace(backward=ask(version, before), forward=ask(before, version))
    if newest is None or newest is version:
        return link
    return link._replace(newest=ask(newest, version))


def _describe_version(planned: _PlannedLink, verdicts: KnownVerdicts) -> HistoryVersion:
    version = planned.version
    attributes = version.attributes
    return HistoryVersion(
        version=version.version_number,
        schema_id=version.schema.schema_id,
        content_id=version.content.sha.hex(),
        format=version.kind.custom_format or version.kind.format,
        at=version.at,
        author=attributes.created_by if attributes is not None else "",
        note=attributes.description[:_LONGEST_TEXT] if attributes is not None else "",
        deleted=version.state is VersionState.SOFT_DELETED,
        policy=version.policy.nearest_name if version.policy is not None else "",
        link=None if planned.before is None else _describe_link(planned, planned.before, verdicts),
        newest_reads=verdicts.find_verdict(planned.newest),
    )


def _describe_link(planned: _PlannedLink, before: Version, verdicts: KnownVerdicts) -> VersionLink:
    backward, forward = verdicts.find_verdict(planned.backward), verdicts.find_verdict(planned.forward)
    breaks = [*verdicts.list_breaks(planned.backward), *verdicts.list_breaks(planned.forward)]
    policy = planned.version.policy
    demanded = next(iter(policy.list_comparisons([before])), None) if policy is not None else None
    forced = demanded is not None and (
        (demanded[1] and backward is Verdict.INCOMPATIBLE) or (demanded[2] and forward is Verdict.INCOMPATIBLE)
    )
    return VersionLink(
        before=before.version_number,
        backward=backward,
        forward=forward,
        forced=forced,
        findings=len(breaks),
        reasons=tuple(f"{finding.rule} at {finding.path or '/'}"[:_LONGEST_TEXT] for finding in breaks[:_MOST_REASONS]),
    )


def _list_demands(rows: Sequence[Version], policy: Policy) -> list[tuple[int, int]]:
    """Return (reader, writer) of each comparison that a policy requires if the versions are registered one by one."""
    pairs: list[tuple[int, int]] = []
    for index, row in enumerate(rows):
        for older, backward, forward in policy.list_comparisons(reversed(rows[:index])):
            if backward:
                pairs.append((row.version_number, older.version_number))
            if forward:
                pairs.append((older.version_number, row.version_number))
    return sorted(pairs)
