"""Bodies of requests and answers, by the names the API has for them."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from stele.core.policy_json import PolicyJson

Compatibility = Annotated[
    str, Meta(description="a policy by its common name, as BACKWARD_TRANSITIVE; an exact one is in steleCompatibility")
]


class GroupAttributes(msgspec.Struct, frozen=True):
    """A group as it is wanted. What the server assigns may be sent, and is not looked at.

    format           of all its schemas; '' or absent: each has its own
    groupProperties  further attributes
    compatibility    policy for new versions; steleCompatibility says it exactly
    """

    id: str = ""
    format: str | None = None
    description: str | None = None
    group_properties: dict[str, str] | None = msgspec.field(name="groupProperties", default=None)
    compatibility: Compatibility | None = None
    exactly: PolicyJson | None = msgspec.field(name="steleCompatibility", default=None)


class SchemaGroup(msgspec.Struct, frozen=True):
    """A group as it is; times are RFC 3339 in UTC. Who may not read it sees its id alone."""

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


class Problem(msgspec.Struct, frozen=True, omit_defaults=True):
    """What went wrong (RFC 9457). findings say why a policy refuses a schema: rule, path, why, fix."""

    title: str
    status: int
    detail: str
    findings: list[dict[str, Any]] = []


# --- subscriptions --------------------------------------------------------------------------------------------------


class SubscriptionRequest(msgspec.Struct, frozen=True):
    """A subscription as it is wanted.

    Older texts have one `filter` instead of `filters`, and another spelling of `protocolsettings`: both are read.
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


class Subscription(msgspec.Struct, frozen=True, omit_defaults=True):
    """A subscription as it is kept; answers leave out what is secret of its credential."""

    id: str
    sink: str
    protocol: str
    source: str | None = None
    types: list[str] | None = None
    filters: list[dict[str, Any]] | None = None
    config: dict[str, Any] | None = None
    settings: dict[str, Any] | None = msgspec.field(name="protocolsettings", default=None)
    credential: dict[str, Any] | None = msgspec.field(name="sinkCredential", default=None)


# --- the Azure flavour ----------------------------------------------------------------------------------------------


class AzureGroupAttributes(msgspec.Struct, frozen=True):
    """A group as it is wanted. steleCompatibility says exactly what None, Backward and Forward cannot."""

    type: str = msgspec.field(name="schemaType")
    compatibility: str | None = msgspec.field(name="schemaCompatibility", default=None)
    properties: dict[str, str] | None = msgspec.field(name="groupProperties", default=None)
    exactly: PolicyJson | None = msgspec.field(name="steleCompatibility", default=None)


class AzureGroup(msgspec.Struct, frozen=True, rename="pascal"):
    """A group as it is."""

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
    """Numbers of versions."""

    value: list[int]


class AzureError(msgspec.Struct, frozen=True):
    """What went wrong, and what that is called."""

    code: str
    message: str


class AzureFault(msgspec.Struct, frozen=True):
    """Body of every answer from 400 on."""

    error: AzureError
