"""Translates between the terms of the API and those of the core: ids, groups, formats, headers, policies, times. Pure.

A group is a namespace, a schema a subject, and `Schema-Id` the uid of a version. Policies are no part of the API: a
group shows the common name of its policy, or the nearest stricter name with the exact policy beside it.

The API does not fix the names of formats, so common spellings of installed formats are accepted. Any other name is a
custom format, whose documents are stored without being parsed.

An id is one path segment without a colon (RFC 3986, segment-nz-nc), percent-encoded in paths. Names that other dialects
registered and that break this rule are listed and can be read; a slash is written as `%2F`.
"""

from __future__ import annotations

import re
from collections.abc import Container
from typing import NamedTuple
from urllib.parse import quote, unquote_to_bytes

from msgspec import UNSET, UnsetType

from stele.apis.cncf import models as api
from stele.apis.http.media_types import bare_media_type
from stele.apis.http.requests import EMPTY_SEGMENT, decode_segment
from stele.core import queries
from stele.core.decide.decision import check_name
from stele.core.model import (
    MAX_INT32,
    OPAQUE_FORMAT,
    Namespace,
    SchemaFormat,
    SchemaKind,
    SettingsLevel,
    Subject,
    Version,
)
from stele.core.policy import ALLOW_ANY, Policy, find_policy
from stele.core.policy_json import PolicyJson
from stele.core.state import State
from stele.errors import InvalidName, InvalidRequest, UnknownPolicy, VersionNotFound
from stele.protocol.cncf import group_id_of, own_data
from stele.service.times import format_time

MAX_DESCRIPTION_LENGTH = 2000
"""Most characters of a description. Other dialects may register longer ones, which are cut in headers."""

# --- ids --------------------------------------------------------------------------------------------------------------

_NUMBER = re.compile(r"[0-9]{1,10}\Z")
_UNREADABLE = "\ufffd"
_MAX_ID_LENGTH = 512
"""Most characters of an id."""


def decode_id(segment: str) -> str:
    """Return the id in a path segment. Raises `InvalidName` for an empty id or one that is no text."""
    name = "" if segment == EMPTY_SEGMENT else decode_segment(segment)
    if not name:
        raise InvalidName(name, "is not an id")
    if _UNREADABLE in name:
        raise InvalidName(name, "is not UTF-8")
    return check_name(name)


def check_new_id(name: str) -> str:
    """Return the id if a new group or schema may have it. Raises `InvalidName`."""
    if not name.strip(". "):
        raise InvalidName(name, "is not a valid id: it has only dots and blanks")
    if "/" in name or ":" in name:
        raise InvalidName(name, "is not a valid id: it must be one path segment without a colon")
    if len(name) > _MAX_ID_LENGTH:
        raise InvalidName(name[:40] + "…", f"is not a valid id: it has more than {_MAX_ID_LENGTH} characters")
    return name


def parse_version_number(segment: str) -> int:
    """Return the version number in a path segment. Raises `VersionNotFound` for anything else."""
    if not _NUMBER.match(segment) or not 0 < int(segment) <= MAX_INT32:
        raise VersionNotFound(decode_segment(segment))
    return int(segment)


# --- texts in headers -----------------------------------------------------------------------------------------------

_PRINTABLE = "".join(chr(code) for code in range(0x20, 0x7F) if chr(code) != "%")


def decode_header(raw: str) -> str:
    """Return the text of a header: UTF-8, plain or percent-encoded. Raises `InvalidRequest` for other bytes."""
    try:
        return unquote_to_bytes(raw.encode("latin-1")).decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidRequest("a header is not UTF-8, plain or percent-encoded") from None


def encode_header(text: str) -> str:
    """Return a text as printable ASCII for a header: the inverse of `decode_header`."""
    body = quote(text[:MAX_DESCRIPTION_LENGTH], safe=_PRINTABLE)
    inner = body.strip(" ")
    start = len(body) - len(body.lstrip(" "))
    return "%20" * start + inner + "%20" * (len(body) - start - len(inner)) if inner else "%20" * len(body)


def check_description(text: str) -> str:
    """Return a description from a request. Raises `InvalidRequest` if it is too long or no text."""
    if len(text) > MAX_DESCRIPTION_LENGTH:
        raise InvalidRequest(f"a description may have at most {MAX_DESCRIPTION_LENGTH} characters")
    if any(ord(char) < 0x20 and char not in "\t\r\n" for char in text) or "\ufffd" in text:
        raise InvalidRequest("a description must not contain control characters")
    return text


# --- what is kept beside --------------------------------------------------------------------------------------------


def format_data(schema_format: SchemaFormat, written: str) -> dict[str, str]:
    """Return what this dialect stores of a format: its name in the request and the name of a custom format."""
    own = {"format": written, "variety": schema_format.custom_format}
    return {name: value for name, value in own.items() if value}


def format_of_group(namespace: Namespace) -> SchemaFormat | None:
    """Return the format of all schemas of a group; None where each schema has its own."""
    return (
        SchemaFormat(namespace.format, own_data(namespace.dialect_data).get("variety", ""))
        if namespace.format
        else None
    )


# --- groups ---------------------------------------------------------------------------------------------------------


class GroupUpdate(NamedTuple):
    """Attributes that a request gives a group.

    Attributes:
        schema_format: Format of all its schemas; None: each has its own.
        format_as_written: Name of the format in the request; '' where the flavour has a fixed list of formats.
        description: Description; None leaves it as it is.
        properties: Further attributes.
        policy: Policy for new versions; None leaves it as it is.
    """

    schema_format: SchemaFormat | None
    format_as_written: str
    description: str | None
    properties: dict[str, str] | None
    policy: Policy | None


def parse_group(body: api.GroupAttributes, installed: Container[str]) -> GroupUpdate:
    """Return the attributes in a request for a group. Raises `InvalidRequest`, `InvalidName`, `UnknownPolicy`."""
    written = body.format or ""
    if body.format == "":
        raise InvalidRequest("a format must not be empty; leave it out if each schema has its own")
    schema_format = parse_format_name(written, installed) if written else None
    policy = find_policy(body.compatibility) if body.compatibility is not None else None
    description = check_description(body.description or "")
    return GroupUpdate(schema_format, written, description, body.group_properties, _exact(body.exactly, policy))


def group_body(state: State, namespace: Namespace, installed: Container[str]) -> api.SchemaGroup:
    """Return the body that describes a group."""
    schema_format, policy = format_of_group(namespace), group_policy(state, namespace)
    return api.SchemaGroup(
        group_id_of(namespace.name),
        format_name(schema_format, own_data(namespace.dialect_data).get("format", ""), installed)
        if schema_format is not None
        else UNSET,
        namespace.description or UNSET,
        format_time(namespace.at),
        format_time(max(namespace.changed, namespace.at)),
        dict(namespace.labels) if namespace.labels else UNSET,
        policy.nearest_name if policy is not None else UNSET,
        exact_policy_json(policy),
    )


def group_policy(state: State, namespace: Namespace) -> Policy | None:
    """Return the policy of a group, its own or the registry's; None where neither has one."""
    return queries.settings_for(state, SettingsLevel(namespace.name)).policy


def new_group_policy(state: State, name: str) -> Policy | None:
    """Return the policy of a new group whose request has none.

    It is ALLOW_ANY, or None where the namespace or the registry has a policy already.
    """
    return None if queries.settings_for(state, SettingsLevel(name)).policy is not None else ALLOW_ANY


def exact_policy_json(policy: Policy | None) -> PolicyJson | UnsetType:
    """Return a policy in full if its common name is only the nearest stricter one, else UNSET."""
    exact = PolicyJson.when_unnamed(policy) if policy is not None else None
    return UNSET if exact is None else exact


def _exact(form: PolicyJson | None, named: Policy | None) -> Policy | None:
    return form.to_policy if form is not None else named


# --- groups in the Azure flavour ------------------------------------------------------------------------------------

_TYPES = {"": "Custom", OPAQUE_FORMAT: "Custom"}
_WORDS = {name.replace("_", "").lower(): name for name in ("NONE", "BACKWARD", "FORWARD", "FULL")}
_WORDS |= {f"{word}transitive": f"{name}_TRANSITIVE" for word, name in _WORDS.items() if name != "NONE"}


def parse_azure_group(body: api.AzureGroupAttributes, installed: Container[str]) -> GroupUpdate:
    """Return the attributes in an Azure request for a group. Raises `InvalidRequest`, `UnknownPolicy`."""
    written = body.type.strip()
    schema_format = parse_format_name(written, installed)
    if schema_format.custom_format:
        raise InvalidRequest(f"{written!r} is not a schema type: use Avro, Json, Protobuf or Custom")
    policy = None
    if body.compatibility is not None:
        word = body.compatibility.strip().lower()
        if word not in _WORDS:
            raise UnknownPolicy(f"{body.compatibility!r} is not a compatibility: use None, Backward or Forward")
        policy = find_policy(_WORDS[word])
    return GroupUpdate(schema_format, "", None, body.properties, _exact(body.exactly, policy))


def azure_group_body(state: State, namespace: Namespace) -> api.AzureGroup:
    """Return the Azure body that describes a group.

    A policy other than the three Azure has is named as in other dialects.
    """
    policy = group_policy(state, namespace) or ALLOW_ANY
    return api.AzureGroup(
        group_id_of(namespace.name),
        _TYPES.get(namespace.format, namespace.format.title()),
        policy.nearest_name.title().replace("_", ""),
        format_time(namespace.at),
        format_time(max(namespace.changed, namespace.at)),
        etag_of(namespace),
        dict(namespace.labels or {}),
        exact_policy_json(policy),
    )


def etag_of(namespace: Namespace) -> str:
    """Return the entity tag of a group. It changes whenever the description of the group changes."""
    return f'"{namespace.at:x}-{namespace.epoch}"'


# --- versions -------------------------------------------------------------------------------------------------------


def format_uid(version: Version) -> str:
    """Return the id of a version: 32 hexadecimal digits."""
    return f"{version.uid:032x}"


def updated_at(subject: Subject) -> int:
    """Return when a schema last got or lost a version or a new description (milliseconds since 1970)."""
    return max(subject.at, subject.changed_at, *(row.at for row in subject.versions[-1:]))


def origin_uri(version: Version) -> str:
    """Return the id a version was registered with; '' when its path is its id."""
    return (version.attributes.origin_uri if version.attributes is not None else None) or ""


CUSTOM = "custom"
"""Name of the format for documents that are stored without being parsed."""

_MAX_FORMAT_LENGTH = 200
_MAX_TYPE_LENGTH = 500
"""Most characters of a content type. `_MAX_FORMAT_LENGTH` is the most characters of a format's name."""

_ALIASES = {
    "jsonschema": "json",
    "proto": "protobuf",
    "xmlschema": "xsd",
    CUSTOM: OPAQUE_FORMAT,
}
_OUTPUT_NAMES = {"json": "json-schema", OPAQUE_FORMAT: CUSTOM}
_MEDIA_TYPES = {
    "application/vnd.apache.avro+json": "avro",
    "application/vnd.apache.avro.schema+json": "avro",
    "application/schema+json": "json",
    "text/vnd.ms.protobuf": "protobuf",
    "application/protobuf": "protobuf",
    "application/vnd.google.protobuf": "protobuf",
    "application/x-protobuf": "protobuf",
    "text/x-protobuf": "protobuf",
    "application/xsd+xml": "xsd",
    "application/x-thrift": "thrift",
    "text/x-thrift": "thrift",
}
"""Format by media type, for media types with one meaning. `application/json` and similar ones are not here."""

_CONTENT_TYPES = {
    "avro": "application/json;format=avro",
    "json": "application/schema+json",
    "xsd": "application/xml;format=xsd",
    OPAQUE_FORMAT: "application/octet-stream",
}
_AZURE_TYPES = {
    "avro": "application/json; serialization=Avro",
    "json": "application/json; serialization=Json",
    "protobuf": "text/vnd.ms.protobuf",
}
_AZURE_CUSTOM = "text/plain; charset=utf-8"

_PARAMETER = re.compile(r';\s*(?:format|serialization)\s*=\s*"?([^";]*)"?', re.IGNORECASE)
_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1f]")
_TYPE = re.compile(r"[\x20-\x7e\xa0-\xff]+\Z")


def parse_format_name(name: str, installed: Container[str]) -> SchemaFormat:
    """Return the format of a name such as `Avro`, `avro/1.11`, `json-schema`, `xsd11`, `proto3`, or a custom one.

    Raises `InvalidRequest` for a name that is empty or too long, `InvalidName`.
    """
    text = check_name(name.strip())
    if not text or len(text) > _MAX_FORMAT_LENGTH:
        raise InvalidRequest(f"the name of a format must have 1 to {_MAX_FORMAT_LENGTH} characters")
    word = re.sub(r"[-_ ]", "", text.partition("/")[0].lower()).rstrip("0123456789.")
    known = _ALIASES.get(word, word)
    return SchemaFormat(known) if known in installed else SchemaFormat(OPAQUE_FORMAT, text)


def format_of_content_type(content_type: str, installed: Container[str]) -> SchemaFormat | None:
    """Return the format a content type names by a `format` or `serialization` parameter or by itself, else None."""
    parameter = _PARAMETER.search(content_type)
    named = _MEDIA_TYPES.get(bare_media_type(content_type), "")
    for name in (parameter[1] if parameter is not None else "", named):
        if name.strip() and len(name) <= _MAX_FORMAT_LENGTH:
            schema_format = parse_format_name(name, installed)
            if not schema_format.custom_format:
                return schema_format
    return None


def format_name(schema_format: SchemaFormat, written: str, installed: Container[str]) -> str:
    """Return the name of a format as `written`, or its usual name if `written` now means another format."""
    if written and parse_format_name(written, installed) == schema_format:
        return written
    return schema_format.custom_format or _OUTPUT_NAMES.get(schema_format.format, schema_format.format)


def check_content_type(header: str) -> str:
    """Return a Content-Type header to store. Raises `InvalidRequest` for one that cannot be sent back."""
    if header and (len(header) > _MAX_TYPE_LENGTH or not _TYPE.match(header)):
        raise InvalidRequest(f"the content type must be one line of at most {_MAX_TYPE_LENGTH} printable characters")
    return header


def default_content_type(kind: SchemaKind, text: bytes) -> str:
    """Return the content type of a document that was sent without one."""
    if kind.format in _CONTENT_TYPES:
        return _CONTENT_TYPES[kind.format]
    if _BINARY.search(text):
        return f"application/octet-stream;format={kind.format}"
    return f"text/plain;charset=utf-8;format={kind.format}"


def azure_content_type(kind: SchemaKind, own_data: str) -> str:
    """Return the content type in Azure's spelling, or the stored one if it differs only in blanks or case."""
    own = _AZURE_TYPES.get(kind.format, _AZURE_CUSTOM)
    return own_data if _without_blanks(own_data) == _without_blanks(own) else own


def _without_blanks(content_type: str) -> str:
    return content_type.replace(" ", "").lower()
