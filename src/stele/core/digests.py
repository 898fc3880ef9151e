"""Digests of a content, packed: one short byte string instead of a dict per schema.

Kinds that are used for look-ups get a code. Digests of other kinds are only in the log, and are computed again when
needed.
"""

from __future__ import annotations

from collections.abc import Mapping

KINDS = {"rabin": 1, "normalized": 2, "print": 3, "descriptor": 4}
"""Kinds kept in memory.

rabin is 8 bytes big-endian, CRC-64-AVRO of the parsing canonical form; the others are prefixes of a SHA-256.
"""

_KEPT = 16
"""Bytes kept of a digest. With 128 bits, two texts never have the same digest by accident."""


def pack_digests(digests: Mapping[str, bytes]) -> bytes:
    """Return the digests as one byte string: code, length and bytes of each, in the order of codes."""
    packed = bytearray()
    for name, code in KINDS.items():
        if name in digests:
            digest = digests[name][:_KEPT]
            packed += bytes((code, len(digest)))
            packed += digest
    return bytes(packed)


def digest_keys(packed: bytes) -> list[bytes]:
    """Return the index keys of packed digests, one per kind."""
    keys, position = [], 0
    while position < len(packed):
        end = position + 2 + packed[position + 1]
        keys.append(packed[position:end])
        position = end
    return keys


def digest_key(kind: str, digest: bytes) -> bytes:
    """Return the index key of a digest. Raises KeyError for a kind that is not kept."""
    return bytes((KINDS[kind], len(digest[:_KEPT]))) + digest[:_KEPT]
