r"""Translates between the terms of the API and those of the core: tenants, ids, schemas, policies. Pure.

| tenant            | namespace         | namespace of the core |
|-------------------|-------------------|-----------------------|
| absent, `default` | absent, `default` | the default one       |
| t                 | absent, `default` | `t`                   |
| t                 | n                 | `t\|n`                |
| absent, `default` | n                 | `\|n`                 |

A namespace of the core that is itself called `default` is the tenant `default~`, and so on.

Members that only this API has (app, coordinate, status, validator, serialization …) are stored with subjects and
versions under the name of the dialect, and returned unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from stele.apis.http.requests import WrongShape
from stele.apis.openschema import models as api
from stele.core import queries
from stele.core.model import DEFAULT_NAMESPACE, MAX_INT32, OPAQUE_FORMAT, SchemaKind, SettingsLevel, Subject, Version
from stele.core.policy import Policy, find_policy
from stele.core.policy_json import PolicyJson
from stele.core.state import State
from stele.errors import ContentNotFound, InvalidName, InvalidVersion, MalformedSchema
from stele.service.visibility import is_subject_shown

DEFAULT = "default"

_BETWEEN = "|"
_ESCAPED = "~"
_DEFAULT_LIKE = re.compile(rf"{DEFAULT}~*\Z")
_SCHEMA_ID = re.compile(r"[1-9][0-9]{0,9}\Z")


class Tenancy(NamedTuple):
    """A tenant and a namespace as responses show them."""

    tenant: str
    namespace: str


def requested_namespace(tenant: str, namespace: str) -> str | None:
    """Return the core's namespace of a request; None if it names no tenant and no namespace.

    Raises `InvalidName`.
    """
    return namespace_of(tenant, namespace) if tenant or namespace else None


def namespace_of(tenant: str, namespace: str) -> str:
    """Return the core's namespace of a tenant's namespace. Raises `InvalidName` for names with a `|`."""
    for name in (tenant, namespace):
        if _BETWEEN in name:
            raise InvalidName(name, f"has a {_BETWEEN!r}, which is not allowed in names of tenants and namespaces")
    first, second = _stored_name(tenant), _stored_name(namespace)
    return f"{first}{_BETWEEN}{second}" if second else first


def tenancy_of(namespace: str) -> Tenancy:
    """Return tenant and namespace of a core namespace: the inverse of `namespace_of`."""
    tenant, _, namespace = namespace.partition(_BETWEEN)
    return Tenancy(_display_name(tenant), _display_name(namespace))


def _stored_name(name: str) -> str:
    if name in {"", DEFAULT}:
        return ""
    return name.removesuffix(_ESCAPED) if _DEFAULT_LIKE.match(name) else name


def _display_name(name: str) -> str:
    if not name:
        return DEFAULT
    return name + _ESCAPED if _DEFAULT_LIKE.match(name) else name


def format_schema_id(namespace: str, schema_id: int) -> str:
    """Return the id of a schema, unique in the registry: its number, after its namespace unless that is the default."""
    return f"{namespace}:{schema_id}" if namespace != DEFAULT_NAMESPACE else str(schema_id)


def parse_schema_id(text: str, requested_namespace: str | None) -> tuple[str, int]:
    """Return namespace and number of an id; an id without a namespace is one of the requested namespace.

    Raises `ContentNotFound`.
    """
    namespace, colon, number = text.rpartition(":")
    if not _SCHEMA_ID.match(number) or int(number) > MAX_INT32:
        raise ContentNotFound(text[:100])
    return namespace if colon else requested_namespace or DEFAULT_NAMESPACE, int(number)


DIALECT = "openschema"
"""Key of the data of this dialect in subjects, settings and versions."""
LATEST = "latest"

_FORMATS = {
    "AVRO": "avro",
    "JSON": "json",
    "PB": "protobuf",
    "PROTOBUF": "protobuf",
    "THRIFT": "thrift",
    "XSD": "xsd",
}
_SERIALIZATION_NAMES = {"avro": "AVRO", "json": "JSON", "protobuf": "PB"}
_JSON_FORMATS = {"avro", "json"}
"""Formats whose schemas are JSON."""
_WITHOUT_DEFINITION = {"NONE", "INT", "LONG", "STRING", "MAP"}
"""Serializations that need no definition."""
_NUMBER = re.compile(r"[1-9][0-9]{0,9}\Z")

# --- schemas in -----------------------------------------------------------------------------------------------------


class SubmittedSchema(NamedTuple):
    """A schema from a request: format, text, and whether the definition was JSON itself rather than a string."""

    format: str
    custom_format: str
    text: bytes
    structured: bool


def parse_schema(schema_input: api.SchemaInput, newest: SchemaKind | None) -> SubmittedSchema:
    """Return the schema in a request.

    Its format is the one named, else that of the newest version, else Avro. If the definition is JSON itself but the
    format is text, such as Protobuf, it is stored without being parsed.

    Raises:
        WrongShape: The definition is missing.
        MalformedSchema: The definition is no text.
    """
    word = (schema_input.serialization or "").strip().upper()
    raw = schema_input.schema_definition
    if isinstance(raw, UnsetType) or bytes(raw).strip() == b"null":
        if word not in _WITHOUT_DEFINITION:
            raise WrongShape("schemaDefinition is missing")
        return SubmittedSchema(OPAQUE_FORMAT, word, b"null", structured=True)
    text, structured = parse_definition(bytes(raw))
    if not word and newest is not None:
        return SubmittedSchema(newest.format, newest.custom_format, text, structured)
    name = _FORMATS.get(word or "AVRO", OPAQUE_FORMAT)
    if structured and name not in _JSON_FORMATS:
        name = OPAQUE_FORMAT
    return SubmittedSchema(name, word if name == OPAQUE_FORMAT else "", text, structured)


def parse_definition(raw: bytes) -> tuple[bytes, bool]:
    """Return the text of a definition in JSON, and whether it is JSON itself. Raises `MalformedSchema`."""
    if not raw.lstrip().startswith(b'"'):
        return raw.strip(), True
    try:
        return msgspec.json.decode(raw, type=str).encode(), False
    except msgspec.DecodeError as error:
        raise MalformedSchema(f"the definition is not text: {error}") from None


def parse_checked_schema(raw: bytes) -> api.SchemaInput:
    """Return the schema to check: an object with a schemaDefinition, or only the definition of a schema."""
    try:
        whole = msgspec.json.decode(raw, type=api.SchemaInput)
    except msgspec.DecodeError:
        whole = api.SchemaInput()
    return whole if not isinstance(whole.schema_definition, UnsetType) else api.SchemaInput(msgspec.Raw(raw))


def schema_data(schema_input: api.SchemaInput, submitted: SubmittedSchema) -> dict[str, Any]:
    """Return the members of a schema that a version stores for this API only."""
    data = {
        "name": schema_input.name,
        "serialization": schema_input.serialization,
        "validator": schema_input.validator,
        "structured": submitted.structured or None,
    }
    return {name: value for name, value in data.items() if value}


def parse_version(text: str) -> int | None:
    """Return the version number in a path; None is the latest. Raises `InvalidVersion`."""
    if text == LATEST:
        return None
    if not _NUMBER.match(text) or int(text) > MAX_INT32:
        raise InvalidVersion(text[:100])
    return int(text)


# --- schemas out ----------------------------------------------------------------------------------------------------


def schema_body(state: State, version: Version) -> api.SchemaBody:
    """Return the body of a version."""
    own = _own_data(version.attributes.dialect_data if version.attributes is not None else None)
    text = state.get_text(version.content)
    structured = own.get("structured") and text
    return api.SchemaBody(
        name=own.get("name") or version.kind.type,
        id=format_schema_id(version.schema.namespace, version.schema.schema_id),
        comment=version.attributes.description if version.attributes is not None else "",
        serialization=own.get("serialization") or serialization_name(version.kind),
        schema_definition=msgspec.Raw(text) if structured else text.decode("utf-8", "replace"),
        validator=own.get("validator") or "",
        version=version.version_number,
    )


def serialization_name(kind: SchemaKind) -> str:
    """Return the serialization of a schema: `AVRO`, `JSON`, `PB`, or the name its author gave it."""
    return (
        kind.custom_format
        or _SERIALIZATION_NAMES.get(kind.format)
        or ("USER-DEFINED" if kind.format == OPAQUE_FORMAT else kind.format.upper())
    )


# --- subjects -------------------------------------------------------------------------------------------------------


def subject_body(state: State, subject: Subject) -> api.SubjectBody:
    """Return the body of a subject."""
    own, policy = _own_data(subject.dialect_data), queries.policy_for(state, subject.key)
    place = tenancy_of(subject.key.namespace)
    return api.SubjectBody(
        subject=subject.key.name,
        namespace=place.namespace,
        tenant=place.tenant,
        app=own.get("app", ""),
        description=subject.description,
        compatibility=policy.nearest_name,
        coordinate=own.get("coordinate", ""),
        status=own.get("status", "released"),
        created_time=_format_time(subject.at),
        last_modified_time=_format_time(modified_at(state, subject)),
        stele_compatibility=exact_policy_json(policy),
    )


def with_schema(subject: api.SubjectBody, version: Version, schema: api.SchemaBody) -> api.SubjectWithSchema:
    """Return the body of a subject with one of its schemas."""
    members = {name: getattr(subject, name) for name in subject.__struct_fields__}
    return api.SubjectWithSchema(**members, format=serialization_name(version.kind), schema=schema)


def subject_data(before: Mapping[str, Any] | None, subject_input: api.SubjectInput, at: int) -> dict[str, Any]:
    """Return the data of all dialects for a subject, with the members in a request changed and the others kept."""
    own = {
        "app": subject_input.app,
        "coordinate": subject_input.coordinate,
        "status": subject_input.status,
        "modified": at,
    }
    return {**(before or {}), DIALECT: {**_own_data(before), **{k: v for k, v in own.items() if v is not None}}}


def modified_at(state: State, subject: Subject) -> int:
    """Return when a subject, its compatibility or its schemas last changed (milliseconds since 1970)."""
    settings = state.settings_at(SettingsLevel(*subject.key))
    dialect_data = (_own_data(subject.dialect_data), _own_data(settings.dialect_data if settings is not None else None))
    times = (subject.at, *(row.at for row in subject.versions), *(own.get("modified", 0) for own in dialect_data))
    return int(max(times))


def config_body(policy: Policy) -> api.ConfigBody:
    """Return a policy as a compatibility level, with the policy in full if the level is only the nearest one."""
    return api.ConfigBody(policy.nearest_name, exact_policy_json(policy))


def exact_policy_json(policy: Policy) -> PolicyJson | UnsetType:
    """Return a policy in full if no compatibility level expresses it, else UNSET."""
    exact = PolicyJson.when_unnamed(policy)
    return UNSET if exact is None else exact


def parse_policy(word: str | None) -> Policy | None:
    """Return the policy of a compatibility level, None if none is given. Raises `UnknownPolicy`."""
    return find_policy(word) if word else None


def is_visible(subject: Subject) -> bool:
    """Return whether this dialect shows a subject."""
    return is_subject_shown(subject, DIALECT)


def _own_data(dialect_data: Mapping[str, Any] | None) -> Mapping[str, Any]:
    own: Mapping[str, Any] = (dialect_data or {}).get(DIALECT) or {}
    return own


def _format_time(milliseconds: int) -> str:
    moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return moment.replace(tzinfo=None).isoformat(timespec="milliseconds")
