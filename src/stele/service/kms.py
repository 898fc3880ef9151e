"""Access to key management services for request handlers: keys are wrapped and unwrapped off the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from stele.wire import kms

ALGORITHMS: Final = kms.ALGORITHMS
ALTERNATES: Final = kms.ALTERNATES
HARMLESS: Final = kms.HARMLESS

KmsError = kms.KmsError
KmsDenied = kms.KmsDenied
UnknownKms = kms.UnknownKms

__all__ = [
    "ALGORITHMS",
    "ALTERNATES",
    "HARMLESS",
    "KmsDenied",
    "KmsError",
    "UnknownKms",
    "new_material",
    "unwrap",
    "wrap",
]

new_material = kms.new_material


async def wrap(kms_type: str, key_id: str, properties: Mapping[str, str], material: bytes) -> bytes:
    """Encrypt a data key with a key of a KMS. Raises `KmsError`, `NotInstalled`."""
    return await asyncio.to_thread(kms.wrap, kms_type, key_id, properties, material)


async def unwrap(kms_type: str, key_id: str, properties: Mapping[str, str], wrapped: bytes) -> bytes:
    """Decrypt a data key with a key of a KMS: the inverse of `wrap`."""
    return await asyncio.to_thread(kms.unwrap, kms_type, key_id, properties, wrapped)
