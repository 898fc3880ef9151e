"""The API's words into the core's and back. Pure.

What only this API knows (app, coordinate, status, validator, serialization …) is kept beside subjects and versions
under its own name, and given back unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from stele.apis.http.bodies import WrongShape
from stele.apis.openschema import entities as api
from stele.apis.openschema.places import place_of, schema_id
from stele.core import queries
from stele.core.model import MAX_INT32, SchemaKind, SettingsLevel, Subject, Version
from stele.core.policy import Policy, find_policy
from stele.core.policy_json import PolicyJson
from stele.core.state import State
from stele.errors import InvalidVersion, MalformedSchema

DIALECT = "openschema"
"""Under which name subjects, settings and versions keep what only this API knows."""
OPAQUE = "opaque"
LATEST = "latest"

_FORMATS = {
    "AVRO": "avro",
    "JSON": "json",
    "PB": "protobuf",
    "PROTOBUF": "protobuf",
    "THRIFT": "thrift",
    "XSD": "xsd",
}
_SHOWN = {"avro": "AVRO", "json": "JSON", "protobuf": "PB"}
_TREES = {"avro", "json"}
"""Languages whose schemas are JSON."""
_WITHOUT = {"NONE", "INT", "LONG", "STRING", "MAP"}
"""Kinds that need no definition."""
_NUMBER = re.compile(r"[1-9][0-9]{0,9}\Z")

# --- schemas in -----------------------------------------------------------------------------------------------------


class Draft(NamedTuple):
    """A schema as it came: its language, text, and whether the text was JSON in its place rather than a string."""

    format: str
    custom_format: str
    text: bytes
    structured: bool


def draft_of(given: api.SchemaIn, newest: SchemaKind | None) -> Draft:
    """The text of a schema and its language: the one named, else that of the newest version, else Avro.

    JSON in the place of a text that is none (a Protobuf file, say) is kept unread. Raises `WrongShape`.
    """
    word = (given.serialization or "").strip().upper()
    raw = given.schema_definition
    if isinstance(raw, UnsetType) or bytes(raw).strip() == b"null":
        if word not in _WITHOUT:
            raise WrongShape("schemaDefinition is missing")
        return Draft(OPAQUE, word, b"null", structured=True)
    text, structured = definition_in(bytes(raw))
    if not word and newest is not None:
        return Draft(newest.format, newest.custom_format, text, structured)
    name = _FORMATS.get(word or "AVRO", OPAQUE)
    if structured and name not in _TREES:
        name = OPAQUE
    return Draft(name, word if name == OPAQUE else "", text, structured)


def definition_in(raw: bytes) -> tuple[bytes, bool]:
    """The text of a definition as it stands in JSON, and whether it is JSON itself. Raises `MalformedSchema`."""
    if not raw.lstrip().startswith(b'"'):
        return raw.strip(), True
    try:
        return msgspec.json.decode(raw, type=str).encode(), False
    except msgspec.DecodeError as error:
        raise MalformedSchema(f"the definition is no text: {error}") from None


def tried_in(raw: bytes) -> api.SchemaIn:
    """The schema of a check: an object with a schemaDefinition is one whole, everything else the definition alone."""
    try:
        whole = msgspec.json.decode(raw, type=api.SchemaIn)
    except (msgspec.DecodeError, RecursionError):
        whole = api.SchemaIn()
    return whole if not isinstance(whole.schema_definition, UnsetType) else api.SchemaIn(msgspec.Raw(raw))


def kept_of(given: api.SchemaIn, draft: Draft) -> dict[str, Any]:
    """What a version keeps of its schema for this API alone."""
    kept = {
        "name": given.name,
        "serialization": given.serialization,
        "validator": given.validator,
        "structured": draft.structured or None,
    }
    return {name: value for name, value in kept.items() if value}


def version_in(text: str) -> int | None:
    """The version a path names; None is the latest. Raises `InvalidVersion`."""
    if text == LATEST:
        return None
    if not _NUMBER.match(text) or int(text) > MAX_INT32:
        raise InvalidVersion(text[:100])
    return int(text)


# --- schemas out ----------------------------------------------------------------------------------------------------


def schema_out(state: State, version: Version) -> api.SchemaOut:
    """A version as this API shows it."""
    own = _own(version.attributes.dialect_data if version.attributes is not None else None)
    text = state.get_text(version.content)
    structured = own.get("structured") and text
    return api.SchemaOut(
        name=own.get("name") or version.kind.type,
        id=schema_id(version.schema.namespace, version.schema.schema_id),
        comment=version.attributes.description if version.attributes is not None else "",
        serialization=own.get("serialization") or format_out(version.kind),
        schema_definition=msgspec.Raw(text) if structured else text.decode("utf-8", "replace"),
        validator=own.get("validator") or "",
        version=version.version_number,
    )


def format_out(lane: SchemaKind) -> str:
    """The kind of a schema: `AVRO`, `JSON`, `PB`, or whatever its author calls it."""
    return (
        lane.custom_format
        or _SHOWN.get(lane.format)
        or ("USER-DEFINED" if lane.format == OPAQUE else lane.format.upper())
    )


# --- subjects -------------------------------------------------------------------------------------------------------


def is_shown(subject: Subject) -> bool:
    """Not one whose schemas were all deleted, unless it was created here by itself."""
    return (
        not subject.versions or DIALECT in (subject.dialect_data or {}) or queries.latest_version(subject) is not None
    )


def subject_out(state: State, subject: Subject) -> api.SubjectOut:
    """A subject as this API shows it."""
    own, policy = _own(subject.dialect_data), queries.policy_for(state, subject.key)
    place = place_of(subject.key.namespace)
    return api.SubjectOut(
        subject=subject.key.name,
        namespace=place.namespace,
        tenant=place.tenant,
        app=own.get("app", ""),
        description=subject.description,
        compatibility=policy.nearest_name,
        coordinate=own.get("coordinate", ""),
        status=own.get("status", "released"),
        created_time=_time(subject.at),
        last_modified_time=_time(modified_at(state, subject)),
        stele_compatibility=exact(policy),
    )


def with_schema(subject: api.SubjectOut, version: Version, schema: api.SchemaOut) -> api.SubjectWithSchema:
    """A subject with one of its schemas."""
    members = {name: getattr(subject, name) for name in subject.__struct_fields__}
    return api.SubjectWithSchema(**members, format=format_out(version.kind), schema=schema)


def kept_subject(before: Mapping[str, Any] | None, given: api.SubjectIn, at: int) -> dict[str, Any]:
    """What a subject keeps for this API and for others; what is not given stays."""
    own = {"app": given.app, "coordinate": given.coordinate, "status": given.status, "modified": at}
    return {**(before or {}), DIALECT: {**_own(before), **{k: v for k, v in own.items() if v is not None}}}


def modified_at(state: State, subject: Subject) -> int:
    """When a subject last changed, in milliseconds since 1970: what describes it, its compatibility, its schemas."""
    settings = state.settings_at(SettingsLevel(*subject.key))
    told = (_own(subject.dialect_data), _own(settings.dialect_data if settings is not None else None))
    times = (subject.at, *(row.at for row in subject.versions), *(own.get("modified", 0) for own in told))
    return int(max(times))


def config_out(policy: Policy) -> api.ConfigOut:
    """A policy as a level, the nearest stricter one where there is no exact one, and then exactly beside it."""
    return api.ConfigOut(policy.nearest_name, exact(policy))


def exact(policy: Policy) -> PolicyJson | UnsetType:
    """A policy in full where no level says it."""
    return PolicyJson.from_policy(policy) if policy.exact_name is None else UNSET


def policy_in(word: str | None) -> Policy | None:
    """The policy of a level, if one is named. Raises `UnknownPolicy`."""
    return find_policy(word) if word else None


def names_of(subjects: Iterable[Subject]) -> list[str]:
    """Names of the subjects shown, each once, sorted."""
    return sorted({subject.key.name for subject in subjects if is_shown(subject)})


def _own(ext: Mapping[str, Any] | None) -> Mapping[str, Any]:
    own: Mapping[str, Any] = (ext or {}).get(DIALECT) or {}
    return own


def _time(milliseconds: int) -> str:
    moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return moment.replace(tzinfo=None).isoformat(timespec="milliseconds")
