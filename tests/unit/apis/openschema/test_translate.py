"""Terms of the OpenSchema dialect: tenants, ids, definitions, versions."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stele.apis.http.requests import WrongShape
from stele.apis.openschema import translate
from stele.apis.openschema.models import SchemaInput
from stele.apis.openschema.translate import (
    format_schema_id,
    namespace_of,
    parse_schema_id,
    requested_namespace,
    tenancy_of,
)
from stele.core.model import SchemaKind
from stele.errors import ContentNotFound, InvalidName, InvalidVersion

names = (st.text(max_size=8) | st.sampled_from(["", "default", "default~", "default~~", "a/b"])).filter(
    lambda name: "|" not in name
)


@given(names, names)
def test_every_place_is_one_space(tenant: str, namespace: str) -> None:
    """Tenant and namespace are shown as they were named; absent ones as `default`."""
    assert tenancy_of(namespace_of(tenant, namespace)) == (tenant or "default", namespace or "default")


@given(names, names, names, names)
def test_no_two_places_share_a_space(one: str, two: str, three: str, four: str) -> None:
    """Different tenants or namespaces have different namespaces of the core."""
    if namespace_of(one, two) == namespace_of(three, four):
        assert (one or "default", two or "default") == (three or "default", four or "default")


def test_places() -> None:
    """Tenants and namespaces are translated as in the table of the module."""
    assert namespace_of("default", "") == ""
    assert namespace_of("t", "default") == "t"
    assert namespace_of("messaging/rocketmq", "org.apache") == "messaging/rocketmq|org.apache"
    assert namespace_of("", "n") == "|n"
    assert requested_namespace("", "") is None
    assert requested_namespace("default", "") == ""
    for wrong in (("a|b", ""), ("", "|")):
        with pytest.raises(InvalidName):
            namespace_of(*wrong)


@given(st.text(max_size=12), st.integers(1, 2**31 - 1))
def test_ids_come_apart(namespace: str, schema_id: int) -> None:
    """An id contains its namespace; an id without one is in the requested namespace."""
    full_id = format_schema_id(namespace, schema_id)
    assert parse_schema_id(full_id, None) == (namespace, schema_id)
    assert parse_schema_id(str(schema_id), namespace) == (namespace, schema_id)


@pytest.mark.parametrize("text", ["", "0", "-1", "01", "x", "t:", "t:0", "t:x", str(2**31), "9" * 30, "1\n", "١"])
def test_what_is_no_id(text: str) -> None:
    """Ids of another shape are not found."""
    with pytest.raises(ContentNotFound):
        parse_schema_id(text, None)


@pytest.mark.parametrize("text", ["", "0", "-1", "01", "Latest", str(2**31), "9" * 30, "1\n", "١"])
def test_what_is_no_version(text: str) -> None:
    """Versions are numbers from 1, or `latest`."""
    with pytest.raises(InvalidVersion):
        translate.parse_version(text)
    assert translate.parse_version("latest") is None
    assert translate.parse_version("12") == 12


def raw(text: str) -> msgspec.Raw:
    """Return a piece of JSON."""
    return msgspec.Raw(text.encode())


@pytest.mark.parametrize(
    ("definition", "serialization", "newest", "submitted"),
    [
        ('{"a": 1}', "AVRO", None, ("avro", "", b'{"a": 1}', True)),
        ('"{}"', "avro", None, ("avro", "", b"{}", False)),
        (" [1, 2] ", None, None, ("avro", "", b"[1, 2]", True)),
        ('"x"', None, SchemaKind("protobuf", "M"), ("protobuf", "", b"x", False)),
        ('"x"', "", SchemaKind("opaque", "", "MINE"), ("opaque", "MINE", b"x", False)),
        ('"x"', "JSON", SchemaKind("protobuf", "M"), ("json", "", b"x", False)),
        ('"x"', "pb", None, ("protobuf", "", b"x", False)),
        ('[{"name": "id"}]', "PB", None, ("opaque", "PB", b'[{"name": "id"}]', True)),
        ('"x"', "Hessian", None, ("opaque", "HESSIAN", b"x", False)),
        ("null", "Int", None, ("opaque", "INT", b"null", True)),
        ('"x"', "THRIFT", None, ("thrift", "", b"x", False)),
    ],
)  # fmt: skip
def test_definitions(
    definition: str, serialization: str | None, newest: SchemaKind | None, submitted: tuple[str, str, bytes, bool]
) -> None:
    """The format is the one named, else that of the subject, else Avro; JSON stays as it was written."""
    assert translate.parse_schema(SchemaInput(raw(definition), serialization), newest) == submitted


def test_a_definition_that_is_missing() -> None:
    """The definition may only be absent for serializations that need none."""
    for serialization in (None, "AVRO", "USER-DEFINED"):
        for given_ in (SchemaInput(serialization=serialization), SchemaInput(raw(" null "), serialization)):
            with pytest.raises(WrongShape):
                translate.parse_schema(given_, None)
    assert translate.parse_schema(SchemaInput(serialization="string"), None).custom_format == "STRING"


@pytest.mark.parametrize(
    ("sent", "definition"),
    [
        ('{"schemaDefinition": [1]}', "[1]"),
        ('{"type": "int"}', '{"type": "int"}'),
        ('"int"', '"int"'),
        ("[1]", "[1]"),
        ('{"schemaDefinition": 1, "name": 2}', '{"schemaDefinition": 1, "name": 2}'),
    ],
)
def test_what_is_tried(sent: str, definition: str) -> None:
    """A check accepts a whole schema, or its definition alone."""
    parsed_definition = translate.parse_checked_schema(sent.encode()).schema_definition
    assert isinstance(parsed_definition, msgspec.Raw)
    assert bytes(parsed_definition).decode() == definition


def test_kinds() -> None:
    """The serialization of a kind is the author's name for it, else that of its format."""
    names = {
        kind: translate.serialization_name(kind)
        for kind in (SchemaKind("avro", ""), SchemaKind("protobuf", "M"), SchemaKind("xsd", ""))
    }
    assert list(names.values()) == ["AVRO", "PB", "XSD"]
    assert translate.serialization_name(SchemaKind("opaque", "")) == "USER-DEFINED"
    assert translate.serialization_name(SchemaKind("opaque", "", "HESSIAN")) == "HESSIAN"
