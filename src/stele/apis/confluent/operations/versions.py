"""Registering and deleting versions.

Some registrations get `confluent:version` in their metadata, as in Confluent's registry: the number that the version
will have. These are requests that name a version (-1 included), change tags, or have such a version hint. The number is
part of what is registered, so both are decided together. If another writer takes the number first, the registration is
repeated with the next number.

Versions that an association requires are not deleted. The bodies of responses to deletions are fixed by the API, so a
header warns if records of a deleted version were seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, TypeVar

import msgspec
from msgspec.structs import replace

from stele.apis.confluent import models as api
from stele.apis.confluent.errors import NoActiveVersion, OwnedReference, SubjectOwned, SubjectTaken
from stele.apis.confluent.metadata import apply_tag_changes, set_version_hint, version_hint
from stele.apis.confluent.models import STRONG
from stele.apis.confluent.names import qualify_subject, require_valid_key
from stele.apis.confluent.operations.schemas import Operations, SchemaDraft
from stele.apis.confluent.translate import references_in, rule_set_in
from stele.core import queries
from stele.core.commands import (
    Command,
    CompatibilityCheck,
    DeletedVersions,
    DeleteMode,
    DeleteSubject,
    DeleteVersion,
    Equality,
    RegisterSchema,
)
from stele.core.metadata import Metadata
from stele.core.model import Attachments, Binding, Mode, SettingsLevel, SubjectKey, Version
from stele.core.state import State
from stele.errors import Incompatible, InvalidRequest, TooLarge
from stele.service.retry import Overtaken, retry_when_overtaken
from stele.service.usage import DeletionWarning

T = TypeVar("T")

LATEST = -1
"""Version in a request that requires its schema to be the latest one."""

_encode = msgspec.json.Encoder().encode


async def register_schema(
    operations: Operations,
    key: SubjectKey,
    request: api.RegisterSchemaRequest,
    make_answer: Callable[[State, Version], T],
    *,
    normalize: bool,
    force: bool,
    state: State | None = None,
) -> T:
    """Register the schema of a request, or find it. Return what `make_answer` returns for its version.

    state: The state that the caller has read, if any. Raises what `Operations.parse_draft` raises, `InvalidName`,
    `RefusedChange`, and what the decision raises.
    """
    require_valid_key(key)
    return await retry_when_overtaken(
        operations.registry,
        lambda state: _register_or_find(operations, state, key, request, make_answer, normalize=normalize, force=force),
        state=state,
    )


async def _register_or_find(
    operations: Operations,
    state: State,
    key: SubjectKey,
    request: api.RegisterSchemaRequest,
    make_answer: Callable[[State, Version], T],
    *,
    normalize: bool,
    force: bool,
) -> T:
    """Register a schema or find it; see `register_schema`.

    Raises `PreconditionFailed` if another writer registered the same schema meanwhile.
    """
    compared_seq = state.seq
    retagged = apply_tag_changes(request, queries.latest_version(state.find_subject(key)))
    operations.registry.access.require_references(state, references_in(retagged.references, key.namespace))
    _require_shareable_references(state, key, retagged)
    draft = None
    if (retagged.schema or "").strip():
        draft = await operations.parse_draft(state, key, retagged, normalize=normalize)
        same = await _find_registered(operations, state, key, retagged, draft)
        if same is not None:
            return make_answer(state, same)
        if not force and (findings := await operations.find_reserved_name_violations(state, key, draft)):
            raise operations.refuse_change(state, key, findings, None)

    def command(state: State) -> RegisterSchema:
        tagged_request = apply_tag_changes(request, queries.latest_version(state.find_subject(key)))
        bare = RegisterSchema(
            key=key,
            document=draft.document if draft is not None else None,
            ruleset=operations.profile.rulesets.get(draft.document.format, "") if draft is not None else "",
            references=draft.attachments.references if draft is not None else (),
            metadata=tagged_request.metadata,
            rule_set=rule_set_in(tagged_request.rule_set),
            equality=Equality.NEVER if tagged_request.version == LATEST else Equality.IDENTITY,
            compared_seq=compared_seq if draft is not None else None,
            check=CompatibilityCheck.SKIP if force else CompatibilityCheck.POLICY,
            version_number=tagged_request.version if (tagged_request.version or 0) > 0 else None,
            schema_id=tagged_request.id if tagged_request.id is not None and tagged_request.id >= 0 else None,
        )
        return (
            with_version_number(state, bare)
            if tagged_request.version or tagged_request is not request
            else refresh_version_hint(state, bare)
        )

    return await register_with_retry(operations, command, make_answer, state)


def _require_shareable_references(state: State, key: SubjectKey, request: api.RegisterSchemaRequest) -> None:
    """Raise `OwnedReference` for a reference to a subject with a strong association.

    Such a subject may be deleted together with its resource.
    """
    targets = {row.key for row in references_in(request.references, key.namespace)} - {key}
    for binding in queries.bindings_of(state, targets) if targets else ():
        if binding.lifecycle == STRONG:
            raise OwnedReference(qualify_subject(binding.subject))


async def _find_registered(
    operations: Operations, state: State, key: SubjectKey, request: api.RegisterSchemaRequest, draft: SchemaDraft
) -> Version | None:
    """Return the active version that makes a registration unnecessary, or None.

    It has the schema as sent or as completed from settings and earlier versions. The version hint is ignored.
    """
    if (request.id is not None and request.id >= 0) or (request.version or 0) > 0:
        return None
    newest = queries.latest_version(state.find_subject(key))
    if request.version == LATEST:
        return None if newest is None else await operations.find_equal(state, key, draft, [newest])
    settings = queries.settings_for(state, SettingsLevel(*key))
    completed = queries.inherit_attachments(state, key, draft.attachments)
    attachments = [completed]
    if not (settings.default_metadata or settings.override_metadata or settings.default_rule_set):
        attachments = [draft.attachments, completed] if completed != draft.attachments else [completed]
    for attached in attachments:
        same = await operations.find_equal(state, key, replace(draft, attachments=attached))
        if same is not None:
            return same
    return None


# --- the version hint -----------------------------------------------------------------------------------------------


def with_version_number(state: State, command: RegisterSchema) -> RegisterSchema:
    """Return the command with the number of the version to create in its metadata, and with this number required."""
    if queries.mode_for(state, SettingsLevel(*command.key)) is Mode.IMPORT:
        return command
    number = queries.next_version_number(state, command.key)
    metadata = set_version_hint(_inherit_metadata(state, command), number)
    return replace(command, metadata=metadata, version_number=command.version_number or number)


def refresh_version_hint(state: State, command: RegisterSchema) -> RegisterSchema:
    """Return the command with an updated version hint if its metadata has one; see `with_version_number`."""
    return command if version_hint(_inherit_metadata(state, command)) is None else with_version_number(state, command)


def _inherit_metadata(state: State, command: RegisterSchema) -> Metadata | None:
    return queries.inherit_attachments(state, command.key, Attachments((), command.metadata, None)).metadata


# --- writing --------------------------------------------------------------------------------------------------------


async def register_with_retry(
    operations: Operations,
    command: Callable[[State], RegisterSchema],
    make_answer: Callable[[State, Version], T],
    state: State | None = None,
) -> T:
    """Carry out a registration that depends on the state. Repeat it if another writer took its version number."""

    async def attempt(state: State) -> T:
        wanted = command(state)
        try:
            return await execute_registration(operations, wanted, make_answer)
        except InvalidRequest:
            if command(operations.registry.state).version_number == wanted.version_number:
                raise
            raise Overtaken from None

    return await retry_when_overtaken(operations.registry, attempt, conflicts=(), state=state)


async def execute_registration(
    operations: Operations,
    command: RegisterSchema,
    make_answer: Callable[[State, Version], T],
    *,
    expects_change: bool = False,
) -> T:
    """Carry out a registration. Return what `make_answer` returns for the version (see `Registry.register`).

    Raises `RefusedChange`, `TooLarge` and what the decision raises.
    """
    size = len(_encode((command.references, command.metadata, command.rule_set)))
    if size > operations.registry.limits.schema_bytes:
        raise TooLarge(f"references, metadata and rules have {size} bytes, more than a schema may have")
    expects_change = expects_change or _begins_subject(operations.registry.state, command.key)
    try:
        return await operations.register(command, make_answer, expects_change=expects_change)
    except Incompatible as error:
        state = operations.registry.state
        raise operations.refuse_change(state, command.key, error.findings, error.against) from error


def _begins_subject(state: State, key: SubjectKey) -> bool:
    """Return whether a registration is the first of a subject, so that there is nothing to find or to compare."""
    subject = state.find_subject(key)
    if subject is not None and subject.versions:
        return False
    return (
        queries.mode_for(state, SettingsLevel(*key)) is Mode.READWRITE and not queries.policy_for(state, key).validators
    )


WARNING: Final = "Stele-Warning"
"""Header with ASCII sentences, at most `_LONGEST_WARNING` characters; absent if no census saw records."""
_LONGEST_WARNING: Final = 1000  # characters; proxies accept 4 KiB and more


async def delete_subject(
    operations: Operations, subject: SubjectKey, mode: DeleteMode
) -> tuple[tuple[int, ...], dict[str, str]]:
    """Delete all versions of a subject, unless an association requires them.

    Returns:
        The numbers of the deleted versions, and the headers that warn of records seen with them.

    Raises:
        SubjectTaken: The subject has an association and an active version.
        SteleError: What the deletion raises.
    """

    def decide(state: State) -> Command:
        bindings = queries.bindings_of(state, [subject])
        if _associations(bindings) and queries.latest_version(state.find_subject(subject)) is not None:
            raise SubjectTaken(qualify_subject(subject))
        return DeleteSubject(subject, mode, bindings)

    return await _delete(operations, subject, decide)


async def delete_version(
    operations: Operations, subject: SubjectKey, number: int | None, mode: DeleteMode
) -> tuple[tuple[int, ...], dict[str, str]]:
    """Delete one version, None for the latest. The last active version is kept if an association requires it.

    Returns:
        See `delete_subject`.

    Raises:
        SubjectOwned: A strong association needs the version.
        NoActiveVersion: A weak association needs it.
        SteleError: What the deletion raises.
    """

    def decide(state: State) -> Command:
        bindings = queries.bindings_of(state, [subject])
        active = queries.list_versions(state.find_subject(subject))
        associations = _associations(bindings)
        is_last = len(active) == 1 and number in (None, active[0].version_number)
        if associations and is_last and mode is DeleteMode.SOFT:
            is_owned = any(row.lifecycle == STRONG for row in associations)
            raise SubjectOwned(qualify_subject(subject)) if is_owned else NoActiveVersion(qualify_subject(subject))
        return DeleteVersion(subject, number, mode, bindings)

    return await _delete(operations, subject, decide)


async def _delete(
    operations: Operations, subject: SubjectKey, decide: Callable[[State], Command]
) -> tuple[tuple[int, ...], dict[str, str]]:
    warnings = DeletionWarnings(await operations.registry.fresh_state(), subject)

    async def attempt(state: State) -> DeletedVersions:
        outcome = await operations.execute(decide(state))
        assert isinstance(outcome, DeletedVersions)
        return outcome

    outcome = await retry_when_overtaken(operations.registry, attempt)
    return outcome.version_numbers, warnings.headers(operations, outcome.version_numbers)


def _associations(bindings: Iterable[Binding]) -> list[Binding]:
    """Return the bindings that are associations.

    Bindings of other dialects have no resource id, so no request of this API could delete them.
    """
    return [row for row in bindings if row.resource_id]


class DeletionWarnings:
    """Versions of a subject before a deletion, from which the warning header is made afterwards."""

    def __init__(self, state: State, subject: SubjectKey) -> None:
        self._rows: list[Version] = queries.list_versions(state.find_subject(subject), queries.ACTIVE_OR_SOFT_DELETED)

    def headers(self, operations: Operations, deleted: Iterable[int]) -> dict[str, str]:
        """Return the warning header for the versions that were deleted; no header if no census saw records of them."""
        numbers = set(deleted)
        rows = [row for row in self._rows if row.version_number in numbers]
        warnings = operations.usage.list_warnings(operations.registry.state, rows)
        return {WARNING: _join_warnings(warnings)} if warnings else {}


def _join_warnings(warnings: list[DeletionWarning]) -> str:
    """Return warnings joined by semicolons. Those that would make the header too long are only counted."""
    joined = ""
    for position, warning in enumerate(warnings):
        more = ("; " if joined else "") + warning.message.encode("ascii", "backslashreplace").decode()
        if len(joined) + len(more) > _LONGEST_WARNING:
            rest = f"and {len(warnings) - position} more"
            return f"{joined}; {rest}" if joined else f"{more[: _LONGEST_WARNING - len(rest) - 5]}... {rest}"
        joined += more
    return joined
