"""RFC 5869 with the interface of the package `hkdf`. confluent-kafka's local KMS imports it, but it has no wheel."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from hashlib import sha512
from typing import Any


def hkdf_extract(salt: bytes | None, input_key_material: bytes, hash: Callable[..., Any]) -> bytes:  # noqa: A002 - theirs
    """Return the result of the first step: a key of the digest's length."""
    return hmac.new(salt or bytes(hash().digest_size), input_key_material, hash).digest()


def hkdf_expand(
    pseudo_random_key: bytes,
    info: bytes = b"",
    length: int = 32,
    hash: Callable[..., Any] = sha512,  # noqa: A002 - theirs
) -> bytes:
    """Return the result of the second step: `length` bytes."""
    output = block = b""
    while len(output) < length:
        block = hmac.new(
            pseudo_random_key, block + info + bytes([len(output) // hash().digest_size + 1]), hash
        ).digest()
        output += block
    return output[:length]
