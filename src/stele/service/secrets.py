"""Secrets in documents: sealed before they enter the log, and opened when a document is read.

One table defines which members of which collections hold secrets. Documents in the log and in the state are sealed;
`collections` opens them only for callers. The keys come from files, from the environment, or from a key management
service, which wraps a key that is stored in the log. The first key seals, all of them open.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import structlog

from stele.core import sealed_documents as documents
from stele.core.events import Event, ItemsChanged, LogRecord, make_record
from stele.core.sealed_documents import Seal
from stele.core.state import State
from stele.errors import InvalidRequest, SecretsLocked
from stele.service import kms
from stele.wire.sealing import KEY_BYTES, BrokenSeal, SealingKey, parse_key_text

_logger = structlog.get_logger("stele.secrets")

Key = tuple[str, ...]
Items = Mapping[Key, bytes]
Changes = Mapping[Key, bytes | None]

SECRET_MEMBERS: Final[Mapping[str, frozenset[str]]] = {
    "confluent.keys": frozenset({"properties"}),
    "confluent.exporters": frozenset({"config"}),
    "replications": frozenset({"registry"}),
    "subscriptions": frozenset({"sink", "config", "protocolsettings", "sinkCredential"}),
}
"""Members that may hold secrets, by collection. They are sealed as a whole, including their names."""

SETTING: Final = "secrets_key"
"""Name of the setting with the sources of the keys."""

COLLECTION: Final = "secrets"
"""Collection of wrapped keys, and of the position up to which the log is sealed."""

HISTORY: Final = ("history",)
"""Key of the document with the record up to which the log is sealed."""
_WRAPPED: Final = "key"


class PlainSecrets(StrEnum):
    """What happens to a secret when there is no key to seal it."""

    ALLOW = "allow"
    """It is stored in plain text, and a warning is logged."""
    REFUSE = "refuse"
    """The change is refused."""


class KeySource(NamedTuple):
    """Source of a key. kind is `file`, `env` or `kms`; a KMS also has its type and key id."""

    kind: str
    place: str
    kms_type: str = ""


class _WrappedKey(msgspec.Struct):
    """A key that a KMS has wrapped."""

    kms_type: str
    key_id: str
    wrapped: bytes
    at: int


def parse_source(setting: str, text: str) -> KeySource:
    """Return the source that a setting names. Raises `InvalidRequest`."""
    kind, _, place = text.partition(":")
    if kind in {"file", "env"} and place:
        return KeySource(kind, place)
    kms_type, _, key_id = place.partition(":")
    if kind == "kms" and kms_type and key_id and setting == SETTING:
        return KeySource(kind, key_id, kms_type)
    raise InvalidRequest(f"{setting}: {text!r} must be one of file:/path, env:NAME, kms:type:key-id")


def read_key_bytes(source: KeySource, environ: Mapping[str, str] = os.environ) -> bytes:
    """Return the 32 bytes in a file or variable. Raises `InvalidRequest`; no message holds them."""
    try:
        data = Path(source.place).read_bytes() if source.kind == "file" else environ[source.place].encode()
        return parse_key_text(data)
    except OSError as error:
        raise InvalidRequest(f"the key {source.place} cannot be read: {error.strerror}") from None
    except KeyError:
        raise InvalidRequest(f"the variable {source.place}, which should hold a key, is not set") from None
    except InvalidRequest as error:
        raise InvalidRequest(f"{source.kind}:{source.place}: {error}") from None


class Secrets:
    """The keys of a server. Without keys, documents are stored in plain text.

    Args:
        sources: Sources of keys, in their order: the first one seals.
        plain: Treatment of secrets without a key.
    """

    def __init__(self, sources: Sequence[KeySource] = (), plain: PlainSecrets = PlainSecrets.ALLOW) -> None:
        self.sources = tuple(sources)
        self.plain = plain
        self._keys: dict[str, SealingKey] = {}
        self._first: SealingKey | None = None
        self._revision = -1
        """Revision of the collection that the wrapped keys were read from."""
        self._has_warned = False
        self._counted: tuple[object, tuple[int, int]] = (None, (0, 0))
        for source in self.sources:
            if source.kind != "kms":
                self._add_key(SealingKey(read_key_bytes(source)), is_first=source is self.sources[0])

    @property
    def has_key(self) -> bool:
        """Whether the settings name a source of keys, so that secrets are sealed."""
        return bool(self.sources)

    @property
    def uses_kms(self) -> bool:
        """Whether a source of keys is a KMS, whose wrapped keys are stored in the log."""
        return any(source.kind == "kms" for source in self.sources)

    def _add_key(self, key: SealingKey, *, is_first: bool) -> None:
        self._keys[key.id] = key
        if is_first:
            self._first = key

    # --- keys that a KMS wraps --------------------------------------------------------------------------------------

    async def load_wrapped_keys(self, state: State) -> None:
        """Load the wrapped keys from the log, if they changed since the last load. Raises `KmsError`."""
        collection = state.collections.get(COLLECTION)
        if not self.uses_kms or collection is None or collection.revision == self._revision:
            return
        rows = [
            (key[1], msgspec.json.decode(data, type=_WrappedKey))
            for key, data in collection.items.items()
            if key[0] == _WRAPPED
        ]
        for source in reversed(self.sources):
            own = [row for row in rows if (row[1].kms_type, row[1].key_id) == (source.kms_type, source.place)]
            for key_id, row in sorted(own, key=lambda row: row[1].at):
                key = self._keys.get(key_id) or SealingKey(await kms.unwrap(row.kms_type, row.key_id, {}, row.wrapped))
                self._add_key(key, is_first=source is self.sources[0])
        self._revision = collection.revision

    @property
    def lacks_wrapped_key(self) -> bool:
        """Whether a KMS wraps the key that seals, and the log does not have that key yet."""
        return self.uses_kms and self._first is None

    async def wrap_new_key(self, now: int) -> dict[Key, bytes]:
        """Create a key, wrapped by the KMS of the first source. Return the change to write. Raises `KmsError`."""
        source = self.sources[0]
        material = os.urandom(KEY_BYTES)
        wrapped = await kms.wrap(source.kms_type, source.place, {}, material)
        document = msgspec.json.encode(_WrappedKey(source.kms_type, source.place, wrapped, now))
        return {(_WRAPPED, SealingKey(material).id): document}

    # --- documents --------------------------------------------------------------------------------------------------

    def open_items(self, collection: str, items: Items) -> Items:
        """Return documents with their secrets; each is opened when it is asked for."""
        return _OpenedItems(self, collection, items) if collection in SECRET_MEMBERS else items

    def open_document(self, collection: str, key: Key, document: bytes) -> bytes:
        """Return a document with its secrets. Raises `SecretsLocked`."""
        seal = documents.read_seal(document)
        if seal is None:
            return document
        sealing_key = self._keys.get(seal.key)
        if sealing_key is None:
            raise SecretsLocked(
                f"the secrets of {'/'.join(key)} are sealed with the key {seal.key}, which the setting secrets_key of"
                " this server does not name"
            )
        try:
            opened = sealing_key.unseal(seal.text, _encode_place(collection, key, seal.members))
        except BrokenSeal as error:
            raise SecretsLocked(f"the secrets of {'/'.join(key)} cannot be opened: {error}") from None
        return documents.replace_seal(document, opened)

    def seal_document(self, collection: str, key: Key, document: bytes) -> bytes:
        """Return a document with its secrets sealed; unchanged if it has none, or if there is no key."""
        members = documents.take_members(document, SECRET_MEMBERS.get(collection, ()))
        if members is None or self._first is None:
            return document
        names = tuple(sorted(msgspec.json.decode(members, type=dict[str, msgspec.Raw])))
        text = self._first.seal(members, _encode_place(collection, key, names))
        return documents.put_seal(document, Seal(self._first.id, names, text))

    def seal_changes(self, collection: str, stored: Items, changes: Changes) -> Changes:
        """Return changes as they are written to the log. A document that does not change keeps its seal.

        Raises `InvalidRequest` if there is no key and plain secrets are refused.
        """
        if collection not in SECRET_MEMBERS:
            return changes
        sealed: dict[Key, bytes | None] = {}
        for key, document in changes.items():
            before = stored.get(key)
            if document is None:
                sealed[key] = None
            elif before is not None and self.open_document(collection, key, before) == document:
                sealed[key] = before
            else:
                self._require_sealing(collection, document)
                sealed[key] = self.seal_document(collection, key, document)
        return sealed

    def _require_sealing(self, collection: str, document: bytes) -> None:
        if self._first is not None or documents.take_members(document, SECRET_MEMBERS[collection]) is None:
            return
        if self.plain is PlainSecrets.REFUSE:
            raise InvalidRequest(
                "this server has no key to seal secrets (setting secrets_key), so it cannot store secrets"
            )
        if not self._has_warned:
            self._has_warned = True
            _logger.warning("secrets are stored as plain text", hint="name a key in the setting secrets_key")

    def is_plain(self, collection: str, document: bytes | None) -> bool:
        """Return whether a document has secrets that are not sealed."""
        names = SECRET_MEMBERS.get(collection)
        if names is None or document is None or documents.read_seal(document) is not None:
            return False
        return documents.take_members(document, names) is not None

    def needs_seal(self, collection: str, document: bytes | None, *, rotate: bool) -> bool:
        """Return whether a document has plain secrets, or, with rotate, ones that another key than the first sealed."""
        seal = documents.read_seal(document) if collection in SECRET_MEMBERS else None
        if seal is not None:
            return rotate and self._first is not None and seal.key != self._first.id
        return self.is_plain(collection, document)

    def count_documents(self, state: State) -> tuple[int, int]:
        """Return how many documents have secrets in plain text, and how many are sealed with a key that is missing."""
        secret_collections = {name: state.collections[name] for name in SECRET_MEMBERS if name in state.collections}
        position = (
            [(id(collection), collection.revision) for collection in secret_collections.values()],
            len(self._keys),
        )
        if self._counted[0] != position:
            plain = locked = 0
            for name, collection in secret_collections.items():
                for document in collection.items.values():
                    seal = documents.read_seal(document)
                    plain += seal is None and self.is_plain(name, document)
                    locked += seal is not None and seal.key not in self._keys
            self._counted = position, (plain, locked)
        return self._counted[1]

    # --- records ----------------------------------------------------------------------------------------------------

    def seal_record(self, record: LogRecord, *, rotate: bool) -> LogRecord:
        """Return a record with the secrets in its documents sealed. Raises `SecretsLocked`."""
        events = tuple(self._seal_event(event, rotate=rotate) for event in record.events)
        return record if events == record.events else make_record(record.metadata, events)

    def _seal_event(self, event: Event, *, rotate: bool) -> Event:
        if not isinstance(event, ItemsChanged) or event.collection not in SECRET_MEMBERS:
            return event
        changes = tuple(
            (key, self._reseal(event.collection, key, document))
            if document is not None and self.needs_seal(event.collection, document, rotate=rotate)
            else (key, document)
            for key, document in event.changes
        )
        return event if changes == event.changes else msgspec.structs.replace(event, changes=changes, sealed=True)

    def _reseal(self, collection: str, key: Key, document: bytes) -> bytes:
        return self.seal_document(collection, key, self.open_document(collection, key, document))

    def list_changes(self, state: State, *, rotate: bool) -> Iterator[tuple[str, int, dict[Key, bytes | None]]]:
        """Yield the changes that seal the present documents: collection, its revision, and the changes."""
        for name in SECRET_MEMBERS:
            collection = state.collections.get(name)
            changes: dict[Key, bytes | None] = {
                key: self._reseal(name, key, document)
                for key, document in (collection.items.items() if collection is not None else ())
                if self.needs_seal(name, document, rotate=rotate)
            }
            if collection is not None and changes:
                yield name, collection.revision, changes


class _OpenedItems(Mapping[Key, bytes]):
    """Documents of a collection, each opened when it is read."""

    def __init__(self, secrets: Secrets, collection: str, items: Items) -> None:
        self._secrets = secrets
        self._collection = collection
        self._items = items

    def __getitem__(self, key: Key) -> bytes:
        return self._secrets.open_document(self._collection, key, self._items[key])

    def __contains__(self, key: object) -> bool:
        return key in self._items

    def __iter__(self) -> Iterator[Key]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)


def _encode_place(collection: str, key: Key, members: Sequence[str]) -> bytes:
    return msgspec.json.encode([collection, key, members])
