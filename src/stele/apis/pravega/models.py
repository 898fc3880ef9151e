"""Bodies of requests and responses, member for member.

Binary schema data travel as base64. Members that are null are not sent.
"""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType


class _Body(msgspec.Struct, frozen=True, rename="camel"):
    """Base of all bodies; unknown members are ignored."""


class SerializationFormat(_Body, frozen=True):
    """A format: `Avro`, `Protobuf`, `Json`, `Any` (of a group only), or `Custom` with a name of its own."""

    serialization_format: str
    full_type_name: str | UnsetType | None = UNSET


class VersionInfo(_Body, frozen=True):
    """Numbers of a version: version counts within its type and format, id within the group, both from 0."""

    type: str
    version: int
    id: int
    serialization_format: str = ""


class DirectionRange(_Body, frozen=True):
    """How far a direction looks: `Backward`, `BackwardTransitive`, `BackwardTill` a version; `Forward…` alike."""

    name: str
    version_info: VersionInfo | UnsetType | None = UNSET


class BackwardPolicy(_Body, frozen=True):
    """Range of the backward direction."""

    backward_policy: DirectionRange


class ForwardPolicy(_Body, frozen=True):
    """The stretch of the forward direction."""

    forward_policy: DirectionRange


class BackwardAndForward(_Body, frozen=True):
    """Both directions of an advanced policy, at least one of them given."""

    backward_policy: BackwardPolicy | UnsetType | None = UNSET
    forward_policy: ForwardPolicy | UnsetType | None = UNSET


class Compatibility(_Body, frozen=True):
    """A policy by name; `Advanced` says what it is in `advanced`.

    Pravega's client refuses members it does not know, so validators are not here: `/api/policies` shows and sets them.
    """

    policy: str
    advanced: BackwardAndForward | UnsetType | None = UNSET


class GroupProperties(_Body, frozen=True):
    """What describes a group."""

    serialization_format: SerializationFormat
    compatibility: Compatibility
    allow_multiple_types: bool
    properties: dict[str, str] | None = None


class CreateGroupRequest(_Body, frozen=True):
    """A new group."""

    group_name: str
    group_properties: GroupProperties


class ListGroupsResponse(_Body, frozen=True):
    """A page of groups by name, and the token that asks for the next one."""

    groups: dict[str, GroupProperties]
    continuation_token: str


class UpdateCompatibilityRequest(_Body, frozen=True):
    """The policy to set, and the one that must be in force for that to happen."""

    compatibility: Compatibility
    previous_compatibility: Compatibility | None = None


class SchemaInfo(_Body, frozen=True):
    """A schema: type is the name of what it describes, properties are free and make no difference."""

    type: str
    serialization_format: SerializationFormat
    schema_data: bytes
    properties: dict[str, str] | None = None


class SchemaWithVersion(_Body, frozen=True):
    """A schema and where it stands."""

    schema_info: SchemaInfo
    version_info: VersionInfo


class SchemaVersionsList(_Body, frozen=True):
    """Schemas in the order of their ids."""

    schemas: list[SchemaWithVersion]


class GroupHistoryRecord(_Body, frozen=True):
    """A schema, the policy in force when it came (timestamp: milliseconds since 1970), and its text for people."""

    schema_info: SchemaInfo
    version_info: VersionInfo
    compatibility: Compatibility
    timestamp: int
    schema_string: str


class GroupHistory(_Body, frozen=True):
    """Everything in a group, oldest first."""

    history: list[GroupHistoryRecord]


class ValidateRequest(_Body, frozen=True):
    """A schema to try, under the policy of the group or another one."""

    schema_info: SchemaInfo
    compatibility: Compatibility | None = None


class Valid(_Body, frozen=True):
    """Whether a schema could be added."""

    valid: bool


class CanRead(_Body, frozen=True):
    """Whether a schema can read what is written."""

    compatible: bool


class GetEncodingIdRequest(_Body, frozen=True):
    """A version and the name of a codec."""

    version_info: VersionInfo
    codec_type: str


class EncodingId(_Body, frozen=True):
    """What data begin with: the id of a version and a codec."""

    encoding_id: int


class CodecType(_Body, frozen=True):
    """A codec by name; the empty name is none at all."""

    name: str
    properties: dict[str, str] | None = None


class EncodingInfo(_Body, frozen=True):
    """What an encoding id stands for."""

    schema_info: SchemaInfo
    version_info: VersionInfo
    codec_type: CodecType


class CodecTypes(_Body, frozen=True):
    """The codecs of a group."""

    codec_types: list[CodecType]


class AddedTo(_Body, frozen=True):
    """Where a schema was added to: groups by name."""

    groups: dict[str, VersionInfo]
