"""The format that stores anything and understands nothing."""

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
    """Every text parses, prints as itself in every form, and has digests of itself."""
    parsed = OPAQUE.parse(text, {})
    assert all(OPAQUE.canonical(parsed, form) == text for form in TextForm)
    assert OPAQUE.fingerprints(parsed)["sha256"] == hashlib.sha256(text).digest()
    assert (parsed.type_name, OPAQUE.fields(parsed), OPAQUE.render(parsed, "resolved")) == ("", [], None)


def test_nothing_is_comparable() -> None:
    """There are no rulesets, and a check says so."""
    parsed = OPAQUE.parse(b"", {})
    assert OPAQUE.rulesets == ()
    with pytest.raises(UnknownRuleset):
        OPAQUE.check(parsed, parsed)


def test_data_pass_through() -> None:
    """The codec passes bytes and refuses everything else; a table has one binary column."""
    codec = OPAQUE.codec(OPAQUE.parse(b"x", {}))
    assert codec.decode(codec.encode(codec.example())) == codec.example()
    assert codec.validate(b"") == []
    assert len(codec.validate("text")) == 1
    with pytest.raises(EncodeError):
        codec.encode("text")
    assert OPAQUE.arrow_schema(OPAQUE.parse(b"x", {})).names == ["value"]
