"""The checksum of every stored record, chained to that of the record before it.

A stored record is a mark, its link and the record. The link is made of the link before it, the sequence number and the
record; so a changed byte, a record in another's place and a hole all show, at the first record that does not fit. A
record whose text was erased keeps its link, or all that follow would have to be written anew; it has a checksum of its
own beside it, which covers link, place and what is left.

Checksums find damage. They are no signature: whoever may write the store can make them.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from hashlib import sha256
from typing import Final

from xxhash import xxh3_128_digest

from stele.core.ports import LogEntry, make_entry

__all__ = [
    "FIRST_LINK",
    "Checksum",
    "DamagedRecord",
    "chain_record",
    "chain_records",
    "read_link",
    "read_record",
    "replace_record",
    "verify_record",
    "verify_records",
]


class Checksum(Enum):
    """What links are made by; the value begins a stored record. Both kinds may follow one another in one log.

    0xc1 begins no MessagePack value, so no record of before there were checksums.
    """

    SHA256 = b"\xc1\x01"
    """Half of a SHA-256. Every release that knows checksums reads it."""
    XXH3 = b"\xc1\x03"
    """XXH3 of 128 bits, whose seed is the sequence number: a record of 1 KiB takes a tenth of the time."""


LINK_BYTES: Final = 16
"""128 bits make an accident that fits hopeless."""

FIRST_LINK: Final = bytes(LINK_BYTES)
"""What the first record is chained to."""

_SHA256: Final = Checksum.SHA256.value
_XXH3: Final = Checksum.XXH3.value
_REPLACED: Final = b"\xc1\x02"
_START: Final = len(_REPLACED)
_BODY: Final = _START + LINK_BYTES
_REPLACED_BODY: Final = _BODY + LINK_BYTES


class DamagedRecord(ValueError):
    """Stored bytes are not what was stored there; seq is their place, 0 where the caller knows it."""

    def __init__(self, seq: int = 0) -> None:
        super().__init__(seq)
        self.seq = seq


def chain_record(before: bytes, seq: int, record: bytes, checksum: Checksum = Checksum.SHA256) -> tuple[bytes, bytes]:
    """Return the link of a record at seq, whose predecessor's link is `before`, and the bytes to store for it."""
    link, stored = chain_records(before, seq, (record,), checksum)
    return link, stored[0]


def chain_records(before: bytes, first: int, records: Iterable[bytes], checksum: Checksum) -> tuple[bytes, list[bytes]]:
    """Return the link of the last of some records, which begin at `first`, and the bytes to store for each."""
    mark, link, stored_records = checksum.value, before, []
    if checksum is Checksum.XXH3:
        for seq, record in enumerate(records, first):
            # Spelt out: a call more would take half as long as the checksum.
            link = xxh3_128_digest(link + record, seq)
            stored_records.append(mark + link + record)
    else:
        for seq, record in enumerate(records, first):
            link = _make_sha256(link, seq, record)
            stored_records.append(mark + link + record)
    return link, stored_records


def replace_record(before: bytes, seq: int, stored: bytes, record: bytes) -> bytes:
    """Return the bytes that take the place of stored ones: another record under the same link."""
    link = read_link(stored)
    return b"".join((_REPLACED, link, _make_sha256(before, seq, link + record), record))


def _is_bytes(stored: object) -> bool:
    """Whether a driver gave bytes: a flipped bit in a database may make null, a number or a text of them."""
    return isinstance(stored, bytes)


def read_link(stored: bytes) -> bytes:
    """Return the link that stored bytes claim, unverified. Raises `DamagedRecord` when they have none."""
    if not _is_bytes(stored) or len(stored) < _BODY or not stored.startswith((_SHA256, _XXH3, _REPLACED)):
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
        raise DamagedRecord(seq)
    mark, link = stored[:_START], stored[_START:_BODY]
    if mark in {_SHA256, _XXH3}:
        record = stored[_BODY:]
        make_link = _make_xxh3 if mark == _XXH3 else _make_sha256
        if make_link(before, seq, record) == link:
            return link, record
    elif mark == _REPLACED:
        record = stored[_REPLACED_BODY:]
        if _make_sha256(before, seq, link + record) == stored[_BODY:_REPLACED_BODY]:
            return link, record
    raise DamagedRecord(seq)


def verify_records(before: bytes, entries: Iterable[LogEntry]) -> tuple[bytes, list[LogEntry]]:
    """Return the link that the next record is chained to, and the records in stored entries that follow one another.

    Raises `DamagedRecord` for the first that is not what was stored at its place.
    """
    link, seq, pairs = before, 0, []
    try:
        for seq, stored in entries:
            head = stored[:_BODY]
            # What most records are is spelt out here: each call more would take longer than the checksum.
            if head.startswith(_XXH3):
                record = stored[_BODY:]
                link = xxh3_128_digest(link + record, seq)
                if head != _XXH3 + link:
                    raise DamagedRecord(seq)
            else:
                link, record = verify_record(link, seq, stored)
            pairs.append((seq, record))
    except TypeError:  # no bytes: see `_is_bytes`
        raise DamagedRecord(seq) from None
    return link, list(map(make_entry, pairs))


def _make_sha256(before: bytes, seq: int, record: bytes) -> bytes:
    return sha256(before + seq.to_bytes(8, "big") + record).digest()[:LINK_BYTES]


def _make_xxh3(before: bytes, seq: int, record: bytes) -> bytes:
    return xxh3_128_digest(before + record, seq)
