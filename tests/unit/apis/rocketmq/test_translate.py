"""Terms of the RocketMQ dialect: tenants, types, numbers, bindings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stele.apis.rocketmq import translate
from stele.core.model import SchemaKind, SubjectKey
from stele.errors import ContentNotFound, InvalidVersion, UnknownFormat
from stele.protocol.rocketmq import BoundSubject

namespaces = st.text(max_size=12) | st.sampled_from(
    ["", "default", "default~", "default~~", "default~x", "~", "Default"]
)


@given(namespaces)
def test_every_space_is_one_tenant(namespace: str) -> None:
    """The tenant of a namespace is translated back to this namespace; `default` is the default one."""
    assert translate.namespace_of(translate.tenant_of(namespace)) == namespace
    assert translate.tenant_of("") == "default"


@given(namespaces.filter(bool))
def test_every_tenant_is_one_space(tenant: str) -> None:
    """The namespace of a tenant is translated back to this tenant, so no two tenants share a namespace."""
    assert translate.tenant_of(translate.namespace_of(tenant)) == tenant


@pytest.mark.parametrize(
    ("word", "schema_format"),
    [
        (None, ("avro", "")),
        ("", ("avro", "")),
        ("avro", ("avro", "")),
        (" Protobuf ", ("protobuf", "")),
        ("THRIFT", ("thrift", "")),
        ("JSON", ("json", "")),
        ("TEXT", ("opaque", "TEXT")),
        ("binlog", ("opaque", "BINLOG")),
    ],
)
def test_types(word: str | None, schema_format: tuple[str, str]) -> None:
    """Every schema type has a format, which is shown as the same type."""
    parsed_format = translate.parse_type(word)
    assert parsed_format == schema_format
    type_name = translate.type_of_kind(SchemaKind(parsed_format.format, "", parsed_format.custom_format))
    assert type_name == ((word or "").strip().upper() or "AVRO")


def test_types_clients_do_not_know() -> None:
    """An unknown type is refused; a stored schema of another format is shown as TEXT."""
    for wrong in ("XML", "AVR0", "\0"):
        with pytest.raises(UnknownFormat):
            translate.parse_type(wrong)
    for kind in (SchemaKind("xsd", ""), SchemaKind("opaque", ""), SchemaKind("opaque", "", "mine")):
        assert translate.type_of_kind(kind) == "TEXT"


@pytest.mark.parametrize("text", ["", "0", "-1", "+1", " 1", "1e3", "latest", "١", "1" * 20, "1\n"])
def test_what_is_no_version(text: str) -> None:
    """Versions are decimal numbers from 1."""
    with pytest.raises(InvalidVersion):
        translate.parse_version(text)


@pytest.mark.parametrize("text", ["", "-1", "x", "1" * 20, "1\n"])
def test_what_is_no_record_id(text: str) -> None:
    """A record id is a number of at most 64 bits; any other text is not found."""
    with pytest.raises(ContentNotFound):
        translate.parse_record_id(text)
    assert translate.parse_record_id("16385") == 16385


def test_a_subject_is_a_binding() -> None:
    """The key of the binding contains cluster, tenant and name of the subject, which can be read back."""
    address = translate.parse_address("c\ue0001", "default")
    binding = translate.build_binding(address, "t", SubjectKey("", "s"), 3)
    assert binding.key == ("c/1", "rocketmq", "t", "") == translate.binding_key(address, "t")
    assert translate.subject_body(binding) == BoundSubject("c/1", "default", "t")
