"""API keys, by which programs authenticate. The registry creates them and stores only their digests.

A key is `stele_<id>_<secret>`. Its secret has 256 random bits and cannot be guessed, so one SHA-256 is enough.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import sha256
from hmac import compare_digest
from typing import Final

import msgspec

from stele.core.state import State
from stele.errors import InvalidName, InvalidRequest, NotFound, TooLarge, Unauthenticated
from stele.service.access import CALLER, Principal
from stele.service.collections import Changes, Items, edit_collection, read_collection
from stele.service.registry import Registry

COLLECTION: Final = "access.keys"
PREFIX: Final = "stele_"
"""Prefix of every key, by which scanners for leaked secrets find it."""
METHOD: Final = "key"
"""`Principal.method` of a caller that sent a key."""

_MOST: Final = 10_000
"""Maximum number of keys."""
_MOST_GROUPS: Final = 100
_NAME = re.compile(r"[^\x00-\x20\x7f:]{1,200}")


class StoredApiKey(msgspec.Struct, frozen=True, omit_defaults=True):
    """A key as stored in the log.

    name        name of the principal that sends the key
    groups      groups of that principal
    digest      SHA-256 of the whole key, hexadecimal
    created     when it was created
    expires     when it expires; None: never
    created_by  name of the caller that created it, '' for an anonymous caller
    """

    name: str
    digest: str
    created: datetime
    groups: tuple[str, ...] = ()
    expires: datetime | None = None
    created_by: str = ""


class ApiKeyOut(msgspec.Struct, frozen=True):
    """Properties of a key, without the key itself."""

    id: str
    name: str
    groups: list[str]
    created: datetime
    created_by: str
    expires: datetime | None


class CreatedApiKey(ApiKeyOut, frozen=True):
    """A new key. `key` is the text that a client sends; it is shown only once."""

    key: str


class ApiKeysOut(msgspec.Struct, frozen=True):
    """Keys, the oldest one first."""

    keys: list[ApiKeyOut]


class ApiKeyNotFound(NotFound):
    """No key has this id."""


async def create_api_key(
    registry: Registry,
    name: str,
    groups: Sequence[str] = (),
    expires: datetime | None = None,
    *,
    via: str = "",
) -> tuple[str, StoredApiKey, str]:
    """Create a key. Return its id, its stored form, and the key itself, which cannot be shown again.

    Raises:
        InvalidName: A name or group is empty, too long, or has blanks, colons or control characters.
        InvalidRequest: The key would have expired already, or expires at a time without a zone.
        TooLarge: The registry has its maximum number of keys.
    """
    for text in (name, *groups):
        if not _NAME.fullmatch(text):
            raise InvalidName(
                text, "is not a name of a caller or group: it must have 1 to 200 characters without blanks and colons"
            )
    if len(groups) > _MOST_GROUPS:
        raise InvalidRequest(f"a key may have {_MOST_GROUPS} groups at most")
    now = datetime.now(UTC)
    if expires is not None and (expires.tzinfo is None or expires <= now):
        raise InvalidRequest("the time at which a key expires must be in the future and have a time zone")
    key_id = secrets.token_hex(8)
    key = f"{PREFIX}{key_id}_{secrets.token_urlsafe(32)}"
    stored = StoredApiKey(name, _digest(key), now, tuple(dict.fromkeys(groups)), expires, CALLER.get().principal.name)

    def change(items: Items) -> tuple[Changes, None]:
        if len(items) >= _MOST:
            raise TooLarge(f"there are {_MOST} API keys, the limit: revoke some")
        return {(key_id,): msgspec.json.encode(stored)}, None

    await edit_collection(registry, COLLECTION, change, via=via)
    return key_id, stored, key


async def list_api_keys(registry: Registry) -> dict[str, StoredApiKey]:
    """Return all keys by id, the oldest one first."""
    items = await read_collection(registry, COLLECTION)
    keys = {key[0]: msgspec.json.decode(document, type=StoredApiKey) for key, document in items.items()}
    return dict(sorted(keys.items(), key=lambda pair: (pair[1].created, pair[0])))


async def revoke_api_key(registry: Registry, key_id: str, *, via: str = "") -> StoredApiKey:
    """Remove a key and return its stored form. The key is invalid from then on. Raises `ApiKeyNotFound`."""

    def change(items: Items) -> tuple[Changes, bytes]:
        if (key_id,) not in items:
            raise ApiKeyNotFound(f"no API key has the id {key_id!r}")
        return {(key_id,): None}, items[key_id,]

    document = await edit_collection(registry, COLLECTION, change, via=via)
    return msgspec.json.decode(document, type=StoredApiKey)


def find_key_id(text: str) -> str | None:
    """Return the id in a text if the text has the form of a key, else None."""
    if not text.startswith(PREFIX):
        return None
    key_id, _, secret = text[len(PREFIX) :].partition("_")
    return key_id if key_id and secret else None


def find_document(state: State, key_id: str) -> bytes | None:
    """Return the stored form of a key, None if no key has this id."""
    collection = state.collections.get(COLLECTION)
    return None if collection is None else collection.items.get((key_id,))


def check_api_key(document: bytes, text: str, now: float) -> tuple[Principal, float]:
    """Return the principal of a key, and when the key expires (seconds since 1970).

    Args:
        document: The stored form of the key with its id.
        text: The whole key.
        now: Seconds since 1970.

    Raises:
        Unauthenticated: It is another key, or it has expired.
    """
    stored = msgspec.json.decode(document, type=StoredApiKey)
    if not compare_digest(stored.digest, _digest(text)):
        raise Unauthenticated("the API key is not valid")
    expires = stored.expires.timestamp() if stored.expires else float("inf")
    if now >= expires:
        raise Unauthenticated("the API key has expired")
    return Principal(stored.name, frozenset(stored.groups), METHOD), expires


def _digest(key: str) -> str:
    return sha256(key.encode("ascii")).hexdigest()
