"""Words of the CNCF dialect and of Azure's flavour: ids, formats, content types, headers, policies."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stele.apis.cncf import entities as api
from stele.apis.cncf import languages, names, translate
from stele.apis.cncf.languages import Language
from stele.core.model import SchemaKind
from stele.core.policy import ALLOW_ANY, POLICIES
from stele.core.policy_json import PolicyJson
from stele.errors import InvalidName, InvalidRequest, UnknownPolicy, VersionNotFound

INSTALLED = ("avro", "json", "opaque", "protobuf", "thrift", "xsd")


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"])) | st.from_regex(r"default~{0,3}", fullmatch=True))
def test_every_space_has_a_group_of_its_own(space: str) -> None:
    """Groups and spaces are one to one; the default space is the group `default`."""
    assert names.space_of(names.group_of(space)) == space
    assert names.group_of("") == "default"
    assert names.group_of("default") == "default~"


@pytest.mark.parametrize("wrong", ["", ".", "..", "a/b", "a:b", "x" * 513])
def test_04_what_is_no_id(wrong: str) -> None:
    """4: nothing can be made under names that are no path segment, or that clients would resolve away."""
    with pytest.raises(InvalidName):
        names.new_id(wrong)


@pytest.mark.parametrize("wrong", ["0", "-1", "1.0", "x", "", "2147483648", "٣"])
def test_what_is_no_version_number(wrong: str) -> None:
    """A version is asked for by a plain number."""
    with pytest.raises(VersionNotFound):
        names.ordinal_of(wrong)


@pytest.mark.parametrize(
    ("path", "method", "routed"),
    [
        ("/schemagroups/g/", "GET", "/schemagroups/g/"),
        ("/schemagroups/g/", "PUT", "/schemagroups/g/\ue001"),
        ("/schemagroups//schemas///", "GET", "/schemagroups/\ue001/schemas/\ue001/\ue001/"),
        ("/$SCHEMAgroups/$Schemas/x", "GET", "/$schemaGroups/$schemas/x"),
        ("/$schemagroups/G", "GET", "/$schemaGroups/G"),
        ("/$schemagroupsx/G", "GET", "/$schemagroupsx/G"),
        ("/schemagroups/$schemagroups", "GET", "/schemagroups/$schemagroups"),
    ],
)
def test_paths_as_routes_spell_them(path: str, method: str, routed: str) -> None:
    """Azure's words have any case, an empty segment is never passed over."""
    assert names.spelled(path, method) == routed


@pytest.mark.parametrize(
    ("name", "language"),
    [
        ("avro", Language("avro")),
        ("Avro/1.11.1", Language("avro")),
        ("json-schema", Language("json")),
        ("JsonSchema/draft-07", Language("json")),
        ("JSON", Language("json")),
        ("Protobuf/3", Language("protobuf")),
        ("proto2", Language("protobuf")),
        ("xsd11", Language("xsd")),
        ("XML Schema 1.0", Language("xsd")),
        ("thrift", Language("thrift")),
        ("Custom", Language("opaque")),
        ("x509", Language("opaque", "x509")),
        (" my.own/7 ", Language("opaque", "my.own/7")),
    ],
)
def test_formats(name: str, language: Language) -> None:
    """Common spellings mean an installed format, everything else is a format of its own; both keep their name."""
    assert languages.language_in(name, INSTALLED) == language
    assert languages.name_of(language, name.strip(), INSTALLED) == name.strip()
    assert languages.language_in(languages.name_of(language, "", INSTALLED), INSTALLED) == language


@pytest.mark.parametrize("wrong", ["", " ", "x" * 201])
def test_what_is_no_format(wrong: str) -> None:
    """A format has a name that fits a header."""
    with pytest.raises(InvalidRequest):
        languages.language_in(wrong, INSTALLED)


@pytest.mark.parametrize(
    ("content_type", "language"),
    [
        ("application/json;format=avro", Language("avro")),
        ("application/json; serialization=Avro", Language("avro")),
        ('application/json; charset=utf-8; FORMAT="json-schema"', Language("json")),
        ("application/json;format=protobuf", Language("protobuf")),
        ("application/vnd.apache.avro+json; version=1", Language("avro")),
        ("text/vnd.ms.protobuf", Language("protobuf")),
        ("application/json", None),
        ("application/json;format=unheard-of", None),
        ("application/json;reformat=avro", None),
        ("text/plain; charset=utf-8", None),
        ("", None),
        (";format=", None),
    ],
)
def test_content_types_that_name_a_format(content_type: str, language: Language | None) -> None:
    """A parameter or a media type of its own names a format; what several have names none."""
    assert languages.language_of_type(content_type, INSTALLED) == language


@pytest.mark.parametrize(
    ("lane", "text", "cncf", "azure"),
    [
        (SchemaKind("avro", "R"), b"{}", "application/json;format=avro", "application/json; serialization=Avro"),
        (SchemaKind("json", ""), b"{}", "application/schema+json", "application/json; serialization=Json"),
        (
            SchemaKind("protobuf", "M"),
            b"message M {}",
            "text/plain;charset=utf-8;format=protobuf",
            "text/vnd.ms.protobuf",
        ),
        (SchemaKind("protobuf", "M"), b"\n\x01", "application/octet-stream;format=protobuf", "text/vnd.ms.protobuf"),
        (SchemaKind("xsd", ""), b"<a/>", "application/xml;format=xsd", "text/plain; charset=utf-8"),
        (SchemaKind("opaque", "", "x"), b"a", "application/octet-stream", "text/plain; charset=utf-8"),
    ],
)
def test_types_of_documents_nobody_gave_one(lane: SchemaKind, text: bytes, cncf: str, azure: str) -> None:
    """What another dialect registered gets a type from its format, one that names the format again where it can."""
    assert languages.content_type_of(lane, text) == cncf
    assert languages.azure_type_of(lane, "") == azure
    named = languages.language_of_type(cncf, INSTALLED)
    assert named is None if lane.format == "opaque" else named == Language(lane.format)


def test_azure_keeps_its_own_spelling() -> None:
    """A type the Azure flavour has is told as it was sent, any other as the flavour calls it."""
    lane = SchemaKind("avro", "R")
    assert languages.azure_type_of(lane, "application/json;serialization=avro") == "application/json;serialization=avro"
    assert languages.azure_type_of(lane, "text/plain; charset=utf-8") == "application/json; serialization=Avro"


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=50))
def test_13_texts_go_through_headers(text: str) -> None:
    """13: any text comes back from a header, which is printable ASCII without blanks at its ends."""
    shown = translate.header_out(text)
    assert shown.isascii()
    assert shown == shown.strip()
    assert shown.isprintable()
    assert translate.header_in(shown) == text


def test_13_headers_as_people_write_them() -> None:
    """13: a header may be UTF-8 as it is, and a percent sign that encodes nothing is one."""
    assert translate.header_in("größe 50 %".encode().decode("latin-1")) == "größe 50 %"
    with pytest.raises(InvalidRequest):
        translate.header_in("gr\xf6\xdfe")


@pytest.mark.parametrize("wrong", ["\x00", "\x1b[0m", "\ufffd", "x" * 2001])
def test_what_is_no_description(wrong: str) -> None:
    """A description is text of bounded length."""
    with pytest.raises(InvalidRequest):
        translate.text_in(wrong)


def test_times() -> None:
    """Times are RFC 3339 in UTC, to the millisecond."""
    assert translate.time_out(0) == "1970-01-01T00:00:00.000Z"
    assert translate.time_out(1_604_079_060_120) == "2020-10-30T17:31:00.120Z"


@pytest.mark.parametrize(
    ("word", "name"),
    [("None", "NONE"), ("backward", "BACKWARD"), ("Forward", "FORWARD"), ("FullTransitive", "FULL_TRANSITIVE")],
)
def test_azure_words_of_policies(word: str, name: str) -> None:
    """Azure's three words mean what they say; the words it answers with are taken back."""
    wish = translate.azure_group_in(api.AzureGroupAttributes("Avro", word), INSTALLED)
    assert wish.policy == POLICIES[name]


def test_what_is_no_azure_group() -> None:
    """Unknown types and compatibilities are refused, an exact policy goes before a word."""
    with pytest.raises(InvalidRequest):
        translate.azure_group_in(api.AzureGroupAttributes("Zebra"), INSTALLED)
    with pytest.raises(UnknownPolicy):
        translate.azure_group_in(api.AzureGroupAttributes("Avro", "Sideways"), INSTALLED)
    wish = translate.azure_group_in(
        api.AzureGroupAttributes("Avro", "Full", exactly=PolicyJson("allow_any")), INSTALLED
    )
    assert wish.policy == ALLOW_ANY
