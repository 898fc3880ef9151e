"""Names in paths survive the way from the wire to the endpoint."""

from urllib.parse import quote

from hypothesis import given
from hypothesis import strategies as st

from stele.apis.http.paths import SLASH, decode_path, decode_segment

segment_names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


@given(segment_names, segment_names)
def test_encoded_names_come_back(first: str, second: str) -> None:
    """Any two names, percent-encoded into one path, are two segments that spell them."""
    path = decode_path(f"/{quote(first, safe='')}/{quote(second, safe='')}".encode())
    assert [decode_segment(segment) for segment in path[1:].split("/")] == [first, second]


@given(st.binary(max_size=60))
def test_any_bytes_make_a_path(raw: bytes) -> None:
    """No byte sequence is too strange to route."""
    assert isinstance(decode_path(b"/" + raw), str)


def test_only_encoded_slashes_are_marked() -> None:
    """A plain slash separates, an encoded one belongs to the name, a doubly encoded one stays encoded."""
    assert decode_path(b"/a/b%2Fc%2fd/%252F") == f"/a/b{SLASH}c{SLASH}d/%2F"


def test_a_private_character_is_no_second_spelling() -> None:
    """Characters that stand for something in routed paths mean themselves when a client sends them."""
    for sent, name in (("a%EE%80%80b", "a\ue000b"), ("%EE%80%81", "\ue001"), ("%ee%80%820%2F", "\ue0020/")):
        path = decode_path(f"/{sent}".encode())
        assert path.count(SLASH) == sent.count("%2F")
        assert decode_segment(path[1:]) == name
