"""The checksum of every stored record, chained to that of the record before it.

A stored record is a mark, its link and the record. The link is computed from the link before it, the sequence number
and the record. So a changed byte, a moved record and a gap all show, at the first record that does not fit. A record
whose text was erased keeps its link; otherwise all records after it would have to be written again. It has a second
checksum, which covers link, sequence number and what is left.

Checksums find damage. They are no signature: a program that may write to the store can compute them.
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
    """The hash function of links; the value begins a stored record. Both kinds may follow one another in one log.

    0xc1 begins no MessagePack value, so no record from before checksums were introduced.
    """

    SHA256 = b"\xc1\x01"
    """Half of a SHA-256. Every release that knows checksums reads it."""
    XXH3 = b"\xc1\x03"
    """XXH3 of 128 bits, whose seed is the sequence number.

    For a record of 1 KiB it takes a tenth of the time of SHA-256.
    """


LINK_BYTES: Final = 16
"""Length of a link in bytes. With 128 bits, damage that fits by accident is practically impossible."""

FIRST_LINK: Final = bytes(LINK_BYTES)
"""The link before the first record."""

_SHA256: Final = Checksum.SHA256.value
_XXH3: Final = Checksum.XXH3.value
_REPLACED: Final = b"\xc1\x02"
_START: Final = len(_REPLACED)
_BODY: Final = _START + LINK_BYTES
_REPLACED_BODY: Final = _BODY + LINK_BYTES


class DamagedRecord(ValueError):
    """Raised when stored bytes are not what was stored there.

    seq is the sequence number of the record; 0 where the caller knows it.
    """

    def __init__(self, seq: int = 0) -> None:
        super().__init__(seq)
        self.seq = seq


def chain_record(before: bytes, seq: int, record: bytes, checksum: Checksum = Checksum.SHA256) -> tuple[bytes, bytes]:
    """Return the link of a record at seq, and the bytes to store for it.

    `before` is the link of the record before it.
    """
    link, stored = chain_records(before, seq, (record,), checksum)
    return link, stored[0]


def chain_records(before: bytes, first: int, records: Iterable[bytes], checksum: Checksum) -> tuple[bytes, list[bytes]]:
    """Return the link of the last of the records, which begin at `first`, and the bytes to store for each."""
    mark, link, stored_records = checksum.value, before, []
    if checksum is Checksum.XXH3:
        for seq, record in enumerate(records, first):
            # Inlined: another call would take half as long as the checksum.
            link = xxh3_128_digest(link + record, seq)
            stored_records.append(mark + link + record)
    else:
        for seq, record in enumerate(records, first):
            link = _make_sha256(link, seq, record)
            stored_records.append(mark + link + record)
    return link, stored_records


def replace_record(before: bytes, seq: int, stored: bytes, record: bytes) -> bytes:
    """Return the stored bytes of another record under the same link, to replace the given stored bytes."""
    link = read_link(stored)
    return b"".join((_REPLACED, link, _make_sha256(before, seq, link + record), record))


def _is_bytes(stored: object) -> bool:
    """Return whether a driver returned bytes.

    A flipped bit in a database may turn them into null, a number or a text.
    """
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

    Raises `DamagedRecord` when the bytes are not what was stored at this place.
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

    Raises `DamagedRecord` for the first record that is not what was stored at its place.
    """
    link, seq, pairs = before, 0, []
    try:
        for seq, stored in entries:
            head = stored[:_BODY]
            # The most frequent case is inlined: each further call would take longer than the checksum.
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
