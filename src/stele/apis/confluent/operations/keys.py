"""Keys of field encryption: how they are stored, found and changed; making and unwrapping data keys.

A KEK belongs to a context. A DEK belongs to a subject, algorithm and version under the name of a KEK; which KEK of that
name wraps it is fixed when it is made: that of the subject's context, else that of the default one.
"""

from __future__ import annotations

import base64
import binascii
import time
from collections.abc import Callable
from typing import Final, NamedTuple, TypeVar

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from stele.apis.confluent import models as api
from stele.apis.confluent.errors import (
    InvalidKey,
    KekSoftDeleted,
    KeyExists,
    KeyGenerationFailed,
    KeyGenerationRefused,
    KeyInUse,
    KeyNotFound,
    KeyNotSoftDeleted,
    TooManyKeys,
)
from stele.apis.confluent.names import qualify_subject
from stele.apis.confluent.operations.schemas import Operations
from stele.apis.confluent.translate import restore_hidden
from stele.core import queries
from stele.core.access import Operation, key_resource
from stele.core.model import DEFAULT_NAMESPACE, Mode, SettingsLevel, SubjectKey
from stele.core.state import State
from stele.errors import NotInstalled, SteleError
from stele.service import collections
from stele.service.access import AccessControl
from stele.service.collections import Changes, Items
from stele.service.disclosure import HIDDEN, hide_url, is_harmless, restore_url
from stele.service.kms import ALTERNATES, HARMLESS, KmsDenied, KmsError, UnknownKms, new_material, unwrap, wrap
from stele.service.retry import retry_when_overtaken

T = TypeVar("T")

COLLECTION: Final = "confluent.keys"
FIRST_VERSION: Final = 1
DEFAULT_ALGORITHM: Final = "AES256_GCM"

_LONGEST_NAME = 64
_VENDORS = ("aws", "azure", "gcp")
"""KMS types that begin so are shortened to that and `-kms`."""


class KekKey(NamedTuple):
    """Where a KEK is stored."""

    kind: str
    space: str
    name: str


class DekKey(NamedTuple):
    """Where a DEK is stored."""

    kind: str
    kek: str
    space: str
    subject: str
    algorithm: str
    version: str

    @property
    def owner(self) -> SubjectKey:
        """The subject."""
        return SubjectKey(self.space, self.subject)


class StoredKek(msgspec.Struct, frozen=True, omit_defaults=True):
    """A stored KEK; properties hold secrets, too: no answer shows them, and the log has them sealed."""

    kms_type: str
    key_id: str
    properties: dict[str, str]
    doc: str | None
    shared: bool
    ts: int
    deleted: bool = False


class StoredDek(msgspec.Struct, frozen=True, omit_defaults=True):
    """A stored DEK: wrapped material in base64, and the space of the KEK that wraps it."""

    kek_space: str
    material: str
    ts: int
    deleted: bool = False


def make_kek_key(space: str, name: str) -> KekKey:
    """Where a KEK is stored. Raises `InvalidKey` for a name that cannot be one."""
    start = name[:1]
    if not (start.isalpha() or start == "_") or len(name) > _LONGEST_NAME:
        raise InvalidKey("name")
    if not all(char.isalnum() or char in "_-" for char in name):
        raise InvalidKey("name")
    return KekKey("kek", space, name)


def make_dek_key(kek: str, subject: SubjectKey, algorithm: str, version: int) -> DekKey:
    """Where a DEK is stored."""
    return DekKey("dek", kek, subject.namespace, subject.name, algorithm, str(version))


def read_kek(items: Items, key: KekKey, *, deleted: bool) -> StoredKek:
    """The KEK of exactly that context. Raises `KeyNotFound`."""
    data = items.get(key)
    kek = None if data is None else msgspec.json.decode(data, type=StoredKek)
    if kek is None or (kek.deleted and not deleted):
        raise KeyNotFound(key.name)
    return kek


def find_kek(items: Items, key: KekKey, *, deleted: bool) -> tuple[KekKey, StoredKek]:
    """The KEK of that context, else that of the default one. Raises `KeyNotFound`."""
    try:
        return key, read_kek(items, key, deleted=deleted)
    except KeyNotFound:
        outer = key._replace(space=DEFAULT_NAMESPACE)
        return outer, read_kek(items, outer, deleted=deleted)


def read_dek(items: Items, key: DekKey, *, deleted: bool) -> StoredDek:
    """A DEK of exactly that version. Raises `KeyNotFound`."""
    data = items.get(key)
    dek = None if data is None else msgspec.json.decode(data, type=StoredDek)
    if dek is None or (dek.deleted and not deleted):
        raise KeyNotFound(qualify_subject(key.owner))
    return dek


def list_deks(items: Items, like: DekKey, *, deleted: bool) -> list[tuple[DekKey, StoredDek]]:
    """All versions of a DEK, ascending; the version of like does not matter."""
    keys = (DekKey(*key) for key in items if key[0] == like.kind and key[:-1] == like[:-1])
    versions = [(key, msgspec.json.decode(items[key], type=StoredDek)) for key in keys]
    return sorted((row for row in versions if deleted or not row[1].deleted), key=lambda row: int(row[0].version))


def find_dek(items: Items, like: DekKey, version: int | None, *, deleted: bool) -> tuple[DekKey, StoredDek]:
    """A version of a DEK, None for the newest. Raises `KeyNotFound`."""
    if version is not None:
        key = like._replace(version=str(version))
        return key, read_dek(items, key, deleted=deleted)
    versions = list_deks(items, like, deleted=deleted)
    if not versions:
        raise KeyNotFound(qualify_subject(like.owner))
    return versions[-1]


def list_wrapped_deks(items: Items, key: KekKey, *, deleted: bool) -> list[DekKey]:
    """The DEKs a KEK wraps, sorted."""
    rows = ((DekKey(*name), data) for name, data in items.items() if name[:2] == ("dek", key.name))
    deks = [(name, msgspec.json.decode(data, type=StoredDek)) for name, data in rows]
    return sorted(n for n, dek in deks if dek.kek_space == key.space and (deleted or not dek.deleted))


def list_kek_names(items: Items, space: str, prefixes: list[str], *, deleted: bool) -> list[str]:
    """Names of the KEKs of a context, sorted; with prefixes those that wrap a DEK of a subject that begins so."""
    if not prefixes:
        keys = (KekKey(*key) for key in items if key[:2] == ("kek", space))
        return sorted(k.name for k in keys if deleted or not read_kek(items, k, deleted=True).deleted)
    names = set()
    for key in (DekKey(*key) for key in items if key[0] == "dek"):
        dek = read_dek(items, key, deleted=True)
        subject = qualify_subject(key.owner)
        if dek.kek_space == space and (deleted or not dek.deleted) and any(map(subject.startswith, prefixes)):
            names.add(key.kek)
    return sorted(names)


# --- changes --------------------------------------------------------------------------------------------------------


def create_kek(
    items: Items, key: KekKey, request: api.CreateKekRequest, most: int, now: int
) -> tuple[Changes, StoredKek]:
    """A KEK made, or brought back with the very same attributes. Raises `InvalidKey`, `KeyExists`, `TooManyKeys`."""
    kek = kek_in(request, now)
    before = items.get(key)
    if before is None:
        if HIDDEN in kek.key_id:  # which an answer showed: nobody could use such a key
            raise InvalidKey("kmsKeyId")
        require_room(items, key.kind, most)
    else:
        known = msgspec.json.decode(before, type=StoredKek)
        kek = replace(kek, key_id=restore_url(kek.key_id, known.key_id))
        if known.deleted == kek.deleted or replace(known, ts=now, deleted=kek.deleted) != kek:
            raise KeyExists(key.name)
    return {key: msgspec.json.encode(kek)}, kek


def kek_in(request: api.CreateKekRequest, now: int) -> StoredKek:
    """A request as a KEK. Raises `InvalidKey`."""
    if not request.kms_key_id:
        raise InvalidKey("kmsKeyId")
    if not request.kms_type:
        raise InvalidKey("kmsType")
    vendor = next((name for name in _VENDORS if request.kms_type.lower().startswith(name)), None)
    return StoredKek(
        kms_type=f"{vendor}-kms" if vendor else request.kms_type,
        key_id=request.kms_key_id,
        properties=dict(sorted((request.kms_props or {}).items())),
        doc=request.doc,
        shared=bool(request.shared),
        ts=now,
        deleted=bool(request.deleted),
    )


def update_kek(items: Items, key: KekKey, request: api.UpdateKekRequest, now: int) -> tuple[Changes, StoredKek]:
    """A KEK changed. Secrets that answers left out and that come back left out stay. Raises `KeyNotFound`."""
    before = read_kek(items, key, deleted=False)
    kek = before
    if request.kms_props is not UNSET:
        kek = replace(kek, properties=restore_hidden(request.kms_props, before.properties, hidden_properties(before)))
    if request.doc is not UNSET:
        kek = replace(kek, doc=request.doc)
    if request.shared is not UNSET:
        kek = replace(kek, shared=bool(request.shared))
    if kek == before:
        return {}, before
    kek = replace(kek, ts=now)
    return {key: msgspec.json.encode(kek)}, kek


def delete_kek(items: Items, key: KekKey, *, permanent: bool, now: int) -> Changes:
    """A KEK deleted, softly or for good. Raises `KeyNotFound`, `KeyInUse`, `KeyNotSoftDeleted`."""
    kek = read_kek(items, key, deleted=True)
    if list_wrapped_deks(items, key, deleted=permanent):
        raise KeyInUse(key.name)
    if permanent:
        if not kek.deleted:
            raise KeyNotSoftDeleted(key.name)
        return {key: None}
    return {} if kek.deleted else {key: msgspec.json.encode(replace(kek, deleted=True, ts=now))}


def undelete_kek(items: Items, key: KekKey, now: int) -> Changes:
    """A soft-deleted KEK brought back; one that is there stays. Raises `KeyNotFound`."""
    kek = read_kek(items, key, deleted=True)
    return {key: msgspec.json.encode(replace(kek, deleted=False, ts=now))} if kek.deleted else {}


def delete_deks(rows: list[tuple[DekKey, StoredDek]], *, permanent: bool, now: int) -> Changes:
    """Versions of a DEK deleted, softly or for good. Raises `KeyNotSoftDeleted`."""
    if not permanent:
        return {k: msgspec.json.encode(replace(dek, deleted=True, ts=now)) for k, dek in rows if not dek.deleted}
    for key, dek in rows:
        if not dek.deleted:
            raise KeyNotSoftDeleted(qualify_subject(key.owner))
    return {key: None for key, _ in rows}


def undelete_deks(items: Items, rows: list[tuple[DekKey, StoredDek]], now: int) -> Changes:
    """Soft-deleted versions of a DEK brought back. Raises `KekSoftDeleted` while their KEK is deleted itself."""
    for key, dek in rows:
        if read_kek(items, KekKey("kek", dek.kek_space, key.kek), deleted=True).deleted:
            raise KekSoftDeleted(key.kek)
    return {k: msgspec.json.encode(replace(dek, deleted=False, ts=now)) for k, dek in rows if dek.deleted}


def require_room(items: Items, kind: str, most: int) -> None:
    """Raises `TooManyKeys` when as many keys of a kind are there as may be."""
    if sum(key[0] == kind for key in items) >= most:
        raise TooManyKeys(most)


# --- rights ---------------------------------------------------------------------------------------------------------


def require_key_rights(access: AccessControl, items: Items, changes: Changes) -> None:
    """Raise `Forbidden` unless the caller may make these changes of keys, by what is in them.

    A KEK wants the right to manage it. One that is shared and uses a key of a KMS that a KEK without sharing uses, too,
    wants that right for both: the server would unwrap for the one what it does not for the other. A DEK whose material
    stands under another KEK wants the right to unwrap that one's keys.
    """
    for name, data in changes.items():
        if name[0] == "kek":
            key = KekKey(*name)
            access.require(Operation.MANAGE_KEYS, key_resource(key.name))
            if data is not None:
                _require_same_kms_key_rights(access, items, key, msgspec.json.decode(data, type=StoredKek))
        elif data is not None and items.get(name) != data:
            _require_same_material_rights(access, items, DekKey(*name), msgspec.json.decode(data, type=StoredDek))


def _require_same_kms_key_rights(access: AccessControl, items: Items, key: KekKey, kek: StoredKek) -> None:
    if not kek.shared:
        return
    used = _list_kms_keys(kek)
    for other in (KekKey(*name) for name in items if name[0] == "kek" and name != key):
        known = read_kek(items, other, deleted=True)
        if not known.shared and not used.isdisjoint(_list_kms_keys(known)):
            access.require(Operation.MANAGE_KEYS, key_resource(other.name))


def _list_kms_keys(kek: StoredKek) -> set[tuple[str, str]]:
    """The keys of a KMS that a KEK uses: type and id; of the local KMS, whose ids mean nothing, the secret."""
    if kek.kms_type == "local-kms":
        return {(kek.kms_type, kek.properties.get("secret", ""))}
    others = (name.strip() for name in kek.properties.get(ALTERNATES, "").split(","))
    return {(kek.kms_type, name) for name in (kek.key_id, *filter(None, others))}


def _require_same_material_rights(access: AccessControl, items: Items, key: DekKey, dek: StoredDek) -> None:
    material = _decode_material(dek)
    for name in items:
        if name[0] != "dek":
            continue
        other, known = DekKey(*name), msgspec.json.decode(items[name], type=StoredDek)
        is_elsewhere = (other.kek, known.kek_space) != (key.kek, dek.kek_space)
        if is_elsewhere and (known.material == dek.material or _decode_material(known) == material):
            access.require(Operation.UNWRAP_KEYS, key_resource(other.kek))


def _decode_material(dek: StoredDek) -> bytes:
    """The wrapped key of a DEK, whatever way base64 is written; the text itself where it is none."""
    try:
        return base64.b64decode(dek.material, validate=True)
    except (binascii.Error, ValueError):
        return dek.material.encode()


async def edit_keys(operations: Operations, change: Callable[[Items], tuple[Changes, T]]) -> T:
    """Change keys in the caller's name. Raises what change raises, and `Forbidden`."""

    def change_with_rights(items: Items) -> tuple[Changes, T]:
        changes, answer = change(items)
        require_key_rights(operations.registry.access, items, changes)
        return changes, answer

    return await operations.edit_items(COLLECTION, change_with_rights)


def may_unwrap(operations: Operations, name: str) -> bool:
    """Whether the caller may get the data keys of a KEK in plain text."""
    return operations.registry.access.allows(Operation.UNWRAP_KEYS, key_resource(name))


# --- answers --------------------------------------------------------------------------------------------------------


def hidden_properties(kek: StoredKek) -> frozenset[str]:
    """Names of the properties that answers leave out; a placeholder would take the place of a client's own setting."""
    return frozenset(name for name, value in kek.properties.items() if not is_harmless(name, value, HARMLESS))


def kek_out(name: str, kek: StoredKek) -> api.Kek:
    """A KEK as answers show it: without secrets."""
    return api.Kek(
        name=name,
        kms_type=kek.kms_type,
        kms_key_id=hide_url(kek.key_id) if "://" in kek.key_id else kek.key_id,
        kms_props={name: kek.properties[name] for name in kek.properties.keys() - hidden_properties(kek)},
        doc=kek.doc,
        shared=kek.shared,
        ts=kek.ts,
        deleted=kek.deleted or None,
    )


def dek_out(key: DekKey, dek: StoredDek, material: str | None = None) -> api.Dek:
    """A DEK as answers show it; material is the unwrapped key in base64."""
    return api.Dek(
        kek_name=key.kek,
        subject=qualify_subject(key.owner),
        version=int(key.version),
        algorithm=key.algorithm,
        encrypted_key_material=dek.material,
        key_material=material,
        ts=dek.ts,
        deleted=dek.deleted or None,
    )


_TEST_SUBJECT = "__TEST"


class _KeysChanged(Exception):
    """The documents are no longer those a data key was made for."""


def current_millis() -> int:
    """Milliseconds since 1970 UTC."""
    return time.time_ns() // 1_000_000


async def store_dek(
    operations: Operations, kek_key: KekKey, key: DekKey, request: api.CreateDekRequest, *, rewrap: bool
) -> api.Dek:
    """Store a DEK: the one sent, or a fresh one where the server may use the KEK.

    rewrap encrypts the key that is there anew, or takes the one sent in its place. Raises `KeyNotFound`, `KeyExists`,
    `TooManyKeys`, `InvalidKey`, `KeyGenerationFailed`, `KeyGenerationRefused`.
    """

    async def attempt(state: State) -> api.Dek:
        items = collections.items_in(operations.registry, state, COLLECTION)
        home, kek = find_kek(items, kek_key, deleted=bool(request.deleted))
        before = items.get(key)
        expected_items = (items[home], before)
        _require_new(before, key, kek, request, rewrap=rewrap)
        material, raw = await _make_material(key, home, kek, before, request)
        dek = StoredDek(home.space, material, current_millis(), bool(request.deleted))

        def change(items: Items) -> tuple[Changes, None]:
            if (items.get(home), items.get(key)) != expected_items:
                raise _KeysChanged
            if key not in items:
                require_room(items, key.kind, operations.registry.limits.keys)
            return {key: msgspec.json.encode(dek)}, None

        await edit_keys(operations, change)
        is_shown = raw is not None and may_unwrap(operations, key.kek) and not _is_importing(operations, key)
        if is_shown:
            _note_unwrapping(operations, key)
        return dek_out(key, dek, raw if is_shown else None)

    return await retry_when_overtaken(operations.registry, attempt, conflicts=(_KeysChanged,))


def _require_new(
    before: bytes | None, key: DekKey, kek: StoredKek, request: api.CreateDekRequest, *, rewrap: bool
) -> None:
    """Raises `KeyExists` where a key is there already, unless it comes back from deletion or is wrapped anew."""
    known = None if before is None else msgspec.json.decode(before, type=StoredDek)
    if known is None:
        return
    name = qualify_subject(key.owner)
    same = request.encrypted_key_material in (None, known.material)
    if not rewrap and (known.deleted == bool(request.deleted) or not same):
        raise KeyExists(name)
    if kek.shared and request.encrypted_key_material is not None:
        raise KeyExists(name)


async def _make_material(
    key: DekKey, kek_key: KekKey, kek: StoredKek, before: bytes | None, request: api.CreateDekRequest
) -> tuple[str, str | None]:
    """Wrapped material to store, and unwrapped material to answer if the server may know it, both in base64."""
    if request.encrypted_key_material is not None:
        dek = StoredDek(kek_key.space, request.encrypted_key_material, 0)
        return dek.material, await _unwrap_material(key, kek, dek) if kek.shared else None
    if not kek.shared:
        raise InvalidKey("encryptedKeyMaterial")
    raw = None if before is None else await _unwrap_material(key, kek, msgspec.json.decode(before, type=StoredDek))
    fresh = new_material(key.algorithm) if raw is None else base64.b64decode(raw)
    try:
        wrapped = await wrap(kek.kms_type, kek.key_id, kek.properties, fresh)
    except (KmsError, NotInstalled) as error:
        raise _kms_error(f"Could not generate encrypted dek for {qualify_subject(key.owner)}", error) from None
    return _encode_base64(wrapped), _encode_base64(fresh)


async def unwrap_dek(operations: Operations, items: Items, key: DekKey, dek: StoredDek) -> api.Dek:
    """A DEK as answers show it, unwrapped where the server may use its KEK, and the caller may have the plain key.

    Raises `KeyGenerationFailed`.
    """
    kek = read_kek(items, KekKey("kek", dek.kek_space, key.kek), deleted=True)
    if not kek.shared or not may_unwrap(operations, key.kek):
        return dek_out(key, dek)
    material = await _unwrap_material(key, kek, dek)
    _note_unwrapping(operations, key)
    return dek_out(key, dek, material)


def _note_unwrapping(operations: Operations, key: DekKey) -> None:
    """Tell the audit trail that the caller gets a data key in plain text."""
    operations.registry.audit.note(
        "key_unwrapped",
        namespace=key.space,
        subject=key.subject,
        kek=key.kek,
        algorithm=key.algorithm,
        version=int(key.version),
    )


async def _unwrap_material(key: DekKey, kek: StoredKek, dek: StoredDek) -> str:
    try:
        wrapped = base64.b64decode(dek.material, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidKey("encryptedKeyMaterial") from None
    try:
        return _encode_base64(await unwrap(kek.kms_type, kek.key_id, kek.properties, wrapped))
    except (KmsError, NotInstalled) as error:
        raise _kms_error(f"Could not generate raw dek for {qualify_subject(key.owner)}", error) from None


async def require_usable_kek(kek: StoredKek) -> None:
    """Wrap a key for nothing, to see that it can be done. Raises `InvalidKey`, `KeyGenerationFailed`."""
    if not kek.shared:
        raise InvalidKey("shared")
    try:
        await wrap(kek.kms_type, kek.key_id, kek.properties, new_material(DEFAULT_ALGORITHM))
    except (KmsError, NotInstalled) as error:
        raise _kms_error(f"Could not generate encrypted dek for {_TEST_SUBJECT}", error) from None


def _kms_error(what: str, error: Exception) -> SteleError:
    """What the failure of a KMS means to who asked: a type nobody knows is his own fault."""
    if isinstance(error, UnknownKms):
        return InvalidKey("kmsType", str(error))
    words = f"{what}: {error}"
    return KeyGenerationRefused(words) if isinstance(error, KmsDenied) else KeyGenerationFailed(words)


def _is_importing(operations: Operations, key: DekKey) -> bool:
    return queries.mode_for(operations.registry.state, SettingsLevel(*key.owner)) is Mode.IMPORT


def _encode_base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
