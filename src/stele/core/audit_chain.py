"""Lines of the audit trail, chained so that nobody changes, removes or inserts one unnoticed.

A line is JSON: its number, how far the log was written when it was, the entry, and a hash of all that and of the hash
before it. With a key the hash is an HMAC, which nobody without the key can make. Without one whoever may write the file
can make the chain anew; the copies that syslog or a webhook received show that. Pure.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import msgspec

FIRST_HASH: Final = "0" * 64
"""What the first line of all is chained to."""


class AuditEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """Who did, or wanted to do, what.

    at          milliseconds since 1970 UTC
    kind        what happened: `registered`, `settings_changed`, `key_unwrapped`, `refused` …
    actor       who it was, '' for nobody in particular; address, agent and request_id as the server knew them
    via         the API it came through
    seq, part   of a change: its record in the log, and its place in there
    details     what else there is to say, by kind
    before      digest of what was there, SHA-256; of a change of what can change
    after       digest of what is there now
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
    """A line: number counts from 1 over all files; position is the last record of the log that is written out."""

    number: int
    position: int
    entry: msgspec.Raw
    hash: str


class ChainEnd(NamedTuple):
    """What the next line is chained to."""

    number: int = 0
    position: int = 0
    hash: str = FIRST_HASH


class BrokenLine(NamedTuple):
    """The first line that does not fit: its number in its file, from 1, and why."""

    line: int
    reason: str


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(AuditLine)


def print_line(end: ChainEnd, position: int, entry: AuditEntry, key: bytes) -> tuple[ChainEnd, bytes]:
    """Return the line of an entry behind others, with its line feed, and the new end of the chain."""
    number, data = end.number + 1, _encoder.encode(entry)
    digest = _compute_hash(end.hash, number, position, data, key)
    line = _encoder.encode(AuditLine(number, position, msgspec.Raw(data), digest)) + b"\n"
    return ChainEnd(number, position, digest), line


def read_line(line: bytes) -> AuditLine:
    """Return a line. Raises `msgspec.DecodeError` for what is none."""
    try:
        return _decoder.decode(line)
    except UnicodeDecodeError as error:
        raise msgspec.DecodeError(str(error)) from None


def read_entry(line: AuditLine) -> AuditEntry:
    """Return the entry in a line."""
    return msgspec.json.decode(line.entry, type=AuditEntry)


def read_end(line: AuditLine) -> ChainEnd:
    """Return the end of a chain whose last line this is."""
    return ChainEnd(line.number, line.position, line.hash)


def verify_lines(lines: Iterable[bytes], key: bytes, end: ChainEnd | None = None) -> ChainEnd | BrokenLine:
    """Return the end of a chain of lines, or the first that does not fit.

    Args:
        lines: Of one file, in order.
        key: The key that was set when they were written; b"" for none.
        end: Of the file before. None: the first line is taken as it is, for nobody knows what it stands on.
    """
    place = 0
    for place, text in enumerate(lines, 1):
        try:
            line = read_line(text)
        except msgspec.DecodeError:
            return BrokenLine(place, "is no line of an audit trail, or only half of one")
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
