"""The format that stores any bytes without parsing them."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stele.core.ports import TextForm
from stele.errors import EncodeError, UnknownRuleset
from stele.formats.opaque import OPAQUE


@given(st.binary())
def test_any_bytes_are_kept(text: bytes) -> None:
    """Every text can be parsed, is printed unchanged in every form, and has digests."""
    parsed = OPAQUE.parse(text, {})
    assert all(OPAQUE.canonical(parsed, form) == text for form in TextForm)
    assert OPAQUE.fingerprints(parsed)["sha256"] == hashlib.sha256(text).digest()
    assert (parsed.type_name, OPAQUE.fields(parsed), OPAQUE.render(parsed, "resolved")) == ("", [], None)


def test_nothing_is_comparable() -> None:
    """There are no rulesets, and a check raises an error."""
    parsed = OPAQUE.parse(b"", {})
    assert OPAQUE.rulesets == ()
    with pytest.raises(UnknownRuleset):
        OPAQUE.check(parsed, parsed)


def test_data_pass_through() -> None:
    """The codec returns bytes unchanged and rejects everything else; the table has one binary column."""
    codec = OPAQUE.codec(OPAQUE.parse(b"x", {}))
    assert codec.decode(codec.encode(codec.example())) == codec.example()
    assert codec.validate(b"") == []
    assert len(codec.validate("text")) == 1
    with pytest.raises(EncodeError):
        codec.encode("text")
    assert OPAQUE.arrow_schema(OPAQUE.parse(b"x", {})).names == ["value"]
