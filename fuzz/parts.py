"""An input of the fuzzer: one to four byte strings, so that one file holds a whole question to a format.

document    the schema that is parsed, printed, listed and asked for a codec
other       a second schema; both directions are checked by every ruleset
reference   a third one, which the other two may import
data        bytes to decode with the document's codec
"""

from __future__ import annotations

from typing import Final, NamedTuple

SEPARATOR: Final = b"\n\x00\xfe\x00\n"
"""Stands between the parts; no text of any schema language has a NUL."""


class Parts(NamedTuple):
    """The parts of one input; those left out are empty."""

    document: bytes
    other: bytes = b""
    reference: bytes = b""
    data: bytes = b""

    def join(self) -> bytes:
        """The input as one byte string, without the empty parts at its end."""
        kept = list(self)
        while len(kept) > 1 and not kept[-1]:
            kept.pop()
        return SEPARATOR.join(kept)


def split_parts(data: bytes) -> Parts:
    """The parts of an input; whatever follows a fourth separator belongs to the data."""
    return Parts(*data.split(SEPARATOR, len(Parts._fields) - 1))
