"""An input of the fuzzer: one to four byte strings, so that one file holds all inputs of a check.

document    the schema that is parsed, printed, listed and used for a codec
other       a second schema; every ruleset checks both directions
reference   a third schema, which the other two may import
data        bytes to decode with the document's codec
"""

from __future__ import annotations

from typing import Final, NamedTuple

SEPARATOR: Final = b"\n\x00\xfe\x00\n"
"""Separates the parts. No text of a schema language has a NUL."""


class Parts(NamedTuple):
    """The parts of one input; those left out are empty."""

    document: bytes
    other: bytes = b""
    reference: bytes = b""
    data: bytes = b""

    def join(self) -> bytes:
        """Return the input as one byte string, without empty parts at its end."""
        kept = list(self)
        while len(kept) > 1 and not kept[-1]:
            kept.pop()
        return SEPARATOR.join(kept)


def split_parts(data: bytes) -> Parts:
    """Return the parts of an input. Everything after the third separator belongs to the data."""
    return Parts(*data.split(SEPARATOR, len(Parts._fields) - 1))
