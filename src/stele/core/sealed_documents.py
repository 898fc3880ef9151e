"""Documents with sealed secret members, in the shape that is stored in the log; pure, without any encryption.

A document is a JSON object. Its secret members are encrypted together in the member `sealed`, which also has the id of
the key and the names of the members. No document has a member of that name itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from stele.core.events import Event, ItemsChanged, LogRecord

SEALED: Final = "sealed"
"""Name of the member with the seal."""

_MARK: Final = b'"sealed":{"key":'
"""Bytes that every sealed document contains; others contain them only by chance."""


class Seal(msgspec.Struct, frozen=True):
    """Replaces the secret members of a document.

    key      id of the key that sealed them
    members  their names, sorted
    text     nonce, ciphertext and tag
    """

    key: str
    members: tuple[str, ...]
    text: bytes


class _WithSeal(msgspec.Struct):
    sealed: Seal | None = None


_Members = dict[str, msgspec.Raw]
_seal_decoder = msgspec.json.Decoder(_WithSeal)
_decoder = msgspec.json.Decoder(_Members)
_encoder = msgspec.json.Encoder()


def read_seal(document: bytes | None) -> Seal | None:
    """Return the seal of a document, None for one that is not sealed."""
    if document is None or _MARK not in document:
        return None
    try:
        return _seal_decoder.decode(document).sealed
    except msgspec.MsgspecError:
        return None


def take_members(document: bytes, names: Iterable[str]) -> bytes | None:
    """Return a JSON object of those members of a document that hold something; None when there are none."""
    members = _decoder.decode(document)
    subset = {name: members[name] for name in sorted(names) if bytes(members.get(name, b"")) not in _EMPTY}
    return _encoder.encode(subset) if subset else None


_EMPTY: Final = frozenset({b"", b"null", b"{}", b'""', b"[]"})


def put_seal(document: bytes, seal: Seal) -> bytes:
    """Return a document with a seal in the place of the members it names."""
    members: Mapping[str, object] = _decoder.decode(document)
    public = {name: value for name, value in members.items() if name not in seal.members}
    return _encoder.encode({**public, SEALED: seal})


def replace_seal(document: bytes, opened: bytes) -> bytes:
    """Return a document with its members in place of the seal. `opened` is the object that `take_members` returned."""
    members = _decoder.decode(document)
    members.pop(SEALED, None)
    return _encoder.encode({**members, **_decoder.decode(opened)})


def strip_secrets(document: bytes, names: Iterable[str]) -> bytes:
    """Return a document without these members and without a seal, its other members sorted."""
    members = _decoder.decode(document)
    left_out = {SEALED, *names}
    return _encoder.encode({name: members[name] for name in sorted(members) if name not in left_out})


def is_resealed(record: LogRecord, earlier: LogRecord) -> bool:
    """Return whether a record differs from an earlier one only in secrets that were sealed, or sealed again, since."""
    return (
        record.metadata == earlier.metadata
        and len(record.events) == len(earlier.events)
        and all(
            own == other or _is_resealed_event(own, other)
            for own, other in zip(record.events, earlier.events, strict=True)
        )
    )


def _is_resealed_event(event: Event, earlier: Event) -> bool:
    if not isinstance(event, ItemsChanged) or not isinstance(earlier, ItemsChanged):
        return False
    if event.collection != earlier.collection or len(event.changes) != len(earlier.changes):
        return False
    return all(
        key == other and (document == before or _is_resealed_document(document, before))
        for (key, document), (other, before) in zip(event.changes, earlier.changes, strict=True)
    )


def _is_resealed_document(document: bytes | None, before: bytes | None) -> bool:
    seal = read_seal(document)
    if seal is None or document is None or before is None:
        return False
    try:
        return strip_secrets(document, seal.members) == strip_secrets(before, seal.members)
    except msgspec.MsgspecError:
        return False
