"""Keys of field encryption: storing, finding and changing them; generating and unwrapping data keys.

A KEK belongs to a context. A DEK belongs to a subject, algorithm and version under the name of a KEK. Which KEK of that
name wraps a DEK is decided when the DEK is created: the KEK of the subject's context, else that of the default one.
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
"""Prefixes of KMS types. A type that begins with one is stored as this prefix and `-kms`."""


class KekKey(NamedTuple):
    """Key of a KEK in the collection."""

    kind: str
    space: str
    name: str


class DekKey(NamedTuple):
    """Key of a DEK in the collection."""

    kind: str
    kek: str
    space: str
    subject: str
    algorithm: str
    version: str

    @property
    def owner(self) -> SubjectKey:
        """Subject that the DEK belongs to."""
        return SubjectKey(self.space, self.subject)


class StoredKek(msgspec.Struct, frozen=True, omit_defaults=True):
    """A stored KEK. Its properties may hold secrets: responses leave them out, and the log stores them encrypted."""

    kms_type: str
    key_id: str
    properties: dict[str, str]
    doc: str | None
    shared: bool
    ts: int
    deleted: bool = False


class StoredDek(msgspec.Struct, frozen=True, omit_defaults=True):
    """A stored DEK: wrapped material in base64, and the namespace of the KEK that wraps it."""

    kek_space: str
    material: str
    ts: int
    deleted: bool = False


def make_kek_key(space: str, name: str) -> KekKey:
    """Return the key of a KEK in the collection. Raises `InvalidKey` for an invalid name."""
    start = name[:1]
    if not (start.isalpha() or start == "_") or len(name) > _LONGEST_NAME:
        raise InvalidKey("name")
    if not all(char.isalnum() or char in "_-" for char in name):
        raise InvalidKey("name")
    return KekKey("kek", space, name)


def make_dek_key(kek: str, subject: SubjectKey, algorithm: str, version: int) -> DekKey:
    """Return the key of a DEK in the collection."""
    return DekKey("dek", kek, subject.namespace, subject.name, algorithm, str(version))


def read_kek(items: Items, key: KekKey, *, deleted: bool) -> StoredKek:
    """Return the KEK of exactly that context. Raises `KeyNotFound`."""
    data = items.get(key)
    kek = None if data is None else msgspec.json.decode(data, type=StoredKek)
    if kek is None or (kek.deleted and not deleted):
        raise KeyNotFound(key.name)
    return kek


def find_kek(items: Items, key: KekKey, *, deleted: bool) -> tuple[KekKey, StoredKek]:
    """Return the KEK of that context, else that of the default one. Raises `KeyNotFound`."""
    try:
        return key, read_kek(items, key, deleted=deleted)
    except KeyNotFound:
        outer = key._replace(space=DEFAULT_NAMESPACE)
        return outer, read_kek(items, outer, deleted=deleted)


def read_dek(items: Items, key: DekKey, *, deleted: bool) -> StoredDek:
    """Return exactly that version of a DEK. Raises `KeyNotFound`."""
    data = items.get(key)
    dek = None if data is None else msgspec.json.decode(data, type=StoredDek)
    if dek is None or (dek.deleted and not deleted):
        raise KeyNotFound(qualify_subject(key.owner))
    return dek


def list_deks(items: Items, like: DekKey, *, deleted: bool) -> list[tuple[DekKey, StoredDek]]:
    """Return all versions of a DEK, ascending; the version in like is ignored."""
    keys = (DekKey(*key) for key in items if key[0] == like.kind and key[:-1] == like[:-1])
    versions = [(key, msgspec.json.decode(items[key], type=StoredDek)) for key in keys]
    return sorted((row for row in versions if deleted or not row[1].deleted), key=lambda row: int(row[0].version))


def find_dek(items: Items, like: DekKey, version: int | None, *, deleted: bool) -> tuple[DekKey, StoredDek]:
    """Return a version of a DEK, None for the newest. Raises `KeyNotFound`."""
    if version is not None:
        key = like._replace(version=str(version))
        return key, read_dek(items, key, deleted=deleted)
    versions = list_deks(items, like, deleted=deleted)
    if not versions:
        raise KeyNotFound(qualify_subject(like.owner))
    return versions[-1]


def list_wrapped_deks(items: Items, key: KekKey, *, deleted: bool) -> list[DekKey]:
    """Return the keys of the DEKs that a KEK wraps, sorted."""
    rows = ((DekKey(*name), data) for name, data in items.items() if name[:2] == ("dek", key.name))
    deks = [(name, msgspec.json.decode(data, type=StoredDek)) for name, data in rows]
    return sorted(n for n, dek in deks if dek.kek_space == key.space and (deleted or not dek.deleted))


def list_kek_names(items: Items, space: str, prefixes: list[str], *, deleted: bool) -> list[str]:
    """Return the names of the KEKs of a context, sorted.

    With prefixes, only those that wrap a DEK of a subject whose name begins with one of them.
    """
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
    """Return the changes that create a KEK, and the KEK.

    A request for an existing KEK soft-deletes or restores it, if all other attributes are the same.

    Raises `InvalidKey`, `KeyExists`, `TooManyKeys`.
    """
    kek = kek_in(request, now)
    before = items.get(key)
    if before is None:
        if HIDDEN in kek.key_id:  # copied from a response, so the key is unusable
            raise InvalidKey("kmsKeyId")
        require_room(items, key.kind, most)
    else:
        known = msgspec.json.decode(before, type=StoredKek)
        kek = replace(kek, key_id=restore_url(kek.key_id, known.key_id))
        if known.deleted == kek.deleted or replace(known, ts=now, deleted=kek.deleted) != kek:
            raise KeyExists(key.name)
    return {key: msgspec.json.encode(kek)}, kek


def kek_in(request: api.CreateKekRequest, now: int) -> StoredKek:
    """Return the KEK that a request describes. Raises `InvalidKey`."""
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
    """Return the changes that update a KEK, and the KEK after them. Raises `KeyNotFound`.

    Secrets that responses leave out keep their values if the request leaves them out, too.
    """
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
    """Return the changes that delete a KEK, softly or permanently.

    Raises `KeyNotFound`, `KeyInUse`, `KeyNotSoftDeleted`.
    """
    kek = read_kek(items, key, deleted=True)
    if list_wrapped_deks(items, key, deleted=permanent):
        raise KeyInUse(key.name)
    if permanent:
        if not kek.deleted:
            raise KeyNotSoftDeleted(key.name)
        return {key: None}
    return {} if kek.deleted else {key: msgspec.json.encode(replace(kek, deleted=True, ts=now))}


def undelete_kek(items: Items, key: KekKey, now: int) -> Changes:
    """Return the changes that restore a soft-deleted KEK; none for one that is not deleted. Raises `KeyNotFound`."""
    kek = read_kek(items, key, deleted=True)
    return {key: msgspec.json.encode(replace(kek, deleted=False, ts=now))} if kek.deleted else {}


def delete_deks(rows: list[tuple[DekKey, StoredDek]], *, permanent: bool, now: int) -> Changes:
    """Return the changes that delete versions of a DEK, softly or permanently. Raises `KeyNotSoftDeleted`."""
    if not permanent:
        return {k: msgspec.json.encode(replace(dek, deleted=True, ts=now)) for k, dek in rows if not dek.deleted}
    for key, dek in rows:
        if not dek.deleted:
            raise KeyNotSoftDeleted(qualify_subject(key.owner))
    return {key: None for key, _ in rows}


def undelete_deks(items: Items, rows: list[tuple[DekKey, StoredDek]], now: int) -> Changes:
    """Return the changes that restore soft-deleted versions of a DEK.

    Raises `KekSoftDeleted` while their KEK is soft-deleted.
    """
    for key, dek in rows:
        if read_kek(items, KekKey("kek", dek.kek_space, key.kek), deleted=True).deleted:
            raise KekSoftDeleted(key.kek)
    return {k: msgspec.json.encode(replace(dek, deleted=False, ts=now)) for k, dek in rows if dek.deleted}


def require_room(items: Items, kind: str, most: int) -> None:
    """Raise `TooManyKeys` if the number of keys of a kind has reached its limit."""
    if sum(key[0] == kind for key in items) >= most:
        raise TooManyKeys(most)


# --- rights ---------------------------------------------------------------------------------------------------------


def require_key_rights(access: AccessControl, items: Items, changes: Changes) -> None:
    """Raise `Forbidden` unless the caller may make these changes of keys.

    A change of a KEK requires the right to manage it. If a shared KEK uses the same key of a KMS as a KEK that is not
    shared, the caller needs this right for both. Otherwise the server would unwrap through the shared KEK what it must
    not unwrap for the other. A DEK whose material is also stored under another KEK requires the right to unwrap the
    keys of that KEK.
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
    """Return the KMS keys that a KEK uses, as type and id.

    Ids of the local KMS have no meaning, so its secret is used in place of the id.
    """
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
    """Return the wrapped key of a DEK, decoded from base64; the text itself if it is not base64."""
    try:
        return base64.b64decode(dek.material, validate=True)
    except (binascii.Error, ValueError):
        return dek.material.encode()


async def edit_keys(operations: Operations, change: Callable[[Items], tuple[Changes, T]]) -> T:
    """Change keys in the caller's name, and return the answer of `change`.

    Raises what `change` raises, and `Forbidden`.
    """

    def change_with_rights(items: Items) -> tuple[Changes, T]:
        changes, answer = change(items)
        require_key_rights(operations.registry.access, items, changes)
        return changes, answer

    return await operations.edit_items(COLLECTION, change_with_rights)


def may_unwrap(operations: Operations, name: str) -> bool:
    """Return whether the caller may get the data keys of a KEK in plain text."""
    return operations.registry.access.allows(Operation.UNWRAP_KEYS, key_resource(name))


# --- answers --------------------------------------------------------------------------------------------------------


def hidden_properties(kek: StoredKek) -> frozenset[str]:
    """Return the names of the properties that responses leave out.

    They are left out because a placeholder would override a client's own setting.
    """
    return frozenset(name for name, value in kek.properties.items() if not is_harmless(name, value, HARMLESS))


def kek_out(name: str, kek: StoredKek) -> api.Kek:
    """Return a KEK as responses show it, without secrets."""
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
    """Return a DEK as responses show it; material is the unwrapped key in base64."""
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
    """The stored keys changed while a data key was being prepared."""


def current_millis() -> int:
    """Return the present time in milliseconds since 1970 UTC."""
    return time.time_ns() // 1_000_000


async def store_dek(
    operations: Operations, kek_key: KekKey, key: DekKey, request: api.CreateDekRequest, *, rewrap: bool
) -> api.Dek:
    """Store a DEK and return it. The server generates one if the request has none and the KEK is shared.

    rewrap encrypts the existing key again, or replaces it by the one sent. Raises `KeyNotFound`, `KeyExists`,
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
    """Raise `KeyExists` if a key exists, unless the request restores it, soft-deletes it or wraps it again.

    With a shared KEK, a request that sends key material for an existing key always raises.
    """
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
    """Return the wrapped material to store, and the unwrapped material to answer, both in base64.

    The unwrapped material is None if the KEK is not shared, because the server cannot unwrap the key then.
    """
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
    """Return a DEK as responses show it.

    It is unwrapped if its KEK is shared and the caller has the right to the plain key. Raises `KeyGenerationFailed`.
    """
    kek = read_kek(items, KekKey("kek", dek.kek_space, key.kek), deleted=True)
    if not kek.shared or not may_unwrap(operations, key.kek):
        return dek_out(key, dek)
    material = await _unwrap_material(key, kek, dek)
    _note_unwrapping(operations, key)
    return dek_out(key, dek, material)


def _note_unwrapping(operations: Operations, key: DekKey) -> None:
    """Record in the audit trail that the caller gets a data key in plain text."""
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
    """Raise unless the server can wrap a key with a KEK. The wrapped key is discarded.

    Raises `InvalidKey`, `KeyGenerationFailed`, `KeyGenerationRefused`.
    """
    if not kek.shared:
        raise InvalidKey("shared")
    try:
        await wrap(kek.kms_type, kek.key_id, kek.properties, new_material(DEFAULT_ALGORITHM))
    except (KmsError, NotInstalled) as error:
        raise _kms_error(f"Could not generate encrypted dek for {_TEST_SUBJECT}", error) from None


def _kms_error(what: str, error: Exception) -> SteleError:
    """Return the error that a client gets for a failure of a KMS. An unknown type of KMS is an invalid key."""
    if isinstance(error, UnknownKms):
        return InvalidKey("kmsType", str(error))
    words = f"{what}: {error}"
    return KeyGenerationRefused(words) if isinstance(error, KmsDenied) else KeyGenerationFailed(words)


def _is_importing(operations: Operations, key: DekKey) -> bool:
    return queries.mode_for(operations.registry.state, SettingsLevel(*key.owner)) is Mode.IMPORT


def _encode_base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
