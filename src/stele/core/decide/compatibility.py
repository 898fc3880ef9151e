"""Whether the policy in force lets a document in, given the verdicts so far."""

from __future__ import annotations

from msgspec.structs import replace

from stele.core import queries
from stele.core.commands import Register
from stele.core.findings import Finding
from stele.core.model import Attachments, Document, Level, Scope, SubjectKey, Version
from stele.core.policy import Kind, Policy, newest_first
from stele.core.questions import Question, Source, Undecided, Verdicts
from stele.core.state import State
from stele.errors import Incompatible


def require_compatible(
    state: State,
    command: Register,
    document: Document,
    attachments: Attachments,
    policy: Policy,
    verdicts: Verdicts,
) -> None:
    """Raise `Incompatible` with the findings of the first version that refuses, newest first; `Undecided` when unknown."""
    findings, against = find_incompatibilities(state, command.key, document, attachments, policy, verdicts)
    if findings:
        raise Incompatible(command.key.name, findings, against=against)


def find_incompatibilities(
    state: State,
    key: SubjectKey,
    document: Document,
    attachments: Attachments,
    policy: Policy,
    verdicts: Verdicts,
    *,
    only: Version | None = None,
) -> tuple[list[Finding], int | None]:
    """The breaking findings of the first version that refuses the document and its number; ([], None) when none does.

    only narrows the comparison to one version, which then counts as the latest. Raises `Undecided`.
    """
    candidates = [only] if only is not None else _candidates(state, key, document, attachments)
    if not candidates or policy.kind is Kind.ALLOW_ANY:
        return [], None
    if policy.kind is Kind.DENY_ALL:
        return [_DENIED], candidates[0].ordinal
    source = Source(document.sha, queries.closure(state, attachments.references))
    ruleset = queries.settings_for(state, Level(*key)).ruleset or ""
    missing: list[Question] = []
    for version, backward, forward in policy.comparisons(candidates):
        if version.lane.format != document.format:
            if not missing:
                return [_format_changed(version, document)], version.ordinal
            break
        other = Source(version.content.sha, queries.closure(state, version.schema.attachments.references))
        asked = [Question(document.format, ruleset, source, other)] if backward else []
        asked += [Question(document.format, ruleset, other, source)] if forward else []
        for question in asked:
            if question not in verdicts:
                missing.append(question)
            elif not missing and (breaking := [f for f in verdicts[question] if f.breaks]):
                return [replace(finding, against=version.ordinal) for finding in breaking], version.ordinal
    if missing:
        raise Undecided(tuple(missing))
    return [], None


def _candidates(state: State, key: SubjectKey, document: Document, attachments: Attachments) -> list[Version]:
    """Live versions the policy may look at: of the same lane or group where the subject says so; newest first."""
    subject = state.subject(key)
    rows = newest_first(queries.versions(subject))
    if subject is not None and subject.scope is Scope.LANE:
        rows = [row for row in rows if (row.lane.format, row.lane.type) == (document.format, document.type)]
    group = queries.settings_for(state, Level(*key)).group
    if group is not None:
        wanted = _property(attachments, group)
        rows = [row for row in rows if _property(row.schema.attachments, group) == wanted]
    return rows


def _property(attachments: Attachments, name: str) -> str | None:
    metadata = attachments.metadata
    return None if metadata is None or metadata.properties is None else metadata.properties.get(name)


_DENIED = Finding(
    rule="POLICY_DENIES_ALL",
    path="",
    why="the policy of this subject takes no further version",
    fix="register under another subject, or have the policy changed by its owner",
)


def _format_changed(version: Version, document: Document) -> Finding:
    return Finding(
        rule="FORMAT_CHANGED",
        path="",
        reader=document.format,
        writer=version.lane.format,
        why="Incompatible because of different schema type",
        fix="register it under a subject of its own, or set the policy to NONE for this one",
        against=version.ordinal,
    )
