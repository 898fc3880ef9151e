"""Whether the policy in force lets a document in, given the verdicts so far."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from stele.core import queries
from stele.core.commands import Register
from stele.core.findings import Finding
from stele.core.model import MAX_INT32, Attachments, Document, Lane, Level, Life, Scope, SubjectKey, Version
from stele.core.policy import Kind, Policy
from stele.core.questions import CHECKER, Question, Source, Undecided, Verdicts
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
    """Raise `Incompatible` with what the first version that refuses says, newest first; `Undecided` when unknown."""
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
    objections = _objections(state, key, document, attachments, policy, verdicts)
    if objections:
        return objections, objections[0].against
    lane = document.lane
    stranger = _of_another_type(state, key, lane)
    if stranger is not None:
        return [_type_changed(stranger, lane)], stranger.ordinal
    if policy.kind is Kind.ALLOW_ANY:
        return [], None
    compared = iter([only]) if only is not None else candidates(state, key, lane, attachments)
    if policy.kind is Kind.DENY_ALL:
        newest = only if only is not None else queries.latest(state.subject(key))
        return ([_DENIED], newest.ordinal) if newest is not None else ([], None)
    source = Source(document.sha, queries.closure(state, attachments.references))
    ruleset = queries.settings_for(state, Level(*key)).ruleset or ""
    adopted = queries.adopted_rulesets(state, document.format)
    missing: list[Question] = []
    for version, backward, forward in policy.comparisons(compared):
        if version.lane.format != document.format:
            if not missing:
                return [_format_changed(version, document)], version.ordinal
            break
        other = Source(version.content.sha, queries.closure(state, version.schema.attachments.references))
        asked = [Question(document.format, ruleset, source, other, adopted)] if backward else []
        asked += [Question(document.format, ruleset, other, source, adopted)] if forward else []
        breaking: list[Finding] = []
        for question in asked:
            if question in verdicts:
                breaking += [finding for finding in verdicts[question] if finding.breaks and not missing]
            else:
                missing.append(question)
        if breaking:
            if missing:  # Whoever is refused in one direction wants to know about the other one, too.
                break
            return [replace(finding, against=version.ordinal) for finding in breaking], version.ordinal
    if missing:
        raise Undecided(tuple(missing))
    return [], None


def _objections(
    state: State, key: SubjectKey, document: Document, attachments: Attachments, policy: Policy, verdicts: Verdicts
) -> list[Finding]:
    """What the validators of the policy object to, asked about the document as it was sent and the newest version.

    The first document of a subject is shown to them beside itself, as is one after a version of another format: no
    validator can read both. Raises `Undecided`.
    """
    if not policy.checkers:
        return []
    written = document.sent.sha if document.sent is not None else document.sha
    source = Source(written, queries.closure(state, attachments.references))
    newest = queries.latest(state.subject(key))
    before = source
    if newest is not None and newest.lane.format == document.format:
        before = Source(newest.content.sha, queries.closure(state, newest.schema.attachments.references))
    adopted = queries.adopted_rulesets(state, document.format)
    asked = [Question(document.format, CHECKER + name, source, before, adopted) for name in policy.checkers]
    missing = tuple(question for question in asked if question not in verdicts)
    if missing:
        raise Undecided(missing)
    against = None if newest is None else newest.ordinal
    breaking = [finding for question in asked for finding in verdicts[question] if finding.breaks]
    return [replace(finding, against=against) for finding in breaking]


def candidates(
    state: State, key: SubjectKey, lane: Lane, attachments: Attachments, *, before: int = MAX_INT32 + 1
) -> Iterator[Version]:
    """Live versions the policy of a subject may compare with a schema of that lane and attachments, newest first.

    Only those of the same lane or group where the subject says so, and with an ordinal below `before`.
    """
    subject = state.subject(key)
    if subject is None:
        return
    own_lane = lane if subject.scope is Scope.LANE else None
    group = queries.settings_for(state, Level(*key)).group
    wanted = None if group is None else _property(attachments, group)
    for row in reversed(subject.versions):
        if row.life is not Life.LIVE or row.ordinal >= before or (own_lane is not None and row.lane != own_lane):
            continue
        if group is None or _property(row.schema.attachments, group) == wanted:
            yield row


def _of_another_type(state: State, key: SubjectKey, lane: Lane) -> Version | None:
    """The newest live version that has another type, in a subject that takes one type only."""
    subject = state.subject(key)
    if subject is None or subject.scope is not Scope.ONE_TYPE or not lane.type:
        return None
    live = (row for row in reversed(subject.versions) if row.life is Life.LIVE)
    return next((row for row in live if row.lane.type not in {"", lane.type}), None)


def _property(attachments: Attachments, name: str) -> str | None:
    metadata = attachments.metadata
    return None if metadata is None or metadata.properties is None else metadata.properties.get(name)


_DENIED = Finding(
    rule="POLICY_DENIES_ALL",
    path="",
    why="the policy of this subject takes no further version",
    fix="register under another subject, or have the policy changed by its owner",
)


def _type_changed(version: Version, lane: Lane) -> Finding:
    return Finding(
        rule="TYPE_CHANGED",
        path="",
        reader=lane.type,
        writer=version.lane.type,
        why="the subject takes schemas of one type only",
        fix="register it under a subject of its own, or under one that takes several types",
        against=version.ordinal,
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
