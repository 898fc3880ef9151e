"""Names and ids of the xRegistry dialect, its paths, its wildcards and its headers."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stele.apis.xregistry.attributes import is_id, normalize_time
from stele.apis.xregistry.bodies import decode_value, encode_value
from stele.apis.xregistry.errors import CODES, RegistryError, build_error
from stele.apis.xregistry.filters import Step, find_values, parse_filters, parse_path
from stele.apis.xregistry.params import Level
from stele.apis.xregistry.serialize import embed_document
from stele.apis.xregistry.translate import decode_name, encode_name, resolve_format

_NAMES = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=20)
_FORMATS = ("avro", "json", "protobuf", "xsd", "thrift", "opaque")


@given(_NAMES | st.text("ab~2F_.", min_size=1, max_size=8))
def test_every_name_has_an_id(name: str) -> None:
    """The id of any name is valid, and is decoded to the name."""
    identifier = encode_name(name)
    assert decode_name(identifier) == name
    assert is_id(identifier) or len(identifier) > 128


@given(st.from_regex(r"\A[A-Za-z0-9_][A-Za-z0-9._~:@-]{0,20}\Z"))
def test_every_id_stays_itself(identifier: str) -> None:
    """An id that a client chose is shown unchanged."""
    assert encode_name(decode_name(identifier)) == identifier


@given(st.text(st.characters(exclude_categories=("Cs",)), max_size=30))
def test_headers_come_back(text: str) -> None:
    """Any text can be read back from its header, which is printable ASCII."""
    value = encode_value(text)
    assert re.fullmatch(r"[\x21-\x7e]*", value)
    assert decode_value(value, "x") == text


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("name", (Step("name"),)),
        ("['my.name']", (Step("my.name"),)),
        ('a["2"].b', (Step("a"), Step("2"), Step("b"))),
        ("stack[3]", (Step("stack"), Step(position=3))),
        ("a.*.b[*]", (Step("a"), Step(is_any=True), Step("b"), Step(is_any=True))),
    ],
)
def test_paths(path: str, steps: tuple[Step, ...]) -> None:
    """Paths are parsed as in the specification's table."""
    assert parse_path(path) == steps


def test_paths_lead_to_values() -> None:
    """A path finds members and items, a wildcard finds all of them, and null values are not found."""
    value = {"a": [{"b": 1}, {"b": None}, {"b": 3}], "x.y": "z"}
    assert list(find_values(value, parse_path("a[*].b"))) == [1, 3]
    assert list(find_values(value, parse_path("a[2].b"))) == [3]
    assert list(find_values(value, parse_path("['x.y']"))) == ["z"]
    assert list(find_values(value, parse_path("a[9].b"))) == []


@given(st.lists(st.text("ab*", max_size=4), max_size=4), st.text("ab", max_size=8))
def test_wildcards_are_those_of_a_regular_expression(parts: list[str], text: str) -> None:
    """A pattern with `*` matches the same texts as a regular expression with `.*`."""
    pattern = "".join(parts)
    filters = parse_filters([f"x={pattern}"], Level.VERSION)
    assert filters is not None
    expected = re.fullmatch(pattern.replace("*", ".*"), text) is not None
    assert filters[0][0].matches({"x": text}) == expected


@given(st.binary(max_size=20))
def test_documents_stand_in_answers_as_they_are(data: bytes) -> None:
    """A document that is embedded as JSON or text is unchanged."""
    embedded = embed_document(data, "text/plain")
    assert embedded is None or embedded.encode() == data
    as_json = embed_document(data, "application/json")
    assert as_json is None or bytes(as_json) == data.strip(b" \t\r\n")


def test_errors_are_complete() -> None:
    """Every error has a status and a title whose arguments are filled in."""
    for code, entry in CODES.items():
        names = set(re.findall(r"<([a-z_]+)>", entry.title)) - {"subject"}
        body = build_error(RegistryError(code, "/x", **dict.fromkeys(names, "value")), "/path", "http://h/x")
        assert body.title
        assert "<" not in body.title.replace("<subject>", "")
        assert body.type.endswith(code)


def test_formats() -> None:
    """Known names are accepted in any case; other releases and names are opaque formats."""
    assert resolve_format("AVRO/1.9", _FORMATS).format == "avro"
    assert resolve_format("XMLSchema/1.1", _FORMATS).format == "xsd"
    assert resolve_format("JsonSchema/draft-03", _FORMATS) == ("opaque", "JsonSchema/draft-03")
    assert normalize_time("2024-01-01t00:00:00.000z", "x", "/") == "2024-01-01T00:00:00Z"
