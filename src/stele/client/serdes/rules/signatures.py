"""Signatures of rules: an author signs a rule, and an application with the author's public key trusts it.

    key = Ed25519PrivateKey.generate()
    rule = sign_rule(Rule("tidy", …), key)
    rules = Rules(trusts=SignedBy(key.public_key().public_bytes_raw()), trusted_only=True)

A signature covers one rule, independent of its rule set. Its name, kind, mode, type, tags, parameters, expression and
actions are signed; its doc is not.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Final

import msgspec

from stele.errors import NotInstalled
from stele.protocol.confluent import Rule

try:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
except ImportError:
    raise NotInstalled("cryptography", "rules") from None

SIGNATURE: Final = "stele.signature"
"""Parameter of a rule that holds its signature, in base64."""


def sign_rule(rule: Rule, key: Ed25519PrivateKey) -> Rule:
    """Return the rule with its signature among its parameters."""
    signature = b64encode(key.sign(_signed_bytes(rule))).decode()
    return msgspec.structs.replace(rule, params={**(rule.params or {}), SIGNATURE: signature})


class SignedBy:
    """Trusts the rules that one of several authors signed; see `Rules.trusts`. Can be pickled."""

    def __init__(self, *keys: bytes) -> None:
        """Take Ed25519 public keys, 32 bytes each. Raises ValueError for anything else."""
        self._keys = keys
        for key in keys:
            Ed25519PublicKey.from_public_bytes(key)

    def __call__(self, rule: Rule) -> bool:
        """Return whether the rule has a signature by one of the keys."""
        try:
            signature = b64decode((rule.params or {}).get(SIGNATURE, ""), validate=True)
        except ValueError:
            return False
        return any(_is_signed(rule, signature, key) for key in self._keys)


def _is_signed(rule: Rule, signature: bytes, key: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, _signed_bytes(rule))
    except InvalidSignature:
        return False
    return True


def _signed_bytes(rule: Rule) -> bytes:
    """Return the bytes to sign. Defaults are written out, because registries do so, and tags are sorted."""
    params = {name: value for name, value in (rule.params or {}).items() if name != SIGNATURE}
    parts = (
        rule.name,
        rule.kind or "TRANSFORM",
        rule.mode or "WRITEREAD",
        rule.type,
        sorted(rule.tags or ()),
        sorted(params.items()),
        rule.expr,
        rule.on_success or "",
        rule.on_failure or "",
        bool(rule.disabled),
    )
    return msgspec.json.encode(parts)
