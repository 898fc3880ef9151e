"""The API's words into the core's and back. Pure.

A tenant is a space, a schema a subject of the core, a record a version. A subject of this API is a binding: of
`cluster/tenant/subject` to one record. What another dialect registered has no such binding; it is found under its own
name, in every cluster, and then means its newest version, as topics are named after subjects elsewhere.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from stele.apis.http.paths import decode_segment
from stele.apis.rocketmq import entities as api
from stele.core import queries
from stele.core.model import (
    DEFAULT_NAMESPACE,
    RECORD_ID_VERSION_BITS,
    Binding,
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

DIALECT = "rocketmq"
"""Under which name versions keep what only this API knows, and the kind of its bindings."""
DEFAULT = "default"
"""Name of the cluster and the tenant of paths that name none; as a tenant, the default space."""
OPAQUE = "opaque"
MOST_VERSIONS = (1 << RECORD_ID_VERSION_BITS) - 1
"""The last version that has a record id."""

_ESCAPED = "~"
_DEFAULT_LIKE = re.compile(rf"{DEFAULT}~*\Z")
_NUMBER = re.compile(r"[0-9]{1,19}\Z")

# --- places ---------------------------------------------------------------------------------------------------------


class Place(NamedTuple):
    """The cluster and the space of a request."""

    cluster: str
    space: str


def place_of(cluster: str, tenant: str) -> Place:
    """The place two path segments name."""
    return Place(decode_segment(cluster), space_of(decode_segment(tenant)))


def space_of(tenant: str) -> str:
    """The space of a tenant; one that is itself called `default` elsewhere is `default~` here, and so on."""
    if tenant == DEFAULT:
        return DEFAULT_NAMESPACE
    return tenant.removesuffix(_ESCAPED) if _DEFAULT_LIKE.match(tenant) else tenant


def tenant_of(space: str) -> str:
    """Inverse of `space_of`."""
    if space == DEFAULT_NAMESPACE:
        return DEFAULT
    return space + _ESCAPED if _DEFAULT_LIKE.match(space) else space


# --- types ----------------------------------------------------------------------------------------------------------

_TEXT, _BINLOG = "TEXT", "BINLOG"
_FORMATS = {"AVRO": "avro", "PROTOBUF": "protobuf", "THRIFT": "thrift", "JSON": "json"}
_TYPES = {name: word for word, name in _FORMATS.items()}


class Language(NamedTuple):
    """A format of the core, and the name of its own that an opaque one has."""

    format: str
    custom_format: str = ""


def language_in(word: str | None) -> Language:
    """The language of a schema type, Avro where none is named. Raises `UnknownFormat`."""
    name = (word or "AVRO").strip().upper()
    if name in {_TEXT, _BINLOG}:
        return Language(OPAQUE, name)
    if name not in _FORMATS:
        raise UnknownFormat(f"{word!r} is no schema type; known: {', '.join([*_FORMATS, _TEXT, _BINLOG])}")
    return Language(_FORMATS[name])


def type_out(lane: SchemaKind) -> str:
    """The schema type of a lane: clients know six, and what is none of the others is text."""
    return _BINLOG if lane.custom_format == _BINLOG else _TYPES.get(lane.format, _TEXT)


# --- numbers --------------------------------------------------------------------------------------------------------


def version_in(segment: str) -> int:
    """The version a path segment names. Raises `InvalidVersion`."""
    text = decode_segment(segment)
    if not _NUMBER.match(text) or not int(text):
        raise InvalidVersion(text)
    return int(text)


def record_id_in(segment: str) -> int:
    """The record id a path segment names. Raises `ContentNotFound`: nothing has any other id."""
    text = decode_segment(segment)
    if not _NUMBER.match(text):
        raise ContentNotFound(text[:100])
    return int(text)


def record_id(version: Version) -> int | None:
    """The record id of a version; none beyond the last one that has one, which only other dialects register."""
    return version.record_id if version.version_number <= MOST_VERSIONS else None


# --- subjects -------------------------------------------------------------------------------------------------------


def binding_key(place: Place, subject: str) -> tuple[str, str, str, str]:
    """The key of the binding a subject of this API is."""
    return place.cluster, DIALECT, subject, place.space


def binding_of(place: Place, subject: str, key: SubjectKey, ordinal: int | None = None) -> Binding:
    """A subject of this API bound to a version of a schema, or (None) to whichever is the newest."""
    cluster, kind, resource, role = binding_key(place, subject)
    return Binding(cluster, kind, resource, role, key, ordinal)


def record_of(state: State, binding: Binding) -> Version | None:
    """The record a binding leads to: where its version was deleted, in another dialect perhaps, the newest one."""
    subject = state.find_subject(binding.subject)
    found = find_version(subject, binding.version_number) if subject is not None and binding.version_number else None
    return found if found is not None and found.state is VersionState.ACTIVE else queries.latest_version(subject)


def is_foreign(subject: Subject) -> bool:
    """Whether a schema comes from another dialect, so that it is found under its own name without a binding."""
    live = queries.latest_version(subject) is not None
    first = subject.versions[0].attributes if subject.versions else None
    return live and (first is None or DIALECT not in (first.dialect_data or {}))


def subject_out(binding: Binding) -> api.Subject:
    """A binding as the subject it is."""
    return api.Subject(binding.cluster, tenant_of(binding.role), binding.resource)


# --- schemas out ----------------------------------------------------------------------------------------------------


def get_schema(state: State, place: Place, subject: str, version: Version) -> api.GetSchema:
    """A record as a subject sees it."""
    tenant = tenant_of(place.space)
    return api.GetSchema(
        subject_full_name=f"{place.cluster}/{tenant}/{subject}",
        schema_full_name=schema_name(version.subject.key),
        version=version.version_number,
        record_id=record_id(version),
        idl=_text(state, version),
        dependency=None,
        type=type_out(version.kind),
    )


def schema_name(key: SubjectKey) -> str:
    """The full name of a schema."""
    return f"{tenant_of(key.namespace)}/{key.name}"


def schema_record(state: State, version: Version, bound: list[Binding]) -> api.SchemaRecord:
    """A version with the subjects bound to it."""
    return api.SchemaRecord(
        schema=schema_name(version.subject.key),
        schema_id=version.subject.record_id,
        version=version.version_number,
        record_id=record_id(version),
        idl=_text(state, version),
        dependency=None,
        subjects=[subject_out(row) for row in sorted(bound, key=lambda row: row.key)],
        type=type_out(version.kind),
    )


def schema_out(state: State, rows: list[Version], records: list[api.SchemaRecord]) -> api.Schema:
    """A schema with its live versions, of which there is one at least."""
    first, newest = rows[0], rows[-1]
    key, policy = newest.subject.key, queries.policy_for(state, newest.subject.key)
    tenant = tenant_of(key.namespace)
    return api.Schema(
        api.QualifiedName(tenant, key.name),
        api.Audit(desc_of(newest), _author(first), first.at, _author(newest), newest.at),
        api.Meta(
            type=type_out(newest.kind),
            tenant=tenant,
            schema_name=key.name,
            compatibility=policy.nearest_name,
            owner=owner_of(newest),
            unique_id=newest.subject.record_id,
            stele_compatibility=exact(policy),
        ),
        api.Details(records),
    )


def exact(policy: Policy) -> PolicyJson | None:
    """A policy in full where no level says it."""
    return PolicyJson.from_policy(policy) if policy.exact_name is None else None


def owner_of(version: Version | None) -> str:
    """The owner a version was sent with."""
    extra = version.attributes if version is not None else None
    return str(((extra.dialect_data if extra is not None else None) or {}).get(DIALECT, {}).get("owner", ""))


def desc_of(version: Version | None) -> str:
    """The description a version was sent with."""
    return version.attributes.description if version is not None and version.attributes is not None else ""


def _author(version: Version) -> str:
    return version.attributes.created_by if version.attributes is not None else ""


def _text(state: State, version: Version) -> str:
    """The text; bytes that are no UTF-8 can only come from another dialect, and read badly."""
    return state.get_text(version.content).decode("utf-8", "replace")
