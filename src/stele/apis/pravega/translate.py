"""The API's words into the core's and back. Pure.

A namespace is a space, a group a subject, a type with its format a lane. Numbers count from 0 here and from 1 in the
core: `id` is the ordinal, `version` the lane's number, an encoding id the subject's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from stele.apis.pravega import entities as api
from stele.core.model import MAX_INT32, ComparisonScope, SchemaKind, Subject, Version
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
OPAQUE = "opaque"
ANY = "Any"
CUSTOM = "Custom"

_BUILT_IN = {"avro": "Avro", "protobuf": "Protobuf", "json": "Json"}
_FORMATS = {name.lower(): name for name in (*_BUILT_IN.values(), ANY, CUSTOM)}

# --- formats --------------------------------------------------------------------------------------------------------


class Language(NamedTuple):
    """A format of the core, and the name of its own that a custom one has."""

    format: str
    custom_format: str = ""


ANY_LANGUAGE = Language("")


def language_in(given: api.SerializationFormat) -> Language:
    """The language of a serialization format; a custom one is opaque. Raises `UnknownFormat`, `InvalidRequest`."""
    name = _FORMATS.get(_word(given.serialization_format))
    if name is None:
        known = ", ".join(_FORMATS.values())
        raise UnknownFormat(f"{given.serialization_format!r} is no serialization format; known: {known}")
    if name == ANY:
        return ANY_LANGUAGE
    if name != CUSTOM:
        return Language(name.lower())
    if not given.full_type_name:
        raise InvalidRequest("a Custom serialization format needs a fullTypeName")
    return Language(OPAQUE, "" if given.full_type_name == OPAQUE else given.full_type_name)


def takes_its_name(language: Language, installed: Iterable[str]) -> Language:
    """A custom language by the name of a format that is installed is that one, with its parser and its rules."""
    if language.custom_format in installed and language.custom_format not in _BUILT_IN:
        return Language(language.custom_format)
    return language


def full_name(language: Language | SchemaKind) -> str:
    """The full type name of a format: `Avro`, or what a custom one is called."""
    if not language.format:
        return ANY
    return language.custom_format or _BUILT_IN.get(language.format, language.format)


def format_out(language: Language | SchemaKind) -> api.SerializationFormat:
    """A format as answers have it: always with its full name."""
    known = not language.format or language.format in _BUILT_IN
    name = full_name(language)
    return api.SerializationFormat(name if known else CUSTOM, name)


# --- types ----------------------------------------------------------------------------------------------------------


class _AvroType(msgspec.Struct):
    type: msgspec.Raw
    name: str = ""

    @property
    def shown(self) -> str:
        return self.name or bytes(self.type).decode().strip('"')


_avro = msgspec.json.Decoder(str | list[str | _AvroType] | _AvroType)


def avro_types(canonical: bytes) -> list[str]:
    """Full names of what an Avro schema describes, by its parsing canonical form: a union has several."""
    found = _avro.decode(canonical)
    branches = found if isinstance(found, list) else [found]
    return [branch if isinstance(branch, str) else branch.shown for branch in branches]


class _Message(msgspec.Struct):
    name: str
    nested_type: list[_Message] = []


class _File(msgspec.Struct):
    package: str = ""
    message_type: list[_Message] = []


class _Files(msgspec.Struct):
    file: list[_File] = []


_files = msgspec.json.Decoder(_Files)


def protobuf_types(descriptors: str) -> list[str]:
    """Full names of all messages of a FileDescriptorSet in JSON."""
    return [name for file in _files.decode(descriptors).file for name in _names(file.message_type, file.package)]


def _names(messages: Iterable[_Message], prefix: str) -> Iterable[str]:
    for message in messages:
        name = f"{prefix}.{message.name}" if prefix else message.name
        yield name
        yield from _names(message.nested_type, name)


def type_in(given: str, described: Sequence[str] | None, first: str, group: str | None = None) -> str:
    """The full name a type means among those a schema describes (None: the author names it); '' is the first.

    What has no name of its own has that of its group, which is '' here: so it is, too, when another dialect brings it.
    Raises `MalformedSchema`.
    """
    unnamed = not first and (described is None or len(described) == 1)
    if unnamed and given in ("", group, *(described or ())):
        return ""
    if described is None:
        return given or first
    if not described:
        raise MalformedSchema("the schema describes no type")
    if not given:
        return first or described[0]
    found = [name for name in described if name == given] or [
        name for name in described if name.rpartition(".")[2] == given
    ]
    if not found:
        shown = ", ".join(described[:10])
        raise MalformedSchema(f"the schema does not describe the type '{given}'", expected=shown or None)
    return found[0]


def type_out(version: Version) -> str:
    """The type of a version; one whose author named none has that of its subject."""
    return version.kind.type or version.subject.key.name


# --- policies -------------------------------------------------------------------------------------------------------

_NAMES = {
    "AllowAny": ALLOW_ANY,
    "DenyAll": DENY_ALL,
    "Backward": POLICIES["BACKWARD"],
    "BackwardTransitive": POLICIES["BACKWARD_TRANSITIVE"],
    "Forward": POLICIES["FORWARD"],
    "ForwardTransitive": POLICIES["FORWARD_TRANSITIVE"],
    "Full": POLICIES["FULL"],
    "FullTransitive": POLICIES["FULL_TRANSITIVE"],
}
_POLICIES = {name.lower(): policy for name, policy in _NAMES.items()}
_NAME_OF = {policy: name for name, policy in _NAMES.items()}
_ADVANCED = "Advanced"
_ADVANCED_WORDS = {"advanced", "backwardtill", "forwardtill", "backwardtillandforwardtill"}


def compatibility_in(given: api.Compatibility) -> Policy:
    """The policy meant; names are taken as `BackwardTransitive` and as `BACKWARD_TRANSITIVE`. Raises `UnknownPolicy`"""
    word = _word(given.policy)
    policy = _advanced(given.advanced) if word in _ADVANCED_WORDS else _POLICIES.get(word)
    if policy is None:
        raise UnknownPolicy(f"{given.policy!r} is no compatibility; known: {', '.join([*_NAMES, _ADVANCED])}")
    return replace(policy, validators=tuple(given.checkers)) if given.checkers else policy


def _advanced(given: api.BackwardAndForward | UnsetType | None) -> Policy:
    backward, forward = (given.backward_policy, given.forward_policy) if given else (None, None)
    if not backward and not forward:
        raise UnknownPolicy("an Advanced compatibility says what it asks backward, forward, or both")
    return Policy(
        backward=_extent_in(backward.backward_policy, "Backward") if backward else NO_VERSIONS,
        forward=_extent_in(forward.forward_policy, "Forward") if forward else NO_VERSIONS,
    )


def _extent_in(given: api.Stretch, direction: str) -> VersionRange:
    word, start = _word(given.name), direction.lower()
    if word == start:
        return LATEST_VERSION
    if word == f"{start}transitive":
        return ALL_VERSIONS
    if word != f"{start}till":
        raise UnknownPolicy(f"{given.name!r} is none of {direction}, {direction}Transitive, {direction}Till")
    if not given.version_info or not 0 <= given.version_info.id < MAX_INT32:
        raise UnknownPolicy(f"{direction}Till needs the versionInfo it reaches back to")
    return VersionRange(RangeKind.SINCE, given.version_info.id + 1)


def directional(policy: Policy) -> bool:
    """Whether a policy compares schemas, so that their format must know how."""
    return policy.kind is PolicyKind.DIRECTIONAL and (policy.backward != NO_VERSIONS or policy.forward != NO_VERSIONS)


def compatibility_out(policy: Policy, subject: Subject, saved: Any = None) -> api.Compatibility:
    """A policy as answers have it: as it was sent (`saved`, see `kept`) while that is what is in force."""
    if saved is not None:
        sent = msgspec.convert(saved, api.Compatibility)
        if compatibility_in(sent) == policy:
            return sent
    plain = replace(policy, validators=())
    checkers = list(policy.validators) or UNSET
    if not directional(plain):
        return api.Compatibility("DenyAll" if plain.kind is PolicyKind.DENY_ALL else "AllowAny", checkers=checkers)
    name = _NAME_OF.get(plain)
    if name is not None:
        return api.Compatibility(name, checkers=checkers)
    backward, forward = _stretch(plain.backward, "Backward", subject), _stretch(plain.forward, "Forward", subject)
    both = api.BackwardAndForward(
        api.BackwardPolicy(backward) if backward else UNSET, api.ForwardPolicy(forward) if forward else UNSET
    )
    return api.Compatibility(_ADVANCED, both, checkers)


def _stretch(extent: VersionRange, direction: str, subject: Subject) -> api.Stretch | None:
    match extent.kind:
        case RangeKind.NONE:
            return None
        case RangeKind.LATEST:
            return api.Stretch(direction)
        case RangeKind.ALL:
            return api.Stretch(f"{direction}Transitive")
        case RangeKind.SINCE:
            return api.Stretch(f"{direction}Till", _since(extent.since, subject))


def _since(ordinal: int, subject: Subject) -> api.VersionInfo:
    """The version with that number; of one that was purged only its id is left."""
    version = find_version(subject, ordinal)
    return version_out(version) if version is not None else api.VersionInfo("", ordinal - 1, ordinal - 1)


def kept(given: api.Compatibility) -> Any:
    """What of a compatibility the core's normal form would not give back; None when it gives back everything."""
    return msgspec.to_builtins(given) if _word(given.policy) in _ADVANCED_WORDS else None


def saved_in(ext: Mapping[str, Any] | None) -> Any:
    """What `kept` kept in the `ext` of settings or of a subject."""
    return ((ext or {}).get(DIALECT) or {}).get("compatibility")


def scope_in(allow_multiple_types: Any) -> ComparisonScope:
    """What new schemas are compared with."""
    return ComparisonScope.SCHEMA_KIND if allow_multiple_types else ComparisonScope.ONE_TYPE


def multiple_types(subject: Subject) -> bool:
    """Whether a subject takes several types; one from another dialect does when it holds them already."""
    if subject.comparison_scope is ComparisonScope.SUBJECT:
        return len({row.kind.type for row in subject.versions}) > 1
    return subject.comparison_scope is ComparisonScope.SCHEMA_KIND


def _word(name: str) -> str:
    return name.strip().replace("_", "").lower()


# --- versions -------------------------------------------------------------------------------------------------------


def version_out(version: Version) -> api.VersionInfo:
    """The numbers of a version."""
    return api.VersionInfo(
        type_out(version), version.kind_version - 1, version.version_number - 1, full_name(version.kind)
    )


def is_at(version: Version, full_type_name: str, type_name: str, number: int) -> bool:
    """Whether a version has that format, type and version number."""
    named = full_name(version.kind) == full_type_name and type_out(version) == type_name
    return named and version.kind_version == number + 1


def is_meant(version: Version, info: api.VersionInfo) -> bool:
    """Whether a version is the one a request names; the format may be left out, as in older clients."""
    return is_at(version, info.serialization_format or full_name(version.kind), info.type, info.version)


def only(found: Iterable[Version], number: int) -> Version:
    """The first of what was found. Raises `VersionNotFound`."""
    version = next(iter(found), None)
    if version is None:
        raise VersionNotFound(number)
    return version
