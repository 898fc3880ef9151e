"""Bodies of requests and responses.

Binary schema data are sent as base64. Members that are null are not sent.
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
    """Range of the forward direction."""

    forward_policy: DirectionRange


class BackwardAndForward(_Body, frozen=True):
    """Both directions of an advanced policy, at least one of them given."""

    backward_policy: BackwardPolicy | UnsetType | None = UNSET
    forward_policy: ForwardPolicy | UnsetType | None = UNSET


class Compatibility(_Body, frozen=True):
    """A policy by name. The name `Advanced` means the policy in `advanced`.

    Pravega's client refuses unknown members, so validators are not here: `/api/policies` shows and sets them.
    """

    policy: str
    advanced: BackwardAndForward | UnsetType | None = UNSET


class GroupProperties(_Body, frozen=True):
    """Properties of a group."""

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
    """The policy to set, and the policy that must be in force before; without the latter, any."""

    compatibility: Compatibility
    previous_compatibility: Compatibility | None = None


class SchemaInfo(_Body, frozen=True):
    """A schema. `type` is the name of the type it describes; `properties` are free and are not compared."""

    type: str
    serialization_format: SerializationFormat
    schema_data: bytes
    properties: dict[str, str] | None = None


class SchemaWithVersion(_Body, frozen=True):
    """A schema and the numbers of its version."""

    schema_info: SchemaInfo
    version_info: VersionInfo


class SchemaVersionsList(_Body, frozen=True):
    """Schemas in the order of their ids."""

    schemas: list[SchemaWithVersion]


class GroupHistoryRecord(_Body, frozen=True):
    """A schema, the policy at its registration (timestamp: milliseconds since 1970), and its text in readable form."""

    schema_info: SchemaInfo
    version_info: VersionInfo
    compatibility: Compatibility
    timestamp: int
    schema_string: str


class GroupHistory(_Body, frozen=True):
    """All schemas of a group, oldest first."""

    history: list[GroupHistoryRecord]


class ValidateRequest(_Body, frozen=True):
    """A schema to check, under the policy of the group or another one."""

    schema_info: SchemaInfo
    compatibility: Compatibility | None = None


class Valid(_Body, frozen=True):
    """Whether a schema could be added."""

    valid: bool


class CanRead(_Body, frozen=True):
    """Whether a schema can read the data of a group."""

    compatible: bool


class GetEncodingIdRequest(_Body, frozen=True):
    """A version and the name of a codec."""

    version_info: VersionInfo
    codec_type: str


class EncodingId(_Body, frozen=True):
    """The number at the start of encoded data. It names a version and a codec."""

    encoding_id: int


class CodecType(_Body, frozen=True):
    """A codec by name; the empty name means no codec."""

    name: str
    properties: dict[str, str] | None = None


class EncodingInfo(_Body, frozen=True):
    """Schema, version and codec of an encoding id."""

    schema_info: SchemaInfo
    version_info: VersionInfo
    codec_type: CodecType


class CodecTypes(_Body, frozen=True):
    """The codecs of a group."""

    codec_types: list[CodecType]


class AddedTo(_Body, frozen=True):
    """Groups that have a schema, by name, with the numbers of its version there."""

    groups: dict[str, VersionInfo]
