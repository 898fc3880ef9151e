"""Terms of the CNCF dialect and of Azure's flavour: ids, formats, content types, headers, policies."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stele.apis.cncf import app, translate
from stele.apis.cncf import models as api
from stele.core.model import SchemaFormat, SchemaKind
from stele.core.policy import ALLOW_ANY, POLICIES
from stele.core.policy_json import PolicyJson
from stele.errors import InvalidName, InvalidRequest, UnknownPolicy, VersionNotFound
from stele.protocol.cncf import group_id_of, namespace_of
from stele.service.times import format_time

INSTALLED = ("avro", "json", "opaque", "protobuf", "thrift", "xsd")


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"])) | st.from_regex(r"default~{0,3}", fullmatch=True))
def test_every_space_has_a_group_of_its_own(namespace: str) -> None:
    """Each namespace has its own group; the default namespace is the group `default`."""
    assert namespace_of(group_id_of(namespace)) == namespace
    assert group_id_of("") == "default"
    assert group_id_of("default") == "default~"


@pytest.mark.parametrize("wrong", ["", ".", "..", "a/b", "a:b", "x" * 513])
def test_04_what_is_no_id(wrong: str) -> None:
    """4: nothing can be created under a name that is no path segment, or that clients would normalize away."""
    with pytest.raises(InvalidName):
        translate.check_new_id(wrong)


@pytest.mark.parametrize("wrong", ["0", "-1", "1.0", "x", "", "2147483648", "٣"])
def test_what_is_no_version_number(wrong: str) -> None:
    """Only a plain number is a version number."""
    with pytest.raises(VersionNotFound):
        translate.parse_version_number(wrong)


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
    """Azure's first segment may have any case, and empty segments are kept."""
    assert app.normalize_path(path, method) == routed


@pytest.mark.parametrize(
    ("name", "schema_format"),
    [
        ("avro", SchemaFormat("avro")),
        ("Avro/1.11.1", SchemaFormat("avro")),
        ("json-schema", SchemaFormat("json")),
        ("JsonSchema/draft-07", SchemaFormat("json")),
        ("JSON", SchemaFormat("json")),
        ("Protobuf/3", SchemaFormat("protobuf")),
        ("proto2", SchemaFormat("protobuf")),
        ("xsd11", SchemaFormat("xsd")),
        ("XML Schema 1.0", SchemaFormat("xsd")),
        ("thrift", SchemaFormat("thrift")),
        ("Custom", SchemaFormat("opaque")),
        ("x509", SchemaFormat("opaque", "x509")),
        (" my.own/7 ", SchemaFormat("opaque", "my.own/7")),
    ],
)
def test_formats(name: str, schema_format: SchemaFormat) -> None:
    """Common spellings mean an installed format, any other name a custom format; both keep their spelling."""
    assert translate.parse_format_name(name, INSTALLED) == schema_format
    assert translate.format_name(schema_format, name.strip(), INSTALLED) == name.strip()
    assert translate.parse_format_name(translate.format_name(schema_format, "", INSTALLED), INSTALLED) == schema_format


@pytest.mark.parametrize("wrong", ["", " ", "x" * 201])
def test_what_is_no_format(wrong: str) -> None:
    """A name of a format must fit into a header."""
    with pytest.raises(InvalidRequest):
        translate.parse_format_name(wrong, INSTALLED)


@pytest.mark.parametrize(
    ("content_type", "schema_format"),
    [
        ("application/json;format=avro", SchemaFormat("avro")),
        ("application/json; serialization=Avro", SchemaFormat("avro")),
        ('application/json; charset=utf-8; FORMAT="json-schema"', SchemaFormat("json")),
        ("application/json;format=protobuf", SchemaFormat("protobuf")),
        ("application/vnd.apache.avro+json; version=1", SchemaFormat("avro")),
        ("text/vnd.ms.protobuf", SchemaFormat("protobuf")),
        ("application/json", None),
        ("application/json;format=unheard-of", None),
        ("application/json;reformat=avro", None),
        ("text/plain; charset=utf-8", None),
        ("", None),
        (";format=", None),
    ],
)
def test_content_types_that_name_a_format(content_type: str, schema_format: SchemaFormat | None) -> None:
    """A parameter, or a media type of one format only, names a format; other media types name none."""
    assert translate.format_of_content_type(content_type, INSTALLED) == schema_format


@pytest.mark.parametrize(
    ("kind", "text", "cncf", "azure"),
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
def test_types_of_documents_nobody_gave_one(kind: SchemaKind, text: bytes, cncf: str, azure: str) -> None:
    """A schema from another dialect gets a content type from its format; if possible, the type names the format."""
    assert translate.default_content_type(kind, text) == cncf
    assert translate.azure_content_type(kind, "") == azure
    named = translate.format_of_content_type(cncf, INSTALLED)
    assert named is None if kind.format == "opaque" else named == SchemaFormat(kind.format)


def test_azure_keeps_its_own_spelling() -> None:
    """A content type of the Azure flavour is returned as it was sent, any other one in Azure's spelling."""
    kind = SchemaKind("avro", "R")
    assert (
        translate.azure_content_type(kind, "application/json;serialization=avro")
        == "application/json;serialization=avro"
    )
    assert translate.azure_content_type(kind, "text/plain; charset=utf-8") == "application/json; serialization=Avro"


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=50))
def test_13_texts_go_through_headers(text: str) -> None:
    """13: any text can be read back from its header, which is printable ASCII without blanks at its ends."""
    header = translate.encode_header(text)
    assert header.isascii()
    assert header == header.strip()
    assert header.isprintable()
    assert translate.decode_header(header) == text


def test_13_headers_as_people_write_them() -> None:
    """13: a header may be plain UTF-8, and a percent sign that encodes nothing is a percent sign."""
    assert translate.decode_header("größe 50 %".encode().decode("latin-1")) == "größe 50 %"
    with pytest.raises(InvalidRequest):
        translate.decode_header("gr\xf6\xdfe")


@pytest.mark.parametrize("wrong", ["\x00", "\x1b[0m", "\ufffd", "x" * 2001])
def test_what_is_no_description(wrong: str) -> None:
    """Descriptions that are too long or have control characters are refused."""
    with pytest.raises(InvalidRequest):
        translate.check_description(wrong)


def test_times() -> None:
    """Times are RFC 3339 in UTC, to the millisecond."""
    assert format_time(0) == "1970-01-01T00:00:00.000Z"
    assert format_time(1_604_079_060_120) == "2020-10-30T17:31:00.120Z"


@pytest.mark.parametrize(
    ("word", "name"),
    [("None", "NONE"), ("backward", "BACKWARD"), ("Forward", "FORWARD"), ("FullTransitive", "FULL_TRANSITIVE")],
)
def test_azure_words_of_policies(word: str, name: str) -> None:
    """Azure's three policy names are accepted, and so are the other names that responses use."""
    update = translate.parse_azure_group(api.AzureGroupAttributes("Avro", word), INSTALLED)
    assert update.policy == POLICIES[name]


def test_what_is_no_azure_group() -> None:
    """Unknown types and compatibilities are refused; an exact policy takes precedence over a name."""
    with pytest.raises(InvalidRequest):
        translate.parse_azure_group(api.AzureGroupAttributes("Zebra"), INSTALLED)
    with pytest.raises(UnknownPolicy):
        translate.parse_azure_group(api.AzureGroupAttributes("Avro", "Sideways"), INSTALLED)
    update = translate.parse_azure_group(
        api.AzureGroupAttributes("Avro", "Full", exactly=PolicyJson("allow_any")), INSTALLED
    )
    assert update.policy == ALLOW_ANY
