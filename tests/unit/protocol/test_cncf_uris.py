"""Version URIs: joined as in the specification's table, and split again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stele.errors import InvalidRequest
from stele.protocol import cncf_uris as uris

TABLE = [
    ("https://example.com/registry", "342", "https://example.com/registry/342"),
    ("https://example.com/registry/", "342", "https://example.com/registry/342"),
    (
        "http://schemas.example.com/",
        "/mygroup/schemas/myschema/versions/2",
        "http://schemas.example.com/mygroup/schemas/myschema/versions/2",
    ),
    ("http://schemas.example.org/", "http://schemas.example.org/41751", "http://schemas.example.org/41751"),
    ("urn:example:schemas", "a1b2c3d4", "urn:example:schemas:a1b2c3d4"),
    ("http://a.example/b/c", "/d", "http://a.example/d"),
    ("http://a.example", "d", "http://a.example/d"),
    ("http://a.example/b", "//c.example/d", "http://c.example/d"),
    ("http://a.example/b", "d?e#f", "http://a.example/b/d?e#f"),
    ("http://a.example/b", "urn:x:y", "urn:x:y"),
    ("kafka://cluster", "topic/1", "kafka://cluster/topic/1"),
]


@pytest.mark.parametrize(("authority", "reference", "uri"), TABLE)
def test_10_joined(authority: str, reference: str, uri: str) -> None:
    """10: the rows of the specification's table, and the cases between them, give the expected URI."""
    assert uris.join_uri(authority, reference) == uri
    assert reference in set(uris.possible_ids(uri)) or reference.startswith("//")


@pytest.mark.parametrize(
    ("uri", "authority"),
    [
        ("https://a.example/r/schemagroups/g/schemas/s/versions/1", "https://a.example/r"),
        ("https://a.example/schemagroups/g/schemas/s/version/1", "https://a.example"),
        ("https://a.example:81/b/c", "https://a.example:81/"),
        ("urn:a:b:c", "urn:a:b"),
        ("urn:a:schemagroups/g/schemas/s/versions/1", "urn:a"),
    ],
)
def test_14_where_a_version_comes_from(uri: str, authority: str) -> None:
    """14: the implied authority of an imported version is the base URI of its original registry."""
    assert uris.authority_of_uri(uri) == authority


@pytest.mark.parametrize(
    "wrong", ["", "a", "/a", "a b:c", "http://a?b", "http://a#b", "urn:a:", "http://ä", "a:%4", "1:a"]
)
def test_what_is_no_authority(wrong: str) -> None:
    """An authority that is not an absolute URI without query and fragment is refused."""
    with pytest.raises(InvalidRequest):
        uris.check_authority(wrong)


@pytest.mark.parametrize("wrong", ["", "..", "a/../b", "./a", "a/.", "a b", "ä", "%", "\x00", "a" * 2001])
def test_what_is_no_id(wrong: str) -> None:
    """An id that is not an ASCII URI reference of limited length without dot segments is refused."""
    with pytest.raises(InvalidRequest):
        uris.check_version_id(wrong)


_names = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8)
_authorities = st.sampled_from(["http://a", "http://a/", "https://a.b:8/c/d", "urn:a:b", "x-y:z", "kafka://k/l/"])
_ids = st.from_regex(r"(/?[a-z0-9~%]{1,3}){1,3}(\?[a-z]{1,2})?", fullmatch=True).filter(
    lambda text: "%" not in text and not text.startswith("//")
)


@given(_authorities, _names, _names, st.integers(1, 2**31 - 1))
def test_10_paths_come_back(authority: str, group: str, schema: str, version_number: int) -> None:
    """10: the URI of a version without an id identifies it, whatever its names and its authority."""
    uri = uris.join_uri(authority, uris.default_id(group, schema, version_number))
    place = uris.parse_version_path(uri)
    assert place is not None
    assert (place.group, place.schema, place.version_number) == (group, schema, version_number)
    assert uris.join_uri(authority, "") in {place.base, f"{place.base}/", f"{place.base}:"}
    assert uris.check_authority(authority) == authority


@given(_authorities, _ids)
def test_10_every_id_is_among_the_possible_ones(authority: str, reference: str) -> None:
    """10: a URI that was made of an id can be looked up by that id, without knowing the authority."""
    assert uris.check_version_id(reference) == reference
    assert reference in set(uris.possible_ids(uris.join_uri(authority, reference)))


@given(st.text(max_size=30))
def test_nothing_is_taken_for_a_place(text: str) -> None:
    """Any text is parsed as a version path or gives None, and never raises an error."""
    uris.parse_version_path(text)
    assert text in {"", *uris.possible_ids(text)}
