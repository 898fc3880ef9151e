"""Making data keys, and unwrapping those whose KEK the server may use."""

from __future__ import annotations

import base64
import binascii
import time

import msgspec

from stele.apis.confluent import keys
from stele.apis.confluent import models as api
from stele.apis.confluent.errors import InvalidKey, KeyExists, KeyGenerationFailed, KeyGenerationRefused
from stele.apis.confluent.keys import DekKey, KekKey, StoredDek, StoredKek
from stele.apis.confluent.names import qualify_subject
from stele.apis.confluent.operations.schemas import Operations
from stele.core import queries
from stele.core.model import Mode, SettingsLevel
from stele.core.state import State
from stele.errors import NotInstalled, SteleError
from stele.service import collections
from stele.service.collections import Changes, Items
from stele.service.kms import KmsDenied, KmsError, UnknownKms, new_material, unwrap, wrap
from stele.service.retry import retry_when_overtaken

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
        items = collections.items_in(state, keys.COLLECTION)
        home, kek = keys.find_kek(items, kek_key, deleted=bool(request.deleted))
        before = items.get(key)
        seen = (items[home], before)
        _require_new(before, key, kek, request, rewrap=rewrap)
        material, raw = await _make_material(key, home, kek, before, request)
        dek = StoredDek(home.space, material, current_millis(), bool(request.deleted))

        def change(items: Items) -> tuple[Changes, None]:
            if (items.get(home), items.get(key)) != seen:
                raise _KeysChanged
            if key not in items:
                keys.require_room(items, key.kind, operations.registry.limits.keys)
            return {key: msgspec.json.encode(dek)}, None

        await operations.edit_items(keys.COLLECTION, change)
        return keys.dek_out(key, dek, None if _is_importing(operations, key) else raw)

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


async def unwrap_dek(items: Items, key: DekKey, dek: StoredDek) -> api.Dek:
    """A DEK as answers show it, unwrapped where the server may use its KEK. Raises `KeyGenerationFailed`."""
    kek = keys.read_kek(items, KekKey("kek", dek.kek_space, key.kek), deleted=True)
    return keys.dek_out(key, dek, await _unwrap_material(key, kek, dek) if kek.shared else None)


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
        await wrap(kek.kms_type, kek.key_id, kek.properties, new_material(keys.DEFAULT_ALGORITHM))
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
