"""Checks that registered versions agree with a policy, before the policy is set and before a version is deleted."""

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
    """Raise unless every active version could have been registered after those before it.

    Args:
        registry: Compares the versions.
        state: State they are in.
        subject: Subject they are of.
        policy: Policy to check.
        max_pairs: Pairs of versions to compare, at most.

    Raises:
        Incompatible: Two versions do not agree.
        TooLarge: There are more pairs than max_pairs.
    """
    if policy.kind is not PolicyKind.DIRECTIONAL:
        return
    pairs = [
        (rows[position], other)
        for rows in _comparable_versions(subject)
        for position in range(1, len(rows))
        for other, _, _ in policy.list_comparisons(reversed(rows[:position]))
    ]
    if len(pairs) > max_pairs:
        raise TooLarge(f"{len(pairs)} pairs of versions would have to be compared, {max_pairs} is the most")
    await _require_compatible(registry, state, pairs, policy)


async def require_consistent_without(registry: Registry, state: State, version: Version) -> None:
    """Raise `Incompatible` unless the neighbours of a version agree with each other.

    Only a policy that looks at no more than the latest version needs this: others compared the neighbours before.
    """
    subject = version.subject
    policy = queries.policy_for(state, subject.key)
    near = Policy(backward=_only_latest(policy.backward), forward=_only_latest(policy.forward))
    rows = next(rows for rows in _comparable_versions(subject) if any(row is version for row in rows))
    position = next(number for number, row in enumerate(rows) if row is version)
    if policy.kind is PolicyKind.DIRECTIONAL and near != Policy() and 0 < position < len(rows) - 1:
        await _require_compatible(registry, state, [(rows[position + 1], rows[position - 1])], near)


def _comparable_versions(subject: Subject) -> list[list[Version]]:
    """Return the active versions, ascending; one list per kind if the subject compares within kinds only."""
    kinds: dict[SchemaKind | None, list[Version]] = {}
    for row in queries.list_versions(subject):
        kinds.setdefault(row.kind if subject.comparison_scope is ComparisonScope.SCHEMA_KIND else None, []).append(row)
    return list(kinds.values())


def _only_latest(versions: VersionRange) -> VersionRange:
    return versions if versions == LATEST_VERSION else NO_VERSIONS


async def _require_compatible(
    registry: Registry, state: State, pairs: Sequence[tuple[Version, Version]], policy: Policy
) -> None:
    plain = replace(policy, validators=())
    for version, other in pairs:
        kind, content = version.kind, version.content
        document = SchemaDocument(
            state.get_text(content), content.sha, kind.format, kind.type, custom_format=kind.custom_format
        )
        key = version.subject.key
        findings, against = await registry.find_incompatibilities(
            key, document, version.schema.attachments, policy=plain, version_number=other.version_number
        )
        if findings:
            raise Incompatible(key.name, findings, against=against)
