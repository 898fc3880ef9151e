"""Whether what is registered agrees with a policy: asked before a policy is set, and before a version goes."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from stele.core import queries
from stele.core.model import ComparisonScope, SchemaDocument, SchemaKind, Subject, Version
from stele.core.policy import LATEST_VERSION, NO_VERSIONS, Policy, PolicyKind, VersionRange
from stele.core.state import State
from stele.errors import Incompatible, TooLarge
from stele.service.registry import Registry


async def require_consistent(
    registry: Registry, state: State, subject: Subject, policy: Policy, *, max_pairs: int
) -> None:
    """Raise `Incompatible` when a live version could not have been registered after those before it.

    Raises `TooLarge` when there are more pairs to compare than max_pairs.
    """
    if policy.kind is not PolicyKind.DIRECTIONAL:
        return
    pairs = [
        (rows[position], other)
        for rows in _compared(subject)
        for position in range(1, len(rows))
        for other, _, _ in policy.list_comparisons(reversed(rows[:position]))
    ]
    if len(pairs) > max_pairs:
        raise TooLarge(f"{len(pairs)} pairs of versions would have to be compared, {max_pairs} is the most")
    await _compare(registry, state, pairs, policy)


async def require_consistent_without(registry: Registry, state: State, version: Version) -> None:
    """Raise `Incompatible` when the neighbours of a version, compared with each other once it is gone, do not agree.

    Only policies that reach the latest version compare them now; others have done so.
    """
    subject = version.subject
    policy = queries.policy_for(state, subject.key)
    near = Policy(backward=_near(policy.backward), forward=_near(policy.forward))
    rows = next(rows for rows in _compared(subject) if any(row is version for row in rows))
    position = next(number for number, row in enumerate(rows) if row is version)
    if policy.kind is PolicyKind.DIRECTIONAL and near != Policy() and 0 < position < len(rows) - 1:
        await _compare(registry, state, [(rows[position + 1], rows[position - 1])], near)


def _compared(subject: Subject) -> list[list[Version]]:
    """Live versions that are compared with each other, ascending: those of one lane where the subject says so."""
    lanes: dict[SchemaKind | None, list[Version]] = {}
    for row in queries.list_versions(subject):
        lanes.setdefault(row.kind if subject.comparison_scope is ComparisonScope.SCHEMA_KIND else None, []).append(row)
    return list(lanes.values())


def _near(extent: VersionRange) -> VersionRange:
    return extent if extent == LATEST_VERSION else NO_VERSIONS


async def _compare(registry: Registry, state: State, pairs: Sequence[tuple[Version, Version]], policy: Policy) -> None:
    plain = replace(policy, validators=())
    for version, other in pairs:
        lane, content = version.kind, version.content
        document = SchemaDocument(
            state.get_text(content), content.sha, lane.format, lane.type, custom_format=lane.custom_format
        )
        key = version.subject.key
        findings, against = await registry.find_incompatibilities(
            key, document, version.schema.attachments, policy=plain, version_number=other.version_number
        )
        if findings:
            raise Incompatible(key.name, findings, against=against)
