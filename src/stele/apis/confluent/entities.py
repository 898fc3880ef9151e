"""Bodies of the Confluent API. Fields at their default are left out, as the original leaves out what is empty.

Unknown members are ignored and null means absent, in every request.
"""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType

from stele.core.metadata import Metadata
from stele.protocol.confluent import (
    CompatibilityCheckResponse,
    Config,
    ConfigUpdateRequest,
    ContextId,
    ErrorMessage,
    Int32,
    RegisterSchemaRequest,
    Rule,
    RuleSet,
    SchemaEntity,
    SchemaReference,
    SchemaTags,
    ServerVersion,
    SubjectVersion,
)

__all__ = [
    "Clusters",
    "CompatibilityCheckResponse",
    "Config",
    "ConfigUpdateRequest",
    "ContextId",
    "Deployment",
    "ErrorMessage",
    "Int32",
    "Mode",
    "ModeUpdateRequest",
    "RegisterSchemaRequest",
    "RegisterSchemaResponse",
    "Rule",
    "RuleSet",
    "Schema",
    "SchemaEntity",
    "SchemaReference",
    "SchemaString",
    "SchemaTags",
    "Scope",
    "ServerClusterId",
    "ServerVersion",
    "SubjectVersion",
    "TagSchemaRequest",
]


# --- schemas --------------------------------------------------------------------------------------------------------


class RegisterSchemaResponse(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """What was registered, or was there already. ts is milliseconds since 1970 UTC."""

    id: int
    version: int | None = None
    guid: str = ""
    schema_type: str = ""
    references: list[SchemaReference] = []
    metadata: Metadata | None = None
    rule_set: RuleSet | None = None
    schema: str = ""
    ts: int | None = None
    deleted: bool | None = None


class Schema(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """One version of a subject; aliases are the subjects that stand for this one."""

    subject: str
    version: int
    id: int
    guid: str = ""
    schema_type: str = ""
    references: list[SchemaReference] = []
    metadata: Metadata | None = None
    rule_set: RuleSet | None = None
    schema: str = ""
    schema_tags: list[SchemaTags] = []
    ts: int | None = None
    deleted: bool | None = None
    aliases: list[str] = []


class SchemaString(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A schema by its id.

    Subject, version, ts and deleted belong to a version, so they are there only when the request names a subject:
    without one the answer never changes, and may be kept for ever.
    """

    schema: str
    schema_type: str = ""
    guid: str = ""
    references: list[SchemaReference] = []
    metadata: Metadata | None = None
    rule_set: RuleSet | None = None
    schema_tags: list[SchemaTags] = []
    max_id: int | None = None
    subject: str = ""
    version: int | None = None
    ts: int | None = None
    deleted: bool | None = None


class TagSchemaRequest(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Changes to the tags, metadata and rules of a version; they become a new version of the same text."""

    new_version: Int32 | None = None
    tags_to_add: list[SchemaTags] | None = None
    tags_to_remove: list[SchemaTags] | None = None
    metadata: Metadata | None = None
    rule_set: RuleSet | None = None
    rules_to_merge: RuleSet | None = None
    rules_to_remove: list[str] | None = None


# --- settings -------------------------------------------------------------------------------------------------------


class ModeUpdateRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """The mode to set; null removes it."""

    mode: str | UnsetType | None = UNSET


class Mode(msgspec.Struct, frozen=True, omit_defaults=True):
    """The mode of a level."""

    mode: str | None = None


# --- the server -----------------------------------------------------------------------------------------------------


class Clusters(msgspec.Struct, frozen=True, rename="kebab"):
    """Names of the clusters behind the registry."""

    kafka_cluster: str
    schema_registry_cluster: str


class Scope(msgspec.Struct, frozen=True):
    """Where the registry stands."""

    path: list[str]
    clusters: Clusters


class ServerClusterId(msgspec.Struct, frozen=True):
    """Answer of `GET /v1/metadata/id`."""

    id: str
    scope: Scope


class Deployment(msgspec.Struct, frozen=True):
    """Answer of `GET /v1/metadata/deployment`."""

    attributes: list[str]
