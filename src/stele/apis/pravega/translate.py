"""Translates between the terms of the API and those of the core. Pure.

A group is a subject; a type with its format is a schema kind. Numbers count from 0 here and from 1 in the core: `id` is
the version number, `version` the kind version, an encoding id the subject's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from stele.apis.pravega import models as api
from stele.core.model import MAX_INT32, OPAQUE_FORMAT, ComparisonScope, SchemaFormat, SchemaKind, Subject, Version
from stele.core.policy import (
    ALL_VERSIONS,
    ALLOW_ANY,
    DENY_ALL,
    LATEST_VERSION,
    NO_VERSIONS,
    POLICIES,
    Policy,
    PolicyKind,
    RangeKind,
    VersionRange,
)
from stele.core.traversal import find_version
from stele.errors import InvalidRequest, MalformedSchema, UnknownFormat, UnknownPolicy, VersionNotFound

DIALECT = "pravega"
ANY = "Any"
CUSTOM = "Custom"

_BUILT_IN = {"avro": "Avro", "protobuf": "Protobuf", "json": "Json"}
_FORMATS = {name.lower(): name for name in (*_BUILT_IN.values(), ANY, CUSTOM)}

# --- formats --------------------------------------------------------------------------------------------------------


ANY_FORMAT = SchemaFormat("")


def parse_format(serialization_format: api.SerializationFormat) -> SchemaFormat:
    """Return the format of a request; a custom one is opaque. Raises `UnknownFormat`, `InvalidRequest`."""
    name = _FORMATS.get(_normalize_word(serialization_format.serialization_format))
    if name is None:
        known = ", ".join(_FORMATS.values())
        raise UnknownFormat(
            f"{serialization_format.serialization_format!r} is not a serialization format; known: {known}"
        )
    if name == ANY:
        return ANY_FORMAT
    if name != CUSTOM:
        return SchemaFormat(name.lower())
    if not serialization_format.full_type_name:
        raise InvalidRequest("a Custom serialization format needs a fullTypeName")
    return SchemaFormat(
        OPAQUE_FORMAT,
        "" if serialization_format.full_type_name == OPAQUE_FORMAT else serialization_format.full_type_name,
    )


def resolve_custom_format(schema_format: SchemaFormat, installed: Iterable[str]) -> SchemaFormat:
    """Return the installed format with the name of a custom format, else the custom format itself."""
    if schema_format.custom_format in installed and schema_format.custom_format not in _BUILT_IN:
        return SchemaFormat(schema_format.custom_format)
    return schema_format


def full_format_name(schema_format: SchemaFormat | SchemaKind) -> str:
    """Return the full name of a format: `Avro`, or the name of a custom one."""
    if not schema_format.format:
        return ANY
    return schema_format.custom_format or _BUILT_IN.get(schema_format.format, schema_format.format)


def format_body(schema_format: SchemaFormat | SchemaKind) -> api.SerializationFormat:
    """Return the body of a format, always with its full name."""
    known = not schema_format.format or schema_format.format in _BUILT_IN
    name = full_format_name(schema_format)
    return api.SerializationFormat(name if known else CUSTOM, name)


# --- types ----------------------------------------------------------------------------------------------------------


class _AvroType(msgspec.Struct):
    type: msgspec.Raw
    name: str = ""

    @property
    def full_name(self) -> str:
        return self.name or bytes(self.type).decode().strip('"')


_avro_decoder = msgspec.json.Decoder(str | list[str | _AvroType] | _AvroType)


def avro_types(canonical: bytes) -> list[str]:
    """Return the full names of the types in an Avro schema's parsing canonical form; a union has several."""
    schema = _avro_decoder.decode(canonical)
    branches = schema if isinstance(schema, list) else [schema]
    return [branch if isinstance(branch, str) else branch.full_name for branch in branches]


class _Message(msgspec.Struct):
    name: str
    nested_type: list[_Message] = []


class _File(msgspec.Struct):
    package: str = ""
    message_type: list[_Message] = []


class _Files(msgspec.Struct):
    file: list[_File] = []


_files_decoder = msgspec.json.Decoder(_Files)


def protobuf_types(descriptors: str) -> list[str]:
    """Return the full names of all messages of a FileDescriptorSet in JSON."""
    return [
        name
        for file in _files_decoder.decode(descriptors).file
        for name in _message_names(file.message_type, file.package)
    ]


def _message_names(messages: Iterable[_Message], prefix: str) -> Iterable[str]:
    for message in messages:
        name = f"{prefix}.{message.name}" if prefix else message.name
        yield name
        yield from _message_names(message.nested_type, name)


def resolve_type_name(
    type_name: str, described_types: Sequence[str] | None, first: str, group: str | None = None
) -> str:
    """Return the full name of the type that a request names.

    A schema without a name of its own has the name of its group, which is '' here, also if another dialect registered
    it.

    Args:
        type_name: Type in the request; '' is the first one.
        described_types: Full names of the types the schema describes; None where the author names the type.
        first: Full name of the first type, '' where it has none.
        group: Name of the group.

    Raises:
        MalformedSchema: The schema does not describe the type.
    """
    unnamed = not first and (described_types is None or len(described_types) == 1)
    if unnamed and type_name in ("", group, *(described_types or ())):
        return ""
    if described_types is None:
        return type_name or first
    if not described_types:
        raise MalformedSchema("the schema describes no type")
    if not type_name:
        return first or described_types[0]
    matches = [name for name in described_types if name == type_name] or [
        name for name in described_types if name.rpartition(".")[2] == type_name
    ]
    if not matches:
        expected = ", ".join(described_types[:10])
        raise MalformedSchema(f"the schema does not describe the type '{type_name}'", expected=expected or None)
    return matches[0]


def type_name_of(version: Version) -> str:
    """Return the type of a version; one that was not named has the name of its subject."""
    return version.kind.type or version.subject.key.name


# --- policies -------------------------------------------------------------------------------------------------------

_POLICY_BY_NAME = {
    "AllowAny": ALLOW_ANY,
    "DenyAll": DENY_ALL,
    "Backward": POLICIES["BACKWARD"],
    "BackwardTransitive": POLICIES["BACKWARD_TRANSITIVE"],
    "Forward": POLICIES["FORWARD"],
    "ForwardTransitive": POLICIES["FORWARD_TRANSITIVE"],
    "Full": POLICIES["FULL"],
    "FullTransitive": POLICIES["FULL_TRANSITIVE"],
}
_POLICY_BY_WORD = {name.lower(): policy for name, policy in _POLICY_BY_NAME.items()}
_NAME_BY_POLICY = {policy: name for name, policy in _POLICY_BY_NAME.items()}
_ADVANCED = "Advanced"
_ADVANCED_WORDS = {"advanced", "backwardtill", "forwardtill", "backwardtillandforwardtill"}


def parse_compatibility(compatibility: api.Compatibility) -> Policy:
    """Return the policy in a request. Names are read as `BackwardTransitive` and as `BACKWARD_TRANSITIVE`.

    Raises `UnknownPolicy`.
    """
    word = _normalize_word(compatibility.policy)
    policy = _parse_advanced(compatibility.advanced) if word in _ADVANCED_WORDS else _POLICY_BY_WORD.get(word)
    if policy is None:
        raise UnknownPolicy(
            f"{compatibility.policy!r} is not a compatibility; known: {', '.join([*_POLICY_BY_NAME, _ADVANCED])}"
        )
    return policy


def expected_policy(compatibility: api.Compatibility, in_force: Policy) -> Policy:
    """Return the policy that a client requires to be in force.

    It is `in_force` if the two differ only in what the API does not show. Raises `UnknownPolicy`.
    """
    client_policy = parse_compatibility(compatibility)
    return in_force if replace(in_force, validators=()) == client_policy else client_policy


def _parse_advanced(directions: api.BackwardAndForward | UnsetType | None) -> Policy:
    backward, forward = (directions.backward_policy, directions.forward_policy) if directions else (None, None)
    if not backward and not forward:
        raise UnknownPolicy("an Advanced compatibility needs backward, forward, or both")
    return Policy(
        backward=_parse_range(backward.backward_policy, "Backward") if backward else NO_VERSIONS,
        forward=_parse_range(forward.forward_policy, "Forward") if forward else NO_VERSIONS,
    )


def _parse_range(direction_range: api.DirectionRange, direction: str) -> VersionRange:
    word, start = _normalize_word(direction_range.name), direction.lower()
    if word == start:
        return LATEST_VERSION
    if word == f"{start}transitive":
        return ALL_VERSIONS
    if word != f"{start}till":
        raise UnknownPolicy(
            f"{direction_range.name!r} must be one of {direction}, {direction}Transitive, {direction}Till"
        )
    if not direction_range.version_info or not 0 <= direction_range.version_info.id < MAX_INT32:
        raise UnknownPolicy(f"{direction}Till needs the versionInfo of its oldest version")
    return VersionRange(RangeKind.SINCE, direction_range.version_info.id + 1)


def is_directional(policy: Policy) -> bool:
    """Return whether a policy compares schemas, so that their format must be comparable."""
    return policy.kind is PolicyKind.DIRECTIONAL and (policy.backward != NO_VERSIONS or policy.forward != NO_VERSIONS)


def compatibility_body(policy: Policy, subject: Subject, saved: Any = None) -> api.Compatibility:
    """Return a policy as it was sent (`saved`, see `compatibility_data`) while it is in force, else in normal form."""
    plain = replace(policy, validators=())
    if saved is not None:
        sent = msgspec.convert(saved, api.Compatibility)
        if parse_compatibility(sent) == plain:
            return sent
    if not is_directional(plain):
        return api.Compatibility("DenyAll" if plain.kind is PolicyKind.DENY_ALL else "AllowAny")
    name = _NAME_BY_POLICY.get(plain)
    if name is not None:
        return api.Compatibility(name)
    backward, forward = _range_body(plain.backward, "Backward", subject), _range_body(plain.forward, "Forward", subject)
    both = api.BackwardAndForward(
        api.BackwardPolicy(backward) if backward else UNSET, api.ForwardPolicy(forward) if forward else UNSET
    )
    return api.Compatibility(_ADVANCED, both)


def _range_body(versions: VersionRange, direction: str, subject: Subject) -> api.DirectionRange | None:
    match versions.kind:
        case RangeKind.NONE:
            return None
        case RangeKind.LATEST:
            return api.DirectionRange(direction)
        case RangeKind.ALL:
            return api.DirectionRange(f"{direction}Transitive")
        case RangeKind.SINCE:
            return api.DirectionRange(f"{direction}Till", _version_info_at(versions.since, subject))


def _version_info_at(version_number: int, subject: Subject) -> api.VersionInfo:
    """Return the numbers of a version. For a purged version, only the id is known."""
    version = find_version(subject, version_number)
    return (
        build_version_info(version)
        if version is not None
        else api.VersionInfo("", version_number - 1, version_number - 1)
    )


def compatibility_data(compatibility: api.Compatibility) -> Any:
    """Return the data to store of a compatibility that the core's normal form loses; None if it loses nothing."""
    return msgspec.to_builtins(compatibility) if _normalize_word(compatibility.policy) in _ADVANCED_WORDS else None


def stored_compatibility(dialect_data: Mapping[str, Any] | None) -> Any:
    """Return what `compatibility_data` stored in the data of settings or of a subject."""
    return ((dialect_data or {}).get(DIALECT) or {}).get("compatibility")


def comparison_scope(allow_multiple_types: Any) -> ComparisonScope:
    """Return which versions new schemas are compared with."""
    return ComparisonScope.SCHEMA_KIND if allow_multiple_types else ComparisonScope.ONE_TYPE


def has_multiple_types(subject: Subject) -> bool:
    """Return whether a subject accepts several types. A subject of another dialect does if it has several."""
    if subject.comparison_scope is ComparisonScope.SUBJECT:
        return len({row.kind.type for row in subject.versions}) > 1
    return subject.comparison_scope is ComparisonScope.SCHEMA_KIND


def _normalize_word(name: str) -> str:
    return name.strip().replace("_", "").lower()


# --- versions -------------------------------------------------------------------------------------------------------


def build_version_info(version: Version) -> api.VersionInfo:
    """Return the numbers of a version."""
    return api.VersionInfo(
        type_name_of(version), version.kind_version - 1, version.version_number - 1, full_format_name(version.kind)
    )


def is_at(version: Version, full_type_name: str, type_name: str, number: int) -> bool:
    """Return whether a version has that format, type and version number."""
    named = full_format_name(version.kind) == full_type_name and type_name_of(version) == type_name
    return named and version.kind_version == number + 1


def is_named_by(version: Version, info: api.VersionInfo) -> bool:
    """Return whether a version is the one a request names; older clients leave out the format."""
    return is_at(version, info.serialization_format or full_format_name(version.kind), info.type, info.version)


def require_first(versions: Iterable[Version], number: int) -> Version:
    """Return the first version. Raises `VersionNotFound` if there is none."""
    version = next(iter(versions), None)
    if version is None:
        raise VersionNotFound(number)
    return version
