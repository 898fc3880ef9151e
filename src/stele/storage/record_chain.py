"""The checksum of every stored record, chained to that of the record before it.

A stored record is a mark, its link and the record. The link is made of the link before it, the sequence number and the
record; so a changed byte, a record in another's place and a hole all show, at the first record that does not fit. A
record whose text was erased keeps its link, or all that follow would have to be written anew; it has a checksum of its
own beside it, which covers link, place and what is left.

Checksums find damage. They are no signature: whoever may write the store can make them.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Final

__all__ = [
    "FIRST_LINK",
    "DamagedRecord",
    "chain_record",
    "read_link",
    "read_record",
    "replace_record",
    "verify_record",
]

LINK_BYTES: Final = 16
"""Of a SHA-256: 128 bits make an accident that fits hopeless."""

FIRST_LINK: Final = bytes(LINK_BYTES)
"""What the first record is chained to."""

_WHOLE: Final = b"\xc1\x01"
"""Before a record as it was appended. 0xc1 begins no MessagePack value, so no record of before there were checksums."""
_REPLACED: Final = b"\xc1\x02"
_START: Final = len(_WHOLE)
_BODY: Final = _START + LINK_BYTES
_REPLACED_BODY: Final = _BODY + LINK_BYTES


class DamagedRecord(ValueError):
    """Stored bytes are not what was stored there."""


def chain_record(before: bytes, seq: int, record: bytes) -> tuple[bytes, bytes]:
    """Return the link of a record at seq, whose predecessor's link is `before`, and the bytes to store for it."""
    link = _make_link(before, seq, record)
    return link, b"".join((_WHOLE, link, record))


def replace_record(before: bytes, seq: int, stored: bytes, record: bytes) -> bytes:
    """Return the bytes that take the place of stored ones: another record under the same link."""
    link = read_link(stored)
    return b"".join((_REPLACED, link, _make_link(before, seq, link + record), record))


def _is_bytes(stored: object) -> bool:
    """Whether a driver gave bytes: a flipped bit in a database may make null, a number or a text of them."""
    return isinstance(stored, bytes)


def read_link(stored: bytes) -> bytes:
    """Return the link that stored bytes claim, unverified. Raises `DamagedRecord` when they have none."""
    if not _is_bytes(stored) or len(stored) < _BODY or not stored.startswith((_WHOLE, _REPLACED)):
        raise DamagedRecord
    return stored[_START:_BODY]


def read_record(stored: bytes) -> bytes:
    """Return the record in stored bytes, unverified."""
    return stored[_REPLACED_BODY if stored.startswith(_REPLACED) else _BODY :]


def verify_record(before: bytes, seq: int, stored: bytes) -> tuple[bytes, bytes]:
    """Return the link that the next record is chained to, and the record in stored bytes.

    Raises `DamagedRecord` when they are not what was stored at this place.
    """
    if not _is_bytes(stored):
        raise DamagedRecord
    mark, link = stored[:_START], stored[_START:_BODY]
    if mark == _WHOLE:
        record = stored[_BODY:]
        if _make_link(before, seq, record) == link:
            return link, record
    elif mark == _REPLACED:
        record = stored[_REPLACED_BODY:]
        if _make_link(before, seq, link + record) == stored[_BODY:_REPLACED_BODY]:
            return link, record
    raise DamagedRecord


def _make_link(before: bytes, seq: int, record: bytes) -> bytes:
    return sha256(before + seq.to_bytes(8, "big") + record).digest()[:LINK_BYTES]
