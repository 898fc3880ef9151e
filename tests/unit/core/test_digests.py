"""Digests are packed into one short byte string whose parts are their look-up keys."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stele.core.digests import KINDS, digest_key, digest_keys, pack_digests

digests = st.dictionaries(st.sampled_from([*KINDS, "md5", "sha256"]), st.binary(min_size=8, max_size=32))


@given(digests)
def test_every_kept_digest_is_a_key(drawn: dict[str, bytes]) -> None:
    """Packing drops only kinds that are not looked up; every other digest is found by its key."""
    keys = {digest_key(kind, digest) for kind, digest in drawn.items() if kind in KINDS}
    assert set(digest_keys(pack_digests(drawn))) == keys


def test_kinds_do_not_meet() -> None:
    """Equal bytes of two kinds are two keys; the same digest, shortened or not, is one."""
    assert digest_key("print", bytes(8)) != digest_key("rabin", bytes(8))
    assert digest_key("print", bytes(32)) == digest_key("print", bytes(16))


def test_an_unkept_kind_has_no_key() -> None:
    """A look-up by a kind that is not kept raises KeyError."""
    with pytest.raises(KeyError):
        digest_key("md5", bytes(16))
