"""Bodies of requests and responses."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from stele.core.policy_json import PolicyJson

Compatibility = Annotated[
    str, Meta(description="a policy by its common name, as BACKWARD_TRANSITIVE; an exact one is in steleCompatibility")
]


class GroupAttributes(msgspec.Struct, frozen=True):
    """Attributes of a group in a request. Members that the server assigns are ignored.

    Attributes:
        id: Id of the group; '' or the id in the path.
        format: Format of all its schemas; absent: each has its own.
        description: Description of the group.
        group_properties: Further attributes.
        compatibility: Policy for new versions, by its common name.
        exactly: The same policy in full, for policies that no common name expresses.
    """

    id: str = ""
    format: str | None = None
    description: str | None = None
    group_properties: dict[str, str] | None = msgspec.field(name="groupProperties", default=None)
    compatibility: Compatibility | None = None
    exactly: PolicyJson | None = msgspec.field(name="steleCompatibility", default=None)


class SchemaGroup(msgspec.Struct, frozen=True):
    """A group. Times are RFC 3339 in UTC. A caller who may not read the group gets its id only."""

    id: str
    format: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    createdtimeutc: str | UnsetType = UNSET
    updatedtimeutc: str | UnsetType = UNSET
    group_properties: dict[str, str] | UnsetType = msgspec.field(name="groupProperties", default=UNSET)
    compatibility: str | UnsetType = UNSET
    exactly: PolicyJson | UnsetType = msgspec.field(name="steleCompatibility", default=UNSET)


class SchemaIdentifier(msgspec.Struct, frozen=True):
    """Answer to a registration: the id of the version, as in the header Schema-Id."""

    id: str


class ProblemDetails(msgspec.Struct, frozen=True, omit_defaults=True):
    """An error (RFC 9457). Each of `findings` gives a reason why a policy refuses a schema: rule, path, why, fix."""

    title: str
    status: int
    detail: str
    findings: list[dict[str, Any]] = []


# --- subscriptions --------------------------------------------------------------------------------------------------


class SubscriptionRequest(msgspec.Struct, frozen=True):
    """A subscription in a request.

    Older texts of the specification use one `filter` in place of `filters`, and another spelling of `protocolsettings`.
    Both are accepted.
    """

    sink: str
    protocol: str
    id: Any = None
    source: str | None = None
    types: list[str] | None = None
    filters: list[dict[str, Any]] | None = None
    filter: dict[str, Any] | None = None
    config: dict[str, Any] | None = None
    settings: dict[str, Any] | None = msgspec.field(name="protocolsettings", default=None)
    older_settings: dict[str, Any] | None = msgspec.field(name="protocolSettings", default=None)
    credential: dict[str, Any] | None = msgspec.field(name="sinkCredential", default=None)


# --- the Azure flavour ----------------------------------------------------------------------------------------------


class AzureGroupAttributes(msgspec.Struct, frozen=True):
    """Attributes of a group in an Azure request.

    `steleCompatibility` gives a policy in full. Azure's names (None, Backward, Forward) cannot express every policy.
    """

    type: str = msgspec.field(name="schemaType")
    compatibility: str | None = msgspec.field(name="schemaCompatibility", default=None)
    properties: dict[str, str] | None = msgspec.field(name="groupProperties", default=None)
    exactly: PolicyJson | None = msgspec.field(name="steleCompatibility", default=None)


class AzureGroup(msgspec.Struct, frozen=True, rename="pascal"):
    """A group in an Azure response."""

    group_name: str
    schema_type: str
    schema_compatibility: str
    created_at_utc: str
    updated_at_utc: str
    e_tag: str = msgspec.field(name="ETag")
    group_properties: dict[str, str]
    exactly: PolicyJson | UnsetType = msgspec.field(name="steleCompatibility", default=UNSET)


class AzureList(msgspec.Struct, frozen=True, rename="pascal"):
    """Names of groups or schemas."""

    value: list[str]


class AzureVersions(msgspec.Struct, frozen=True, rename="pascal"):
    """Version numbers."""

    value: list[int]


class AzureError(msgspec.Struct, frozen=True):
    """Code and message of an error."""

    code: str
    message: str


class AzureFault(msgspec.Struct, frozen=True):
    """Body of every Azure response from status 400 on."""

    error: AzureError
