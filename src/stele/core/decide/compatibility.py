"""Decides whether the policy in force accepts a document, given the verdicts so far."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from stele.core import queries
from stele.core.commands import RegisterSchema
from stele.core.compatibility_requests import (
    VALIDATOR_PREFIX,
    CompatibilityRequest,
    SchemaSource,
    Verdicts,
    VerdictsRequired,
)
from stele.core.findings import Finding
from stele.core.model import (
    MAX_INT32,
    Attachments,
    ComparisonScope,
    SchemaDocument,
    SchemaKind,
    SettingsLevel,
    SubjectKey,
    Version,
    VersionState,
)
from stele.core.policy import Policy, PolicyKind
from stele.core.state import State
from stele.errors import Incompatible


def require_compatible(
    state: State,
    command: RegisterSchema,
    document: SchemaDocument,
    attachments: Attachments,
    policy: Policy,
    verdicts: Verdicts,
) -> None:
    """Raise `Incompatible` with the findings of the first version, newest first, that conflicts with the document.

    Raises `VerdictsRequired` while a verdict is missing.
    """
    findings, against = find_incompatibilities(
        state, command.key, document, attachments, policy, verdicts, ruleset=command.ruleset, lineage=command.lineage
    )
    if findings:
        raise Incompatible(command.key.name, findings, against=against)


def find_incompatibilities(
    state: State,
    key: SubjectKey,
    document: SchemaDocument,
    attachments: Attachments,
    policy: Policy,
    verdicts: Verdicts,
    *,
    only: Version | None = None,
    ruleset: str = "",
    lineage: tuple[int, ...] | None = None,
) -> tuple[list[Finding], int | None]:
    """Return the breaking findings of the first version that conflicts with a document, and its number, or ([], None).

    only limits the comparison to one version, which then counts as the latest. lineage limits it to the ancestors of
    the document, of which the first one counts as the latest. ruleset decides where the settings name none.

    Raises `VerdictsRequired`.
    """
    objections = _ask_validators(state, key, document, attachments, policy, verdicts)
    if objections:
        return objections, objections[0].against
    schema_kind = document.kind
    stranger = _find_other_type(state, key, schema_kind)
    if stranger is not None:
        return [_type_finding(stranger, schema_kind)], stranger.version_number
    if policy.kind is PolicyKind.ALLOW_ANY:
        return [], None
    candidates = iter([only]) if only is not None else list_candidates(state, key, schema_kind, attachments)
    compared = candidates if lineage is None else _follow_lineage(candidates, lineage)
    if policy.kind is PolicyKind.DENY_ALL:
        newest = only if only is not None else queries.latest_version(state.find_subject(key))
        return ([_DENIED], newest.version_number) if newest is not None else ([], None)
    source = SchemaSource(document.sha, queries.resolve_references(state, attachments.references))
    ruleset = queries.settings_for(state, SettingsLevel(*key)).ruleset or ruleset
    adopted = queries.adopted_rulesets(state, document.format)
    missing: list[CompatibilityRequest] = []
    for version, backward, forward in policy.list_comparisons(compared):
        if version.kind.format != document.format:
            if not missing:
                return [_format_finding(version, document)], version.version_number
            break
        other = SchemaSource(
            version.content.sha, queries.resolve_references(state, version.schema.attachments.references)
        )
        requests = [CompatibilityRequest(document.format, ruleset, source, other, adopted)] if backward else []
        requests += [CompatibilityRequest(document.format, ruleset, other, source, adopted)] if forward else []
        breaking: list[Finding] = []
        for request in requests:
            if request in verdicts:
                breaking += [finding for finding in verdicts[request] if finding.breaks and not missing]
            else:
                missing.append(request)
        if breaking:
            if missing:  # A refusal reports both directions, so both verdicts are needed.
                break
            return [replace(finding, against=version.version_number) for finding in breaking], version.version_number
    if missing:
        raise VerdictsRequired(tuple(missing))
    return [], None


def _follow_lineage(candidates: Iterator[Version], lineage: tuple[int, ...]) -> Iterator[Version]:
    by_number = {row.version_number: row for row in candidates}
    return (by_number[number] for number in lineage if number in by_number)


def _ask_validators(
    state: State,
    key: SubjectKey,
    document: SchemaDocument,
    attachments: Attachments,
    policy: Policy,
    verdicts: Verdicts,
) -> list[Finding]:
    """Return breaking findings of the policy's validators on the document as sent, compared with the newest version.

    The first document of a subject, or one after a version of another format, is compared with itself, because no
    validator can read two formats. Raises `VerdictsRequired`.
    """
    if not policy.validators:
        return []
    written = document.submitted.sha if document.submitted is not None else document.sha
    source = SchemaSource(written, queries.resolve_references(state, attachments.references))
    newest = queries.latest_version(state.find_subject(key))
    before = source
    if newest is not None and newest.kind.format == document.format:
        before = SchemaSource(
            newest.content.sha, queries.resolve_references(state, newest.schema.attachments.references)
        )
    adopted = queries.adopted_rulesets(state, document.format)
    requests = [
        CompatibilityRequest(document.format, VALIDATOR_PREFIX + name, source, before, adopted)
        for name in policy.validators
    ]
    missing = tuple(request for request in requests if request not in verdicts)
    if missing:
        raise VerdictsRequired(missing)
    against = None if newest is None else newest.version_number
    breaking = [finding for request in requests for finding in verdicts[request] if finding.breaks]
    return [replace(finding, against=against) for finding in breaking]


def list_candidates(
    state: State, key: SubjectKey, schema_kind: SchemaKind, attachments: Attachments, *, before: int = MAX_INT32 + 1
) -> Iterator[Version]:
    """Yield active versions that a subject's policy may compare with a schema of a kind, newest first.

    Only those of the same kind or group where the subject says so, and with a version number below `before`.
    """
    subject = state.find_subject(key)
    if subject is None:
        return
    own_lane = schema_kind if subject.comparison_scope is ComparisonScope.SCHEMA_KIND else None
    group = queries.settings_for(state, SettingsLevel(*key)).group
    wanted = None if group is None else _read_property(attachments, group)
    for row in reversed(subject.versions):
        if (
            row.state is not VersionState.ACTIVE
            or row.version_number >= before
            or (own_lane is not None and row.kind != own_lane)
        ):
            continue
        if group is None or _read_property(row.schema.attachments, group) == wanted:
            yield row


def _find_other_type(state: State, key: SubjectKey, schema_kind: SchemaKind) -> Version | None:
    """Return the newest active version of another type, in a subject that accepts one type only."""
    subject = state.find_subject(key)
    if subject is None or subject.comparison_scope is not ComparisonScope.ONE_TYPE or not schema_kind.type:
        return None
    live = (row for row in reversed(subject.versions) if row.state is VersionState.ACTIVE)
    return next((row for row in live if row.kind.type not in {"", schema_kind.type}), None)


def _read_property(attachments: Attachments, name: str) -> str | None:
    metadata = attachments.metadata
    return None if metadata is None or metadata.properties is None else metadata.properties.get(name)


_DENIED = Finding(
    rule="POLICY_DENIES_ALL",
    path="",
    why="the policy of this subject takes no further version",
    fix="register under another subject, or have the policy changed by its owner",
)


def _type_finding(version: Version, schema_kind: SchemaKind) -> Finding:
    return Finding(
        rule="TYPE_CHANGED",
        path="",
        reader=schema_kind.type,
        writer=version.kind.type,
        why="the subject takes schemas of one type only",
        fix="register it under a subject of its own, or under one that takes several types",
        against=version.version_number,
    )


def _format_finding(version: Version, document: SchemaDocument) -> Finding:
    return Finding(
        rule="FORMAT_CHANGED",
        path="",
        reader=document.format,
        writer=version.kind.format,
        why="Incompatible because of different schema type",
        fix="register it under a subject of its own, or set the policy to NONE for this one",
        against=version.version_number,
    )
