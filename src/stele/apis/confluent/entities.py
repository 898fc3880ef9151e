"""Bodies of the Confluent API. Fields at their default are left out, as the original leaves out what is empty.

Unknown members are ignored and null means absent, in every request.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from stele.core.metadata import Metadata
from stele.core.policy_json import PolicyJson

Int32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]


class ErrorMessage(msgspec.Struct, frozen=True):
    """Every error: the HTTP status, or that times 100 plus a number, and a sentence."""

    error_code: int
    message: str


# --- schemas --------------------------------------------------------------------------------------------------------


class SchemaReference(msgspec.Struct, frozen=True):
    """A schema the text refers to by `name`; version -1 is the latest, and is stored as what that is now."""

    name: str
    subject: str
    version: Int32 = -1


class Rule(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """One rule of a data contract; kind, mode and disabled are always present in answers."""

    name: str | None = None
    doc: str | None = None
    kind: str | None = None
    mode: str | None = None
    type: str | None = None
    tags: list[str] | None = None
    params: dict[str, str] | None = None
    expr: str | None = None
    on_success: str | None = None
    on_failure: str | None = None
    disabled: bool | None = None


class RuleSet(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """The rules of a schema by phase."""

    migration_rules: list[Rule] | None = None
    domain_rules: list[Rule] | None = None
    encoding_rules: list[Rule] | None = None
    enable_at: str | None = None


class SchemaEntity(msgspec.Struct, frozen=True, rename="camel"):
    """A record or a field of one, by its dotted path; entity_type is sr_record or sr_field."""

    entity_path: str
    entity_type: str = "sr_field"


class SchemaTags(msgspec.Struct, frozen=True, rename="camel"):
    """The tags of an entity."""

    schema_entity: SchemaEntity
    tags: list[str] = []


class RegisterSchemaRequest(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A schema to register, look up or check.

    No schema means the text of the latest version; version 0 the next one, -1 "must be the latest"; id -1 any id.
    """

    schema: str | None = None
    schema_type: str | None = None
    references: list[SchemaReference] | None = None
    metadata: Metadata | None = None
    rule_set: RuleSet | None = None
    version: Int32 | None = None
    id: Int32 | None = None
    schema_tags_to_add: list[SchemaTags] | None = None
    schema_tags_to_remove: list[SchemaTags] | None = None
    propagate_schema_tags: bool | None = None


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


class SubjectVersion(msgspec.Struct, frozen=True):
    """The number of a version."""

    subject: str
    version: int


class ContextId(msgspec.Struct, frozen=True):
    """The id of a schema in one context."""

    context: str
    id: int


class TagSchemaRequest(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Changes to the tags, metadata and rules of a version; they become a new version of the same text."""

    new_version: Int32 | None = None
    tags_to_add: list[SchemaTags] | None = None
    tags_to_remove: list[SchemaTags] | None = None
    metadata: Metadata | None = None
    rule_set: RuleSet | None = None
    rules_to_merge: RuleSet | None = None
    rules_to_remove: list[str] | None = None


class CompatibilityCheckResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """Whether a schema may be registered; messages only when asked for."""

    is_compatible: bool
    messages: list[str] | None = None


# --- settings -------------------------------------------------------------------------------------------------------


class Config(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """The settings of a level, as GET and DELETE show them; the last member is an extension (see `settings`)."""

    alias: str | None = None
    alias_for_deks: str | None = None
    normalize: bool | None = None
    validate_fields: bool | None = None
    validate_new_schemas: bool | None = None
    validate_rules: bool | None = None
    compatibility_level: str | None = None
    compatibility_policy: str | None = None
    compatibility_group: str | None = None
    default_metadata: Metadata | None = None
    override_metadata: Metadata | None = None
    default_rule_set: RuleSet | None = None
    override_rule_set: RuleSet | None = None
    stele_compatibility: PolicyJson | None = None


class ConfigUpdateRequest(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Changes to the settings of a level: what is absent stays, null clears.

    A level (`compatibility`) alone replaces the whole policy, with what `steleCompatibility` showed of it: since which
    version, one direction further than the other, validators. That member sets an exact policy, and next to a level
    it must be one that is shown as that level.
    """

    alias: str | UnsetType | None = UNSET
    alias_for_deks: str | UnsetType | None = UNSET
    normalize: bool | UnsetType | None = UNSET
    validate_fields: bool | UnsetType | None = UNSET
    validate_new_schemas: bool | UnsetType | None = UNSET
    validate_rules: bool | UnsetType | None = UNSET
    compatibility: str | UnsetType | None = UNSET
    compatibility_policy: str | UnsetType | None = UNSET
    compatibility_group: str | UnsetType | None = UNSET
    default_metadata: Metadata | UnsetType | None = UNSET
    override_metadata: Metadata | UnsetType | None = UNSET
    default_rule_set: RuleSet | UnsetType | None = UNSET
    override_rule_set: RuleSet | UnsetType | None = UNSET
    stele_compatibility: PolicyJson | UnsetType | None = UNSET


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


class ServerVersion(msgspec.Struct, frozen=True, rename="camel"):
    """Answer of `GET /v1/metadata/version`."""

    version: str
    commit_id: str


class Deployment(msgspec.Struct, frozen=True):
    """Answer of `GET /v1/metadata/deployment`."""

    attributes: list[str]
