"""Names in paths survive the way from the wire to the endpoint."""

from urllib.parse import quote

from hypothesis import given
from hypothesis import strategies as st

from stele.apis.http.paths import SLASH, decode_path, decode_segment

segment_names = st.text(st.characters(exclude_characters=SLASH, exclude_categories=["Cs"]), min_size=1)


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
