"""Translates between the terms of the API and those of the core. Pure.

A tenant is a namespace, a schema a subject of the core, a record a version. A subject of this API is a binding of
`cluster/tenant/subject` to one record. A schema from another dialect has no such binding. It is found under its own
name in every cluster and resolves to its newest version, since other registries name topics after subjects.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from stele.apis.http.requests import decode_segment
from stele.core import queries
from stele.core.model import (
    DEFAULT_NAMESPACE,
    OPAQUE_FORMAT,
    RECORD_ID_VERSION_BITS,
    Binding,
    SchemaFormat,
    SchemaKind,
    Subject,
    SubjectKey,
    Version,
    VersionState,
)
from stele.core.policy import Policy
from stele.core.policy_json import PolicyJson
from stele.core.state import State
from stele.core.traversal import find_version
from stele.errors import ContentNotFound, InvalidVersion, UnknownFormat
from stele.protocol import rocketmq as api

DIALECT = "rocketmq"
"""Key of the data of this dialect in versions, and the resource type of its bindings."""
DEFAULT = "default"
"""Name of the cluster and of the tenant if a path names none. This tenant is the default namespace."""
MAX_VERSION_NUMBER = (1 << RECORD_ID_VERSION_BITS) - 1
"""Highest version number that has a record id."""

_ESCAPED = "~"
_DEFAULT_LIKE = re.compile(rf"{DEFAULT}~*\Z")
_NUMBER = re.compile(r"[0-9]{1,19}\Z")

# --- places ---------------------------------------------------------------------------------------------------------


class TenantAddress(NamedTuple):
    """Cluster and namespace of a request."""

    cluster: str
    namespace: str


def parse_address(cluster: str, tenant: str) -> TenantAddress:
    """Return the cluster and namespace that two path segments name."""
    return TenantAddress(decode_segment(cluster), namespace_of(decode_segment(tenant)))


def namespace_of(tenant: str) -> str:
    """Return the namespace of a tenant. The tenant `default~` is the namespace called `default`, and so on."""
    if tenant == DEFAULT:
        return DEFAULT_NAMESPACE
    return tenant.removesuffix(_ESCAPED) if _DEFAULT_LIKE.match(tenant) else tenant


def tenant_of(namespace: str) -> str:
    """Return the tenant of a namespace: the inverse of `namespace_of`."""
    if namespace == DEFAULT_NAMESPACE:
        return DEFAULT
    return namespace + _ESCAPED if _DEFAULT_LIKE.match(namespace) else namespace


# --- types ----------------------------------------------------------------------------------------------------------

_TEXT, _BINLOG = "TEXT", "BINLOG"
_FORMAT_BY_TYPE = {"AVRO": "avro", "PROTOBUF": "protobuf", "THRIFT": "thrift", "JSON": "json"}
_TYPE_BY_FORMAT = {name: word for word, name in _FORMAT_BY_TYPE.items()}


def parse_type(word: str | None) -> SchemaFormat:
    """Return the format of a schema type, Avro if none is named. Raises `UnknownFormat`."""
    name = (word or "AVRO").strip().upper()
    if name in {_TEXT, _BINLOG}:
        return SchemaFormat(OPAQUE_FORMAT, name)
    if name not in _FORMAT_BY_TYPE:
        raise UnknownFormat(f"{word!r} is not a schema type; known: {', '.join([*_FORMAT_BY_TYPE, _TEXT, _BINLOG])}")
    return SchemaFormat(_FORMAT_BY_TYPE[name])


def type_of_kind(kind: SchemaKind) -> str:
    """Return the schema type of a kind. Clients know six; every other kind is TEXT."""
    return _BINLOG if kind.custom_format == _BINLOG else _TYPE_BY_FORMAT.get(kind.format, _TEXT)


# --- numbers --------------------------------------------------------------------------------------------------------


def parse_version(segment: str) -> int:
    """Return the version number in a path segment. Raises `InvalidVersion`."""
    text = decode_segment(segment)
    if not _NUMBER.match(text) or not int(text):
        raise InvalidVersion(text)
    return int(text)


def parse_record_id(segment: str) -> int:
    """Return the record id in a path segment. Raises `ContentNotFound` for anything else."""
    text = decode_segment(segment)
    if not _NUMBER.match(text):
        raise ContentNotFound(text[:100])
    return int(text)


def record_id(version: Version) -> int | None:
    """Return the record id of a version.

    None if its number exceeds `MAX_VERSION_NUMBER`; only other dialects register such versions.
    """
    return version.record_id if version.version_number <= MAX_VERSION_NUMBER else None


# --- subjects -------------------------------------------------------------------------------------------------------


def binding_key(address: TenantAddress, subject: str) -> tuple[str, str, str, str]:
    """Return the key of the binding that is a subject of this API."""
    return address.cluster, DIALECT, subject, address.namespace


def build_binding(address: TenantAddress, subject: str, key: SubjectKey, version_number: int | None = None) -> Binding:
    """Return a subject of this API bound to a version of a schema; None follows the newest version."""
    cluster, kind, resource, role = binding_key(address, subject)
    return Binding(cluster, kind, resource, role, key, version_number)


def find_record(state: State, binding: Binding) -> Version | None:
    """Return the record of a binding.

    It is the newest version if the bound one was deleted, and None if no version is left.
    """
    subject = state.find_subject(binding.subject)
    record = find_version(subject, binding.version_number) if subject is not None and binding.version_number else None
    return record if record is not None and record.state is VersionState.ACTIVE else queries.latest_version(subject)


def is_foreign(subject: Subject) -> bool:
    """Return whether a schema comes from another dialect, so that it is found by its name without a binding."""
    live = queries.latest_version(subject) is not None
    first = subject.versions[0].attributes if subject.versions else None
    return live and (first is None or DIALECT not in (first.dialect_data or {}))


def subject_body(binding: Binding) -> api.BoundSubject:
    """Return the body of a subject from its binding."""
    return api.BoundSubject(binding.cluster, tenant_of(binding.role), binding.resource)


# --- schemas out ----------------------------------------------------------------------------------------------------


def build_subject_record(state: State, address: TenantAddress, subject: str, version: Version) -> api.SubjectRecord:
    """Return the body of a record that was found through a subject."""
    tenant = tenant_of(address.namespace)
    return api.SubjectRecord(
        subject_full_name=f"{address.cluster}/{tenant}/{subject}",
        schema_full_name=schema_name(version.subject.key),
        version=version.version_number,
        record_id=record_id(version),
        idl=_text_of(state, version),
        dependency=None,
        type=type_of_kind(version.kind),
    )


def schema_name(key: SubjectKey) -> str:
    """Return the full name of a schema."""
    return f"{tenant_of(key.namespace)}/{key.name}"


def build_schema_record(state: State, version: Version, bound: list[Binding]) -> api.RecordWithSubjects:
    """Return a version with the subjects bound to it."""
    return api.RecordWithSubjects(
        schema=schema_name(version.subject.key),
        schema_id=version.subject.record_id,
        version=version.version_number,
        record_id=record_id(version),
        idl=_text_of(state, version),
        dependency=None,
        subjects=[subject_body(row) for row in sorted(bound, key=lambda row: row.key)],
        type=type_of_kind(version.kind),
    )


def schema_body(state: State, rows: list[Version], records: list[api.RecordWithSubjects]) -> api.SchemaDescription:
    """Return a schema with its active versions, at least one."""
    first, newest = rows[0], rows[-1]
    key, policy = newest.subject.key, queries.policy_for(state, newest.subject.key)
    tenant = tenant_of(key.namespace)
    return api.SchemaDescription(
        api.TenantSchema(tenant, key.name),
        api.SchemaAudit(desc_of(newest), _created_by(first), first.at, _created_by(newest), newest.at),
        api.SchemaMeta(
            type=type_of_kind(newest.kind),
            tenant=tenant,
            schema_name=key.name,
            compatibility=policy.nearest_name,
            owner=owner_of(newest),
            unique_id=newest.subject.record_id,
            stele_compatibility=exact_policy_json(policy),
        ),
        api.SchemaDetails(records),
    )


def exact_policy_json(policy: Policy) -> PolicyJson | None:
    """Return a policy in full if no compatibility level expresses it, else None."""
    return PolicyJson.when_unnamed(policy)


def owner_of(version: Version | None) -> str:
    """Return the owner that a version was sent with."""
    extra = version.attributes if version is not None else None
    return str(((extra.dialect_data if extra is not None else None) or {}).get(DIALECT, {}).get("owner", ""))


def desc_of(version: Version | None) -> str:
    """Return the description that a version was sent with."""
    return version.attributes.description if version is not None and version.attributes is not None else ""


def _created_by(version: Version) -> str:
    return version.attributes.created_by if version.attributes is not None else ""


def _text_of(state: State, version: Version) -> str:
    """Return the text of a version. Bytes that are not UTF-8, which only other dialects register, are replaced."""
    return state.get_text(version.content).decode("utf-8", "replace")
