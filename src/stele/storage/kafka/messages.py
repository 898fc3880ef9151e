"""The messages of the topic: keys in JSON that name the kind of message, and values with records.

    {"keytype":"RECORDS","seq":5,"count":2,"node":"9f3c…","attempt":17,"magic":1}   records 5 and 6, of node 9f3c
    {"keytype":"REPLACEMENT","seq":5,"count":2,"origin":104,"version":1,"node":…}   the same, with texts erased
    {"keytype":"RESTORED","magic":1}                                                the log is a copy of another one

No key is used twice: only its tombstone supersedes a message. So compaction keeps every message without a tombstone,
whichever node wrote it and whether its claim won or lost.

Source: docs/protocols/redpanda.md#one-log-many-writers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import msgspec

from stele.storage.layouts import require_known_layout

__all__ = [
    "MAGIC",
    "Claim",
    "Key",
    "Replacement",
    "RestoredNote",
    "SnapshotEnd",
    "SnapshotPart",
    "print_key",
    "print_records",
    "read_key",
    "read_records",
]

MAGIC: Final = 1
"""The layout of messages that this release writes. A message with a higher one is rejected."""


class _Key(msgspec.Struct, frozen=True, tag_field="keytype"):
    """The fields that all keys share."""


class Claim(_Key, frozen=True, tag="RECORDS"):
    """Claims records seq … seq + count - 1, if no earlier message claimed seq.

    node and attempt distinguish the claim from all others: each node draws a new random name when it opens the log, and
    counts its attempts.
    """

    seq: int
    count: int
    node: str
    attempt: int
    magic: int = MAGIC


class Replacement(_Key, frozen=True, tag="REPLACEMENT"):
    """Replaces the content of the message at offset `origin`, unless it has this or a higher version already."""

    seq: int
    count: int
    origin: int
    version: int
    node: str
    attempt: int
    magic: int = MAGIC


class RestoredNote(_Key, frozen=True, tag="RESTORED"):
    """Marks a restored log. While it has a value, records may have been acknowledged that this log does not have."""

    magic: int = MAGIC


class SnapshotPart(_Key, frozen=True, tag="SNAPSHOT"):
    """A piece of a state snapshot."""

    seq: int
    part: int
    node: str
    attempt: int
    magic: int = MAGIC


class SnapshotEnd(_Key, frozen=True, tag="SNAPSHOT_END"):
    """Marks a state snapshot as complete, with its number of parts."""

    seq: int
    parts: int
    node: str
    attempt: int
    magic: int = MAGIC


Key: TypeAlias = Claim | Replacement | RestoredNote | SnapshotPart | SnapshotEnd


class _Outline(msgspec.Struct):
    """The fields of a key that every release writes."""

    keytype: str
    magic: int


_keys: Final[msgspec.json.Decoder[Key]] = msgspec.json.Decoder(Key)
_outlines: Final = msgspec.json.Decoder(_Outline)
_values: Final = msgspec.msgpack.Decoder(list[bytes])


def print_key(key: Key) -> bytes:
    """Return the bytes of a key."""
    return msgspec.json.encode(key)


def read_key(data: bytes | None, place: str) -> Key | None:
    """Return a key; None for a key of another program. Raises `StoreError` for a key of a newer release."""
    if data is None:
        return None
    key: Key | None
    try:
        key = _keys.decode(data)
    except msgspec.MsgspecError:
        try:
            outline = _outlines.decode(data)
        except msgspec.MsgspecError:
            return None
        key = None
        magic = outline.magic
    else:
        magic = key.magic
    require_known_layout(f"The log {place} has messages of", magic, MAGIC)
    return key


def print_records(records: Sequence[bytes]) -> bytes:
    """Return the value of a message with records."""
    return msgspec.msgpack.encode(records)


def read_records(value: bytes) -> list[bytes]:
    """Inverse of `print_records`. Raises `msgspec.MsgspecError`."""
    return _values.decode(value)
