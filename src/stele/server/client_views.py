"""Describes one version in the terms of each dialect, with the path under which its clients read it."""

from __future__ import annotations

from urllib.parse import quote

from stele.apis.cncf import translate as cncf
from stele.apis.confluent.guid import compute_guid
from stele.apis.confluent.names import qualify_subject
from stele.apis.openschema import translate as openschema
from stele.apis.pravega import translate as pravega
from stele.apis.rocketmq import translate as rocketmq
from stele.apis.schema_repo.ids import id_of
from stele.core.model import Version
from stele.core.state import State
from stele.protocol.cncf import group_id_of
from stele.ui.options import ClientView, ClientWord

_FIRST_NUMBER = 0
"""First number of a subject's versions in schema-repo."""


def describe_version(state: State, version: Version, *, schema_repo_ids: str) -> list[ClientView]:
    """Return a description of a version for the clients of each dialect.

    Args:
        state: State of the registry.
        version: The version.
        schema_repo_ids: The setting of that name.
    """
    return [
        _describe_confluent(state, version),
        _describe_pravega(version),
        _describe_schema_repo(state, version, schema_repo_ids),
        _describe_cncf(version),
        _describe_rocketmq(version),
        _describe_openschema(version),
    ]


def _describe_confluent(state: State, version: Version) -> ClientView:
    name = qualify_subject(version.subject.key)
    return ClientView(
        "Confluent and Redpanda",
        (
            ClientWord("context", f".{version.subject.key.namespace}"),
            ClientWord("subject", name),
            ClientWord("version", str(version.version_number)),
            ClientWord("id", str(version.schema.schema_id)),
            ClientWord("guid", compute_guid(state, version.schema)),
            ClientWord("first bytes of a record", f"00 {version.schema.schema_id.to_bytes(4, 'big').hex(' ')}"),
        ),
        f"/subjects/{_quote(name)}/versions/{version.version_number}",
    )


def _describe_pravega(version: Version) -> ClientView:
    key, info = version.subject.key, pravega.build_version_info(version)
    encodings = [
        str(number) for number, (uid, _) in enumerate(version.subject.encodings or (), start=1) if uid == version.uid
    ]
    query = f"?namespace={_quote(key.namespace)}" if key.namespace else ""
    words = (
        ClientWord("namespace", key.namespace or "(none)"),
        ClientWord("group", key.name),
        ClientWord("type", info.type),
        ClientWord("version", str(info.version)),
        ClientWord("id", str(info.id)),
        *([ClientWord("encoding ids", ", ".join(encodings))] if encodings else []),
    )
    return ClientView("Pravega", words, f"/v1/groups/{_quote(key.name)}/schemas/schema/{info.id}{query}")


def _describe_schema_repo(state: State, version: Version, ids: str) -> ClientView:
    key = version.subject.key
    number = id_of(ids, _FIRST_NUMBER, state, version)
    return ClientView(
        "AVRO-1124 and schema-repo",
        (ClientWord("subject", key.name), ClientWord("id", number)),
        f"/schema-repo/{_quote(key.name)}/id/{_quote(number)}" if not key.namespace else "",
    )


def _describe_cncf(version: Version) -> ClientView:
    key = version.subject.key
    group = group_id_of(key.namespace)
    path = f"/schemagroups/{_quote(group)}/schemas/{_quote(key.name)}/versions/{version.version_number}"
    return ClientView(
        "CNCF Schema Registry and Azure",
        (
            ClientWord("schema group", group),
            ClientWord("schema", key.name),
            ClientWord("version", str(version.version_number)),
            ClientWord("id", cncf.format_uid(version)),
            *([ClientWord("version URI", uri)] if (uri := cncf.origin_uri(version)) else []),
        ),
        path,
    )


def _describe_rocketmq(version: Version) -> ClientView:
    key = version.subject.key
    tenant = rocketmq.tenant_of(key.namespace)
    number = rocketmq.record_id(version)
    return ClientView(
        "RocketMQ",
        (
            ClientWord("tenant", tenant),
            ClientWord("schema", rocketmq.schema_name(key)),
            ClientWord("version", str(version.version_number)),
            ClientWord("record id", str(number) if number is not None else "none"),
            ClientWord("type", rocketmq.type_of_kind(version.kind)),
        ),
        f"/schema-registry/v1/tenant/{_quote(tenant)}/record/{number}" if number is not None else "",
    )


def _describe_openschema(version: Version) -> ClientView:
    key = version.subject.key
    tenancy = openschema.tenancy_of(key.namespace)
    query = f"?tenant={_quote(tenancy.tenant)}&namespace={_quote(tenancy.namespace)}" if key.namespace else ""
    return ClientView(
        "OpenSchema",
        (
            ClientWord("tenant", tenancy.tenant),
            ClientWord("namespace", tenancy.namespace),
            ClientWord("subject", key.name),
            ClientWord("version", str(version.version_number)),
            ClientWord("id", openschema.format_schema_id(key.namespace, version.schema.schema_id)),
        ),
        f"/openschema/subjects/{_quote(key.name)}/versions/{version.version_number}/schema{query}",
    )


def _quote(name: str) -> str:
    return quote(name, safe="")
