"""A schema that a user wants to register: whether the registry accepts it, its changes, and which schemas would break.

Checking a proposal writes nothing. Behind the page on which schemas are registered; registering itself is a command
like any other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

import msgspec

from stele.core import queries
from stele.core.access import Operation, subject_resource
from stele.core.commands import RegisterSchema, Registration
from stele.core.decide.decision import check_name
from stele.core.decide.register import make_document
from stele.core.digests import digest_key, digest_keys
from stele.core.findings import Finding
from stele.core.model import Attachments, Mode, Reference, SettingsLevel, SubjectKey, Version
from stele.core.ports import TextForm
from stele.core.state import State
from stele.errors import InvalidName, SteleError
from stele.service.check import Adopted, Candidate, CheckRequest, NamedText, check_compatibility
from stele.service.registry import Registry
from stele.service.ruleset_adoption import adopted_versions
from stele.service.schemas import PreparedSchema

MOST_AFFECTED: Final = 50
"""Maximum number of schemas that are compared because they refer to the subject, directly or through others."""
_MOST_FINDINGS: Final = 20


class Proposal(msgspec.Struct, frozen=True):
    """A schema that a user wants to register.

    normalize  registers the normalised text instead of the author's
    """

    key: SubjectKey
    format: str
    text: str
    references: tuple[Reference, ...] = ()
    normalize: bool = False


class AffectedSchema(msgspec.Struct, frozen=True):
    """A schema that refers to the subject, and its state if it referred to the new version instead.

    distance  length of the chain of references to the subject; 1 refers to the subject itself
    findings  why its policy would refuse it then, 20 at most
    problem   why it would no longer be a valid schema; '' where it is valid
    """

    namespace: str
    subject: str
    version: int
    distance: int
    findings: tuple[Finding, ...] = ()
    problem: str = ""

    @property
    def breaks(self) -> bool:
        """Whether it would break."""
        return bool(self.findings or self.problem)


class ProposalReport(msgspec.Struct, frozen=True):
    """Verdict of the registry on a proposal.

    same      number of the version that is the same schema; None: it would be a new one
    number    the number it would have
    findings  why the policy in force refuses it; empty: it is accepted
    against   the version with which it conflicts
    mode      the mode in force, if nothing can be registered in it; '' where it can
    affected  schemas that refer to the subject and that the caller may read; those that break come first
    hidden    number of such schemas that the caller may not read, or beyond `MOST_AFFECTED`
    """

    same: int | None
    number: int
    findings: tuple[Finding, ...] = ()
    against: int | None = None
    mode: str = ""
    affected: tuple[AffectedSchema, ...] = ()
    hidden: int = 0

    @property
    def is_accepted(self) -> bool:
        """Whether the registry would accept it."""
        return not self.findings and not self.mode


async def check_proposal(registry: Registry, proposal: Proposal) -> ProposalReport:
    """Return the verdict of the registry on a proposal.

    Raises what `SchemaParser.prepare_schema` raises, `InvalidName`, `Forbidden`, `Unauthenticated`.
    """
    _require_name(proposal.key)
    registry.access.require(Operation.READ, subject_resource(proposal.key))
    state = await registry.fresh_state()
    prepared = await _prepare(registry, state, proposal)
    number = queries.next_version_number(state, proposal.key)
    same = _find_same(state, proposal.key, prepared)
    if same is not None:
        return ProposalReport(same.version_number, same.version_number)
    mode = queries.mode_for(state, SettingsLevel(*proposal.key))
    attachments = queries.inherit_attachments(state, proposal.key, Attachments(prepared.references))
    findings, against = await registry.find_incompatibilities(proposal.key, prepared.document, attachments)
    adopted = await adopted_versions(registry)
    users, hidden = _list_users(registry, state, proposal.key)
    affected = await registry.run_stateless(
        partial(_check_users, registry, state, proposal.key, prepared, users, adopted)
    )
    return ProposalReport(
        None,
        number,
        tuple(findings),
        against,
        "" if mode in {Mode.READWRITE, Mode.IMPORT} else mode.value,
        tuple(sorted(affected, key=lambda row: (not row.breaks, row.distance, row.namespace, row.subject))),
        hidden,
    )


async def register_proposal(
    registry: Registry, proposal: Proposal, *, expected_latest: int | None = None, via: str = ""
) -> Registration:
    """Register a proposal, or return the existing registration of the same schema, ignoring differences of style.

    Raises what `check_proposal` raises, `Incompatible`, `ReadOnly`, and `PreconditionFailed` where the newest version
    is not the one that the caller expects.
    """
    _require_name(proposal.key)
    registry.access.require(Operation.REGISTER, subject_resource(proposal.key))
    state = await registry.fresh_state()
    prepared = await _prepare(registry, state, proposal)
    same = _find_same(state, proposal.key, prepared)
    if same is not None:
        return Registration(proposal.key, same.version_number, same.schema.schema_id, same.uid, created=False)
    outcome = await registry.execute(
        RegisterSchema(
            key=proposal.key,
            document=prepared.document,
            references=prepared.references,
            compared_seq=state.seq,
            expected_latest=expected_latest,
        ),
        via=via,
    )
    assert isinstance(outcome, Registration)
    return outcome


def make_registration(state: State, version: Version) -> RegisterSchema:
    """Return the command that registers the text of a version again, with its references, metadata and rules."""
    attachments = version.schema.attachments
    return RegisterSchema(
        key=version.subject.key,
        document=make_document(state.get_text(version.content), version.kind.format, version.kind.type),
        references=attachments.references,
        metadata=attachments.metadata,
        rule_set=attachments.rule_set,
    )


def _require_name(key: SubjectKey) -> None:
    if not key.name.strip():
        raise InvalidName(key.name, "has no subject: give it one")
    for part in key:
        check_name(part)


async def _prepare(registry: Registry, state: State, proposal: Proposal) -> PreparedSchema:
    registry.access.require_references(state, proposal.references)
    settings = queries.settings_for(state, SettingsLevel(*proposal.key))
    normalize = proposal.normalize or bool(settings.normalize)
    return await registry.parser.prepare_schema(
        state,
        proposal.format,
        proposal.text.encode("utf-8", "surrogatepass"),
        proposal.references,
        form=TextForm.NORMALIZED if normalize else None,
    )


def _find_same(state: State, key: SubjectKey, prepared: PreparedSchema) -> Version | None:
    """Return the active version that is the same schema with the same references, ignoring differences of style."""
    subject = state.find_subject(key)
    if subject is None:
        return None
    own = prepared.document.digests.get("normalized")
    wanted = digest_key("normalized", own) if own is not None else b""
    for version in reversed(queries.list_versions(subject)):
        if version.kind.format != prepared.document.format:
            continue
        if version.schema.attachments.references != prepared.references:
            continue
        is_same_text = version.content.sha == prepared.document.sha
        if is_same_text or wanted in digest_keys(state.get_digests(version.content)):
            return version
    return None


# --- who else breaks --------------------------------------------------------------------------------------------------


class _User(NamedTuple):
    version: Version
    distance: int


def _list_users(registry: Registry, state: State, key: SubjectKey) -> tuple[list[_User], int]:
    """Return the newest versions of subjects that refer to a subject, directly or not, and how many are left out."""
    users: dict[SubjectKey, _User] = {}
    hidden: set[SubjectKey] = set()
    waiting, distance = {key}, 0
    while waiting:
        distance += 1
        following: set[SubjectKey] = set()
        for used in sorted(waiting):
            for user in _list_direct_users(state, used):
                subject = user.subject.key
                if subject == key or subject in users or subject in hidden:
                    continue
                following.add(subject)
                if len(users) < MOST_AFFECTED and registry.access.can_read(subject):
                    users[subject] = _User(user, distance)
                else:
                    hidden.add(subject)
        waiting = following if len(users) < MOST_AFFECTED else set()
    return list(users.values()), len(hidden)


def _list_direct_users(state: State, key: SubjectKey) -> Iterator[Version]:
    """Return the newest active versions that refer to any version of a subject."""
    subject = state.find_subject(key)
    for version in subject.versions if subject is not None else ():
        for user in queries.list_referrers(state, key, version.version_number):
            if user is queries.latest_version(user.subject):
                yield user


def _check_users(
    registry: Registry,
    state: State,
    key: SubjectKey,
    prepared: PreparedSchema,
    users: Sequence[_User],
    adopted: Adopted,
) -> list[AffectedSchema]:
    subject = state.find_subject(key)
    replaced = {version.content.sha for version in subject.versions} if subject is not None else set()
    texts = {name: state.get_text(state.contents[sha]) for name, sha in prepared.source.references}
    new = prepared.document.text
    return [
        _check_user(registry, state, user, _Replacement(replaced, new, texts), adopted)
        for user in users
        if user.version.kind.format == prepared.document.format
    ]


class _Replacement(NamedTuple):
    """A new text, the digests of the texts it replaces, and the texts that it refers to by name."""

    replaced: set[bytes]
    text: bytes
    references: Mapping[str, bytes]


def _check_user(
    registry: Registry, state: State, user: _User, replacement: _Replacement, adopted: Adopted
) -> AffectedSchema:
    """Compare a schema with itself, as it is now and as it would be with the new text as its reference."""
    version = user.version
    key = version.subject.key
    closure = queries.resolve_references(state, version.schema.attachments.references)
    before = {name: state.get_text(state.contents[sha]) for name, sha in closure}
    after = dict(replacement.references)
    after |= {
        name: replacement.text if sha in replacement.replaced else state.get_text(state.contents[sha])
        for name, sha in closure
    }
    text = state.get_text(version.content).decode("utf-8", "replace")
    request = CheckRequest(
        format=version.kind.format,
        schema=text,
        policy=queries.policy_for(state, key).nearest_name,
        ruleset=queries.settings_for(state, SettingsLevel(*key)).ruleset,
        references=_name_texts(after),
        against=(Candidate(text, _name_texts(before)),),
    )
    findings: tuple[Finding, ...] = ()
    problem = ""
    try:
        answer = check_compatibility(
            request, registry.limits, undecided=registry.compatibility.undecided, adopted=adopted
        )
        breaks = [each for each in answer.findings if each.breaks][:_MOST_FINDINGS]
        findings = tuple(msgspec.structs.replace(each, against=None) for each in breaks)
    except SteleError as error:
        problem = str(error)
    return AffectedSchema(key.namespace, key.name, version.version_number, user.distance, findings, problem)


def _name_texts(texts: Mapping[str, bytes]) -> tuple[NamedText, ...]:
    return tuple(NamedText(name, text.decode("utf-8", "replace")) for name, text in texts.items())
