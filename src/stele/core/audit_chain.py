"""Lines of the audit trail, chained by hashes, so that a changed, removed or inserted line is detected.

A line is JSON: its number, the position in the log that the trail covers, the entry, and a hash of all that and of the
hash before it. With a key the hash is an HMAC, which cannot be made without the key. Without a key, a user with write
access to the file can rebuild the chain. Copies that syslog or a webhook received reveal that. Pure.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import msgspec

FIRST_HASH: Final = "0" * 64
"""Previous hash of the very first line."""


class AuditEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """An action of a caller, or an attempt.

    at          milliseconds since 1970 UTC
    kind        what happened: `registered`, `settings_changed`, `key_unwrapped`, `refused` …
    actor       name of the caller, '' for an anonymous one; address, agent and request_id as far as known
    via         the API that was used
    seq, part   of a change: its record in the log, and its index in that record
    details     further values, by kind
    before      SHA-256 of the content before the change, for elements that can change
    after       SHA-256 of the content after the change
    """

    at: int
    kind: str
    actor: str = ""
    address: str = ""
    agent: str = ""
    request_id: str = ""
    via: str = ""
    seq: int | None = None
    part: int = 0
    namespace: str | None = None
    subject: str | None = None
    version: int | None = None
    schema_id: int | None = None
    details: dict[str, Any] = {}
    before: str | None = None
    after: str | None = None


class AuditLine(msgspec.Struct, frozen=True):
    """A line of the audit trail.

    number counts from 1 over all files; position is the last record of the log that the trail covers.
    """

    number: int
    position: int
    entry: msgspec.Raw
    hash: str


class ChainEnd(NamedTuple):
    """The end of a chain, to which the next line is chained."""

    number: int = 0
    position: int = 0
    hash: str = FIRST_HASH


class BrokenLine(NamedTuple):
    """The first line that breaks the chain: its number in its file, from 1, and the reason."""

    line: int
    reason: str


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(AuditLine)


def print_line(end: ChainEnd, position: int, entry: AuditEntry, key: bytes) -> tuple[ChainEnd, bytes]:
    """Return the line of an entry after the end of a chain, with its line feed, and the new end of the chain."""
    number, data = end.number + 1, _encoder.encode(entry)
    digest = _compute_hash(end.hash, number, position, data, key)
    line = _encoder.encode(AuditLine(number, position, msgspec.Raw(data), digest)) + b"\n"
    return ChainEnd(number, position, digest), line


def read_line(line: bytes) -> AuditLine:
    """Return a parsed line. Raises `msgspec.DecodeError` for an invalid one."""
    try:
        return _decoder.decode(line)
    except UnicodeDecodeError as error:
        raise msgspec.DecodeError(str(error)) from None


def read_entry(line: AuditLine) -> AuditEntry:
    """Return the entry in a line."""
    return msgspec.json.decode(line.entry, type=AuditEntry)


def read_end(line: AuditLine) -> ChainEnd:
    """Return the end of a chain that ends with a line."""
    return ChainEnd(line.number, line.position, line.hash)


def verify_lines(lines: Iterable[bytes], key: bytes, end: ChainEnd | None = None) -> ChainEnd | BrokenLine:
    """Return the end of a chain of lines, or the first line that breaks the chain.

    Args:
        lines: Lines of one file, in order.
        key: The key that was set when they were written; b"" for none.
        end: End of the file before. None: the hash of the first line is not checked, unless its number is 1.
    """
    place = 0
    for place, text in enumerate(lines, 1):
        try:
            line = read_line(text)
        except msgspec.DecodeError:
            return BrokenLine(place, "is not a whole line of an audit trail")
        if end is not None:
            if line.number != end.number + 1:
                return BrokenLine(place, f"has number {line.number} and should have {end.number + 1}")
            if not _has_hash(line, end.hash, key):
                return BrokenLine(place, "does not fit the line before it: one was changed, or the key is another")
        elif line.number == 1 and not _has_hash(line, FIRST_HASH, key):
            return BrokenLine(place, "was changed, or the key is another")
        end = read_end(line)
    return end or ChainEnd()


def _has_hash(line: AuditLine, before: str, key: bytes) -> bool:
    return hmac.compare_digest(_compute_hash(before, line.number, line.position, bytes(line.entry), key), line.hash)


def _compute_hash(before: str, number: int, position: int, entry: bytes, key: bytes) -> str:
    data = b"%b\n%d\n%d\n%b" % (before.encode("ascii", "replace"), number, position, entry)
    return hmac.new(key, data, hashlib.sha256).hexdigest() if key else hashlib.sha256(data).hexdigest()
