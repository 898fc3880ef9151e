"""Imports versions of other registries as replicas, with their uids, URIs and numbers. Repeating an import is harmless.

A subject with replicas is in IMPORT mode: no other client adds versions to it. A version that cannot be imported is
left out, and the answer has a code for the conflict.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Final

import msgspec
from msgspec.structs import replace

from stele.core import queries
from stele.core.access import Operation, subject_resource
from stele.core.commands import (
    Command,
    CompatibilityCheck,
    DeleteMode,
    DeleteSubject,
    DeleteVersion,
    Equality,
    Outcome,
    RegisterSchema,
    SetMode,
    SubjectDefaults,
    SubjectUpdate,
)
from stele.core.model import (
    Attachments,
    Mode,
    Numbering,
    Reference,
    SchemaDocument,
    SettingsLevel,
    Subject,
    SubjectKey,
    Version,
    VersionState,
)
from stele.core.state import State, uid_to_bytes
from stele.errors import (
    AlreadyExists,
    AlreadySoftDeleted,
    Conflict,
    Forbidden,
    IdTaken,
    InUse,
    Invalid,
    NotFound,
    Refused,
    Unauthenticated,
    UnresolvedReference,
)
from stele.protocol import cncf_uris
from stele.protocol.cncf import DIALECT, authority_of
from stele.protocol.replication import (
    ConflictCode,
    ImportAnswer,
    ImportedVersionRefusal,
    LevelName,
    MappedId,
    ReplicaImportRequest,
    ReplicaState,
    ReplicaVersion,
)
from stele.service import collections
from stele.service.collections import Changes, Items
from stele.service.registry import Registry
from stele.service.replication.reading import TOMBSTONES, Tombstone, find_tombstone
from stele.service.replication.settings import forget_subject_settings, import_level_settings

_AT_ONCE: Final = 256
"""Maximum number of versions that are imported at a time: the size of one batch of the log."""
_VIA: Final = "replication"
_MOST_TRIES: Final = 100


async def import_versions(registry: Registry, request: ReplicaImportRequest) -> ImportAnswer:
    """Execute an import. The answer lists what was refused.

    Raises `Forbidden`, `StoreError`, `InvalidRequest` for an invalid uid.
    """
    work = _Import(registry, request.versions)
    await work.remove(request.removed)
    await work.open_subjects({row.place for row in request.versions})
    for wave in _split_into_waves(request.versions):
        await asyncio.gather(*(work.register(row) for row in wave))
    await work.soft_delete([*request.deleted, *(row.uid for row in request.versions if _is_soft_deleted(row))])
    changed, unset = await import_level_settings(registry, request.settings)
    refused = [LevelName(row.namespace, row.subject) for row in unset]
    return ImportAnswer(work.registered, work.removed, work.refused, work.mapped, changed, refused)


def _is_soft_deleted(row: ReplicaVersion) -> bool:
    return row.state is ReplicaState.DELETED


def _split_into_waves(rows: Iterable[ReplicaVersion]) -> Iterator[list[ReplicaVersion]]:
    """Yield the rows in groups in which no row refers to another one, so that a group can be imported in any order."""
    wave: list[ReplicaVersion] = []
    coming: set[tuple[str, str, int]] = set()
    for row in rows:
        targets = {(*target.place, target.version) for target in row.references}
        if len(wave) == _AT_ONCE or targets & coming:
            yield wave
            wave, coming = [], set()
        wave.append(row)
        coming.add((*row.place, row.version))
    if wave:
        yield wave


class _Refusal(Exception):
    """Raised when a version cannot be imported."""

    def __init__(self, code: ConflictCode, why: str) -> None:
        super().__init__(why)
        self.code = code


class _Import:
    """One import."""

    def __init__(self, registry: Registry, versions: Iterable[ReplicaVersion]) -> None:
        self._registry = registry
        self._wanted_ids: dict[str, int] = {}
        """By namespace, the highest schema id that must be kept. Newly assigned ids are higher."""
        for row in versions:
            self._wanted_ids[row.namespace] = max(row.schema_id, self._wanted_ids.get(row.namespace, 0))
        self.registered = 0
        self.removed = 0
        self.refused: list[ImportedVersionRefusal] = []
        self.mapped: list[MappedId] = []

    async def _execute(self, command: Command, *, expects_change: bool = False) -> Outcome:
        return await self._registry.execute(command, via=_VIA, expects_change=expects_change)

    def _refuse(self, uid: str, code: ConflictCode, why: str) -> None:
        self.refused.append(ImportedVersionRefusal(uid, code.value, why))

    # --- removing -------------------------------------------------------------------------------------------------

    async def remove(self, removed: Sequence[tuple[str, ReplicaState]]) -> None:
        """Remove replicas whose originals were removed.

        A subject without any version left is deleted. If one of its versions was archived at the source, its
        incarnation ends.
        """
        if not removed:
            return
        state = await self._registry.fresh_state()
        states = dict(removed)
        by_subject: dict[SubjectKey, list[Version]] = {}
        for uid in states:
            version = queries.find_version_by_uid(state, int(uid, 16))
            if version is not None and version.state is not VersionState.ARCHIVED:
                by_subject.setdefault(version.subject.key, []).append(version)
        await self._write_tombstones(
            {
                f"{row.uid:032x}": Tombstone(authority_of(row.subject))
                for rows in by_subject.values()
                for row in rows
                if states[f"{row.uid:032x}"] is ReplicaState.PURGED
            }
        )
        for key, going in by_subject.items():
            await self._remove_from_subject(state.find_subject(key), going, states)

    async def _write_tombstones(self, tombstones: dict[str, Tombstone]) -> None:
        if not tombstones:
            return

        def change(items: Items) -> tuple[Changes, None]:
            return {(uid,): msgspec.json.encode(row) for uid, row in tombstones.items() if (uid,) not in items}, None

        await collections.edit_collection(self._registry, TOMBSTONES, change, via=_VIA)

    async def _remove_from_subject(
        self, subject: Subject | None, going: list[Version], states: dict[str, ReplicaState]
    ) -> None:
        if subject is None:
            return
        uids = [f"{row.uid:032x}" for row in going]
        is_whole = len(queries.list_versions(subject, queries.ACTIVE_OR_SOFT_DELETED)) == len(going)
        is_archived = any(states[uid] is ReplicaState.ARCHIVED for uid in uids)
        commands: list[Command]
        if is_whole and is_archived:
            commands = [DeleteSubject(subject.key, DeleteMode.END_INCARNATION)]
        elif is_whole:
            commands = [DeleteSubject(subject.key, mode) for mode in (DeleteMode.SOFT, DeleteMode.HARD)]
        else:
            numbers = [row.version_number for row in going]
            modes = (DeleteMode.SOFT, DeleteMode.HARD)
            commands = [DeleteVersion(subject.key, number, mode) for number in numbers for mode in modes]
        try:
            for command in commands:
                await self._delete(command)
        except InUse as error:
            for uid in uids:
                self._refuse(uid, ConflictCode.IN_USE, str(error))
        else:
            self.removed += len(uids)
            if is_whole:
                await forget_subject_settings(self._registry, [subject.key])

    async def _delete(self, command: Command) -> None:
        with suppress(NotFound, AlreadySoftDeleted):  # It no longer exists, or is soft-deleted already.
            await self._execute(command)

    async def soft_delete(self, uids: Sequence[str]) -> None:
        """Soft-delete replicas whose originals are soft-deleted."""
        state = await self._registry.fresh_state()
        replicas = ((uid, queries.find_version_by_uid(state, int(uid, 16))) for uid in uids)
        going = [(uid, row) for uid, row in replicas if row is not None and row.state is VersionState.ACTIVE]
        # Versions that refer to others are deleted first.
        for uid, version in sorted(going, key=lambda pair: -pair[1].seq):
            try:
                await self._delete(DeleteVersion(version.subject.key, version.version_number))
                self.removed += 1
            except InUse as error:
                self._refuse(uid, ConflictCode.IN_USE, str(error))

    # --- registering ----------------------------------------------------------------------------------------------

    async def open_subjects(self, places: Iterable[tuple[str, str]]) -> None:
        """Put subjects into IMPORT mode, unless they have versions of this registry's own."""
        state = await self._registry.fresh_state()
        levels = [SettingsLevel(*place) for place in sorted(places)]
        closed = [level for level in levels if queries.mode_for(state, level) is not Mode.IMPORT]
        wanted = [level for level in closed if not _has_own_versions(state, level)]
        for start in range(0, len(wanted), _AT_ONCE):
            part = wanted[start : start + _AT_ONCE]
            await asyncio.gather(*(self._execute(SetMode(level, Mode.IMPORT, force=True)) for level in part))

    async def register(self, row: ReplicaVersion) -> None:
        """Register a replica, unless this registry has it or has a tombstone of it."""
        try:
            if await self._register(row):
                self.registered += 1
        except (Forbidden, Unauthenticated):
            raise
        except _Refusal as refusal:
            self._refuse(row.uid, refusal.code, str(refusal))
        except UnresolvedReference as error:
            self._refuse(row.uid, ConflictCode.REFERENCE_MISSING, str(error))
        except AlreadyExists as error:
            if queries.find_version_by_uid(self._registry.state, int(row.uid, 16)) is None:
                self._refuse(row.uid, ConflictCode.NUMBER_TAKEN, str(error))
        except (Invalid, Conflict, NotFound, Refused) as error:
            self._refuse(row.uid, ConflictCode.REFUSED, str(error))

    async def _register(self, row: ReplicaVersion) -> bool:
        registry = self._registry
        key = SubjectKey(*row.place)
        registry.access.require(Operation.IMPORT, subject_resource(key))
        state = await registry.fresh_state()
        uid = int(row.uid, 16)
        if queries.find_version_by_uid(state, uid) is not None or find_tombstone(registry, state, row.uid):
            return False
        cncf_uris.check_uri(row.uri, "URI of a version")
        cncf_uris.check_authority(row.authority)
        _require_place(state, key, row)
        references = tuple(Reference(each.name, *each.place, each.version) for each in row.references)
        registry.access.require_references(state, references)
        prepared = await registry.parser.prepare_schema(
            state, row.format, row.get_text(), references, strict=False, lax_imports=True, checks_defaults=False
        )
        document = replace(prepared.document, custom_format=row.custom_format)
        await self._register_document(row, key, document, Attachments(references, row.metadata, row.rule_set))
        return True

    async def _register_document(
        self, row: ReplicaVersion, key: SubjectKey, document: SchemaDocument, attachments: Attachments
    ) -> None:
        own = {"authority": row.authority, **({"format": row.written_format} if row.written_format else {})}
        command = RegisterSchema(
            key,
            document,
            attachments.references,
            attachments.metadata,
            attachments.rule_set,
            equality=Equality.NEVER,
            check=CompatibilityCheck.POLICY,
            version_number=row.version,
            schema_id=row.schema_id,
            defaults=SubjectDefaults(Numbering(row.numbering)),
            description=row.description,
            labels=row.labels,
            media_type=row.media_type,
            origin_uri=row.uri,
            subject_update=SubjectUpdate(row.subject_description or None, {DIALECT: own}),
            at=row.at or None,
            uid=uid_to_bytes(int(row.uid, 16)),
        )
        for _ in range(_MOST_TRIES):
            schema_id = self._choose_schema_id(row.schema_id, key, document, attachments)
            try:
                await self._execute(replace(command, schema_id=schema_id), expects_change=True)
            except IdTaken:
                continue  # Another version of this import was faster.
            if row.schema_id not in (0, schema_id):
                self.mapped.append(MappedId(row.uid, schema_id))
            return
        raise _Refusal(ConflictCode.ID_TAKEN, f"no schema id is left for version {row.version} of '{key.name}'")

    def _choose_schema_id(
        self, wanted: int, key: SubjectKey, document: SchemaDocument, attachments: Attachments
    ) -> int:
        """Return the id of a version at its source, or another one if that id belongs to another schema here."""
        state = self._registry.state
        namespace = state.find_namespace(key.namespace)
        holder = None if namespace is None else namespace.schema_entries.get(wanted)
        stored = replace(attachments, metadata=attachments.metadata.in_stored_order() if attachments.metadata else None)
        if wanted > 0 and (holder is None or (holder.content.sha == document.sha and holder.attachments == stored)):
            return wanted
        known = queries.find_schema_id(state, key.namespace, document.sha, document.format, stored)
        if known is not None:
            return known.schema_id
        highest = namespace.highest_schema_id if namespace is not None else 0
        return max(highest, state.skipped_schema_ids, self._wanted_ids[key.namespace]) + 1


def _has_own_versions(state: State, level: SettingsLevel) -> bool:
    """Return whether a subject has versions of this registry's own. It stays open to its writers then."""
    subject = state.find_subject(SubjectKey(level.namespace or "", level.subject or ""))
    return subject is not None and bool(subject.versions) and not authority_of(subject)


def _require_place(state: State, key: SubjectKey, row: ReplicaVersion) -> None:
    """Raise `_Refusal` where a replica's subject, URI or number belongs to another version."""
    subject = state.find_subject(key)
    named = queries.find_version_by_origin(state, row.uri)
    if named is not None:
        raise _Refusal(ConflictCode.URI_TAKEN, f"{row.uri} is the URI of another version")
    if subject is None or not subject.versions:
        return
    there = authority_of(subject)
    if there.rstrip("/") != row.authority.rstrip("/"):
        raise _Refusal(
            ConflictCode.AUTHORITY_DIFFERS,
            f"'{key.name}' already exists under the authority {there or 'of that registry'}, not {row.authority}",
        )
    if any(version.version_number == row.version for version in subject.versions):
        raise _Refusal(
            ConflictCode.NUMBER_TAKEN, f"version {row.version} of '{key.name}' already exists with another schema"
        )
