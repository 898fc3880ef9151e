"""The API's words into the core's and back: groups, attributes in headers, policies, times. Pure.

A group is a space, a schema a subject, a version number the ordinal; `Schema-Id` is the version's uid. A format that is
not read here is kept under its name. Policies are no part of the API: a group shows its own by common name, and one
that has no name exactly beside the nearest stricter one.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import quote, unquote_to_bytes

from msgspec import UNSET, UnsetType

from stele.apis.cncf import entities as api
from stele.apis.cncf.languages import OPAQUE, Language, language_in, name_of
from stele.apis.cncf.names import group_of
from stele.core import queries
from stele.core.model import Namespace, SettingsLevel, Subject, Version
from stele.core.policy import ALLOW_ANY, Policy, find_policy
from stele.core.policy_json import PolicyJson
from stele.core.state import State
from stele.errors import InvalidRequest, UnknownPolicy

DIALECT = "cncf"
"""Name of the dialect in the history, and of what it keeps beside what the core has a place for."""

LONGEST_TEXT = 2000
"""Characters of a description; longer ones of other dialects are cut in headers."""

# --- texts in headers -----------------------------------------------------------------------------------------------

_PRINTABLE = "".join(chr(code) for code in range(0x20, 0x7F) if chr(code) != "%")


def header_in(raw: str) -> str:
    """The text of a header: UTF-8, percent-encoded where need be. Raises `InvalidRequest` for what is no UTF-8."""
    try:
        return unquote_to_bytes(raw.encode("latin-1")).decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidRequest("a header is not UTF-8, plain or percent-encoded") from None


def header_out(text: str) -> str:
    """Inverse of `header_in`, in printable ASCII."""
    body = quote(text[:LONGEST_TEXT], safe=_PRINTABLE)
    inner = body.strip(" ")
    start = len(body) - len(body.lstrip(" "))
    return "%20" * start + inner + "%20" * (len(body) - start - len(inner)) if inner else "%20" * len(body)


def text_in(text: str) -> str:
    """A description as requests have it. Raises `InvalidRequest`."""
    if len(text) > LONGEST_TEXT:
        raise InvalidRequest(f"a description has at most {LONGEST_TEXT} characters")
    if any(ord(char) < 0x20 and char not in "\t\r\n" for char in text) or "\ufffd" in text:
        raise InvalidRequest("a description is text, without control characters")
    return text


def time_out(milliseconds: int) -> str:
    """A time, in UTC."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


# --- what is kept beside --------------------------------------------------------------------------------------------


def kept(ext: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """What this dialect keeps of a space or subject: `format` as it was written, `variety`, `authority`."""
    return (ext or {}).get(DIALECT) or {}


def kept_of(language: Language, written: str) -> dict[str, str]:
    """What to keep of a format beside the core's name of it."""
    own = {"format": written, "variety": language.custom_format}
    return {name: value for name, value in own.items() if value}


def authority_of(subject: Subject) -> str:
    """The authority of a schema, '' for the base URI of the API."""
    return str(kept(subject.dialect_data).get("authority", ""))


def language_of_group(space: Namespace) -> Language | None:
    """The format of all schemas of a group; None when each has its own."""
    return Language(space.format, kept(space.dialect_data).get("variety", "")) if space.format else None


# --- groups ---------------------------------------------------------------------------------------------------------


class GroupWish(NamedTuple):
    """A group as a request wants it; description and policy None leave what it has.

    written is the name its format was given; '' where the request has words of its own for formats.
    """

    language: Language | None
    written: str
    description: str | None
    properties: dict[str, str] | None
    policy: Policy | None


def group_in(given: api.GroupAttributes, installed: Container[str]) -> GroupWish:
    """What a request wants of a group. Raises `InvalidRequest`, `InvalidName`, `UnknownPolicy`."""
    written = given.format or ""
    if given.format == "":
        raise InvalidRequest("a format is not empty: leave it out where each schema has its own")
    language = language_in(written, installed) if written else None
    policy = find_policy(given.compatibility) if given.compatibility is not None else None
    description = text_in(given.description or "")
    return GroupWish(language, written, description, given.group_properties, _exact(given.exactly, policy))


def group_out(state: State, space: Namespace, installed: Container[str]) -> api.SchemaGroup:
    """A group as answers have it."""
    language, policy = language_of_group(space), policy_of(state, space)
    return api.SchemaGroup(
        group_of(space.name),
        name_of(language, kept(space.dialect_data).get("format", ""), installed) if language is not None else UNSET,
        space.description or UNSET,
        time_out(space.at),
        time_out(max(space.changed, space.at)),
        dict(space.labels) if space.labels else UNSET,
        policy.nearest_name if policy is not None else UNSET,
        exactly_out(policy),
    )


def policy_of(state: State, space: Namespace) -> Policy | None:
    """The policy of a group, its own or the registry's; None when neither says."""
    return queries.settings_for(state, SettingsLevel(space.name)).policy


def policy_of_new_group(state: State, name: str) -> Policy | None:
    """What a group nobody named a policy for gets: anything goes, unless there is one for its space or for all."""
    return None if queries.settings_for(state, SettingsLevel(name)).policy is not None else ALLOW_ANY


def exactly_out(policy: Policy | None) -> PolicyJson | UnsetType:
    """A policy exactly, when its common name is only the nearest stricter one."""
    return UNSET if policy is None or policy.exact_name is not None else PolicyJson.from_policy(policy)


def _exact(form: PolicyJson | None, named: Policy | None) -> Policy | None:
    return form.to_policy if form is not None else named


# --- groups in the Azure flavour ------------------------------------------------------------------------------------

_TYPES = {"": "Custom", OPAQUE: "Custom"}
_WORDS = {name.replace("_", "").lower(): name for name in ("NONE", "BACKWARD", "FORWARD", "FULL")}
_WORDS |= {f"{word}transitive": f"{name}_TRANSITIVE" for word, name in _WORDS.items() if name != "NONE"}


def azure_group_in(given: api.AzureGroupAttributes, installed: Container[str]) -> GroupWish:
    """What a request wants of a group. Raises `InvalidRequest`, `UnknownPolicy`."""
    written = given.type.strip()
    language = language_in(written, installed)
    if language.custom_format:
        raise InvalidRequest(f"{written!r} is no schema type: Avro, Json, Protobuf or Custom")
    policy = None
    if given.compatibility is not None:
        word = given.compatibility.strip().lower()
        if word not in _WORDS:
            raise UnknownPolicy(f"{given.compatibility!r} is no compatibility: None, Backward or Forward")
        policy = find_policy(_WORDS[word])
    return GroupWish(language, "", None, given.properties, _exact(given.exactly, policy))


def azure_group_out(state: State, space: Namespace) -> api.AzureGroup:
    """A group as answers have it: a policy that is not one of the three words is named as other dialects do."""
    policy = policy_of(state, space) or ALLOW_ANY
    return api.AzureGroup(
        group_of(space.name),
        _TYPES.get(space.format, space.format.title()),
        policy.nearest_name.title().replace("_", ""),
        time_out(space.at),
        time_out(max(space.changed, space.at)),
        etag_of(space),
        dict(space.labels or {}),
        exactly_out(policy),
    )


def etag_of(space: Namespace) -> str:
    """A tag that changes whenever a group is described anew."""
    return f'"{space.at:x}-{space.epoch}"'


# --- versions -------------------------------------------------------------------------------------------------------


def uid_out(version: Version) -> str:
    """The id of a version: 32 hexadecimal digits."""
    return f"{version.uid:032x}"


def updated_at(subject: Subject) -> int:
    """When a schema was last given a version, lost one, or was described anew."""
    return max(subject.at, subject.changed, *(row.at for row in subject.versions[-1:]))
