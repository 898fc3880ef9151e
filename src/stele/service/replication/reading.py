"""Returns versions with all their attributes to other registries: what replication reads, here and over HTTP."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec.structs import replace

from stele.core import queries
from stele.core.access import REGISTRY_RESOURCE, Operation, namespace_resource, subject_resource
from stele.core.model import Subject, SubjectKey, Version, VersionState
from stele.core.state import State
from stele.errors import TooLarge
from stele.protocol import cncf_uris
from stele.protocol.cncf import authority_of, group_id_of, own_data
from stele.protocol.replication import (
    ReadAnswer,
    ReadRequest,
    ReplicaReference,
    ReplicaState,
    ReplicaVersion,
)
from stele.service import collections
from stele.service.registry import Registry
from stele.service.replication.settings import read_level_settings

TOMBSTONES: Final = "replications.tombstones"
"""Collection of replicas whose originals were purged, by uid, so that no other replica restores them."""
MOST_NAMED: Final = 1000
"""Maximum number of subjects or uids in one request."""
_PAGE_ROWS: Final = 2000
_PAGE_BYTES: Final = 4 * 1024 * 1024
"""Versions of a page, and bytes of their texts, after which it ends with the current subject."""

_STATES: Final = {
    VersionState.ACTIVE: ReplicaState.ACTIVE,
    VersionState.SOFT_DELETED: ReplicaState.DELETED,
    VersionState.ARCHIVED: ReplicaState.ARCHIVED,
}


class Tombstone(msgspec.Struct, frozen=True):
    """The stored rest of a purged replica: the authority of its original."""

    authority: str


_tombstone: Final = msgspec.json.Decoder(Tombstone)


async def read_versions(registry: Registry, base: str, request: ReadRequest) -> ReadAnswer:
    """Return the versions that a request selects.

    Args:
        registry: Registry of the versions.
        base: Base URI of the registry, which is the authority of subjects without another one.
        request: Selects the versions.

    Raises:
        TooLarge: It names too many.
        Forbidden: The caller may not export what is requested: the registry, a namespace or a subject.
        StoreError: The log cannot be read.
    """
    state = await registry.fresh_state()
    if max(map(len, (request.uids or (), request.subjects or (), request.levels))) > MOST_NAMED:
        raise TooLarge(f"a request may name at most {MOST_NAMED} subjects, uids or levels")
    answer = await _read_rows(registry, state, base, request)
    if not request.levels:
        return answer
    return replace(answer, settings=read_level_settings(registry, state, request.levels))


async def _read_rows(registry: Registry, state: State, base: str, request: ReadRequest) -> ReadAnswer:
    if request.uids is not None:
        return ReadAnswer(base, str(state.seq), _find_rows(registry, state, base, request.uids, texts=request.texts))
    if request.subjects is not None:
        for key in request.subjects:
            registry.access.require(Operation.EXPORT, subject_resource(SubjectKey(*key)))
        candidates = [state.find_subject(SubjectKey(*key)) for key in sorted(set(request.subjects))]
        subjects = [subject for subject in candidates if subject is not None]
    else:
        whole = REGISTRY_RESOURCE if request.namespace is None else namespace_resource(request.namespace)
        registry.access.require(Operation.EXPORT, whole)
        subjects = _list_subjects(state, request.namespace)
    return await _make_page(registry, state, base, request, subjects)


def _list_subjects(state: State, namespace: str | None) -> list[Subject]:
    namespaces = [row for name, row in state.namespaces.items() if namespace in (None, name)]
    return queries.list_subjects(state, namespaces, queries.ACTIVE_OR_SOFT_DELETED)


async def _make_page(
    registry: Registry, state: State, base: str, request: ReadRequest, subjects: list[Subject]
) -> ReadAnswer:
    position = str(state.seq)
    rows: list[ReplicaVersion] = []
    size = 0
    rest = [row for row in subjects if request.after is None or row.key > SubjectKey(*request.after)]
    async for subject in registry.time_slices.iterate(rest):
        if rows and (len(rows) >= _PAGE_ROWS or size >= _PAGE_BYTES):
            return ReadAnswer(base, position, rows, rows[-1].place)
        for version in queries.list_versions(subject, queries.ACTIVE_OR_SOFT_DELETED):
            row = describe_version(state, base, version, texts=request.texts)
            size += len(row.text or row.base64 or "")
            rows.append(row)
    return ReadAnswer(base, position, rows)


def _find_rows(
    registry: Registry, state: State, base: str, uids: Iterable[str], *, texts: bool
) -> list[ReplicaVersion]:
    """Return versions by uid with their states. Beyond the maximum length of texts, the rest have no texts."""
    rows: list[ReplicaVersion] = []
    size = 0
    for uid in uids:
        row = _find_row(registry, state, base, uid, texts and size < _PAGE_BYTES)
        if row is not None:
            rows.append(row)
            size += len(row.text or row.base64 or "")
    return rows


def _find_row(registry: Registry, state: State, base: str, uid: str, texts: bool) -> ReplicaVersion | None:
    """Return a version by uid with its state; None if this registry never had it, or has no tombstone of it."""
    version = queries.find_version_by_uid(state, int(uid, 16))
    if version is not None:
        if not registry.access.allows(Operation.EXPORT, subject_resource(version.subject.key)):
            return ReplicaVersion(uid)  # Only that it exists, which a caller that knows the uid may learn.
        return describe_version(state, base, version, texts=texts)
    tombstone = find_tombstone(registry, state, uid)
    return None if tombstone is None else ReplicaVersion(uid, ReplicaState.PURGED, authority=tombstone.authority)


def find_tombstone(registry: Registry, state: State, uid: str) -> Tombstone | None:
    """Return the tombstone of a purged replica; None if there is none."""
    text = collections.items_in(registry, state, TOMBSTONES).get((uid,))
    return None if text is None else _tombstone.decode(text)


def describe_version(state: State, base: str, version: Version, *, texts: bool) -> ReplicaVersion:
    """Return a version in the form that registries exchange; base is the URI of this registry."""
    subject, attributes, schema = version.subject, version.attributes, version.schema
    key = subject.key
    authority = authority_of(subject) or base
    reference = (attributes.origin_uri if attributes is not None else None) or cncf_uris.default_id(
        group_id_of(key.namespace), key.name, version.version_number
    )
    text, encoded = None, None
    if texts:
        data = state.get_text(version.content)
        try:
            text = data.decode()
        except UnicodeDecodeError:
            encoded = data
    return ReplicaVersion(
        uid=f"{version.uid:032x}",
        state=_STATES[version.state],
        namespace=key.namespace,
        subject=key.name,
        version=version.version_number,
        schema_id=schema.schema_id,
        uri=cncf_uris.join_uri(authority, reference),
        authority=authority,
        format=version.kind.format,
        type=version.kind.type,
        custom_format=version.kind.custom_format,
        sha256=version.content.sha.hex(),
        text=text,
        base64=encoded,
        references=tuple(
            ReplicaReference(row.name, row.namespace, row.subject, row.version_number)
            for row in schema.attachments.references
        ),
        metadata=schema.attachments.metadata,
        rule_set=schema.attachments.rule_set,
        media_type=attributes.media_type if attributes is not None else "",
        description=attributes.description if attributes is not None else "",
        labels=attributes.labels if attributes is not None else None,
        at=version.at,
        numbering=subject.numbering.value,
        subject_description=subject.description,
        written_format=str(own_data(subject.dialect_data).get("format", "")),
    )
