"""Fingerprints of Parsing Canonical Form (Avro 1.12, "Schema Fingerprints")."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final

_CRC_EMPTY: Final = 0xC15D213AA4D7A795


def _make_crc_table() -> tuple[int, ...]:
    """The 256 steps of CRC-64-AVRO, one for each value of a byte."""
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (_CRC_EMPTY if value & 1 else 0)  # noqa: PLW2901 - the remainder grows bit by bit
        table.append(value)
    return tuple(table)


_CRC_TABLE: Final = _make_crc_table()


def rabin_fingerprint(text: bytes) -> bytes:
    """CRC-64-AVRO as 8 bytes, big-endian: printed as hex it reads like Java's `Long.toHexString`.

    The header of the single-object encoding wants the same bytes in reverse (little-endian) order.
    """
    value = _CRC_EMPTY
    table = _CRC_TABLE
    for byte in text:
        value = (value >> 8) ^ table[(value ^ byte) & 0xFF]
    return value.to_bytes(8, "big")


def compute_fingerprints(canonical: bytes) -> Mapping[str, bytes]:
    """The three digests the specification names, of a text in Parsing Canonical Form."""
    return {
        "rabin": rabin_fingerprint(canonical),
        "md5": hashlib.md5(canonical, usedforsecurity=False).digest(),
        "sha256": hashlib.sha256(canonical).digest(),
    }
