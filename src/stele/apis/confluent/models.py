"""Bodies of the Confluent API. Fields with their default value are not sent, as in Confluent's registry.

Unknown members are ignored and null means absent, in every request.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

from stele.apis.confluent.karapace import BodyFinding
from stele.core.metadata import Metadata
from stele.protocol.confluent import (
    Association,
    CompatibilityCheckResponse,
    Config,
    ConfigUpdateRequest,
    ContextId,
    Dek,
    ErrorMessage,
    Int32,
    Kek,
    LevelInForce,
    RegisterSchemaRequest,
    Rule,
    RuleSet,
    SchemaEntity,
    SchemaReference,
    SchemaTags,
    ServerVersion,
    SubjectVersion,
    UpdateKekRequest,
)

__all__ = [
    "ANY",
    "NONE",
    "STRONG",
    "TOPIC",
    "TYPES",
    "WEAK",
    "Association",
    "AssociationBatchGetRequest",
    "AssociationBatchRequest",
    "AssociationBatchResponse",
    "AssociationCreateOrUpdateInfo",
    "AssociationCreateOrUpdateRequest",
    "AssociationGetRequest",
    "AssociationInfo",
    "AssociationOp",
    "AssociationOpRequest",
    "AssociationResponse",
    "AssociationResult",
    "Clusters",
    "CompatibilityCheckResponse",
    "Config",
    "ConfigUpdateRequest",
    "ContextId",
    "CreateDekRequest",
    "CreateKekRequest",
    "Dek",
    "Deployment",
    "ErrorMessage",
    "Exporter",
    "ExporterName",
    "ExporterRequest",
    "ExporterStatus",
    "ExtendedSchema",
    "Int32",
    "Kek",
    "LevelInForce",
    "ModeBody",
    "ModeUpdateRequest",
    "RefusedBodyMessage",
    "RegisterSchemaRequest",
    "RegisterSchemaResponse",
    "Rule",
    "RuleSet",
    "SchemaEntity",
    "SchemaReference",
    "SchemaString",
    "SchemaTags",
    "ServerClusterId",
    "ServerScope",
    "ServerVersion",
    "SubjectVersion",
    "SubjectVersionBody",
    "TagSchemaRequest",
    "UpdateKekRequest",
]

# --- values in associations ---

TOPIC: Final = "topic"
TYPES: Final = ("key", "value")
STRONG: Final = "STRONG"
WEAK: Final = "WEAK"
NONE: Final = "NONE"
ANY: Final = "-"
"""Namespace or name in a path that matches all of them."""


# --- schemas --------------------------------------------------------------------------------------------------------


class RegisterSchemaResponse(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """The schema that was registered or existed already. ts is milliseconds since 1970 UTC."""

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


class SubjectVersionBody(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """One version of a subject; aliases are the subjects whose setting `alias` names this one."""

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


class RefusedBodyMessage(msgspec.Struct, frozen=True):
    """Response to an invalid body in the profile `karapace`: the message lists the defects."""

    error_code: int
    message: Sequence[BodyFinding]


class SchemaString(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A schema by its id.

    Subject, version, ts and deleted belong to a version, so they are present only if the request names a subject.
    Without them the response never changes and can be cached for ever. subjects are those that have the schema; they
    are present only if the request asks for them, in the profile `karapace`.
    """

    schema: str
    schema_type: str = ""
    guid: str = ""
    references: list[SchemaReference] = []
    metadata: Metadata | None = None
    rule_set: RuleSet | None = None
    schema_tags: list[SchemaTags] = []
    max_id: int | None = None
    subjects: list[str] | None = None
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


class ModeBody(msgspec.Struct, frozen=True, omit_defaults=True):
    """The mode of a level."""

    mode: str | None = None


# --- the server -----------------------------------------------------------------------------------------------------


class Clusters(msgspec.Struct, frozen=True, rename="kebab"):
    """Names of the clusters behind the registry."""

    kafka_cluster: str
    schema_registry_cluster: str


class ServerScope(msgspec.Struct, frozen=True):
    """Scope of the registry: its path and its clusters."""

    path: list[str]
    clusters: Clusters


class ServerClusterId(msgspec.Struct, frozen=True):
    """Answer of `GET /v1/metadata/id`."""

    id: str
    scope: ServerScope


class Deployment(msgspec.Struct, frozen=True):
    """Answer of `GET /v1/metadata/deployment`."""

    attributes: list[str]


# --- associations -----------------------------------------------------------------------------------------------------


class AssociationCreateOrUpdateInfo(msgspec.Struct, frozen=True, rename="camel"):
    """An association to create; subject None is `:.namespace:name-type`. The schema is registered there first."""

    subject: str | None = None
    association_type: str | None = None
    lifecycle: str | None = None
    frozen: bool | None = None
    schema: RegisterSchemaRequest | None = None
    normalize: bool | None = None


class AssociationCreateOrUpdateRequest(msgspec.Struct, frozen=True, rename="camel"):
    """Associations of one resource to create, all or none."""

    resource_name: str | None = None
    resource_namespace: str | None = None
    resource_id: str | None = None
    resource_type: str | None = None
    associations: list[AssociationCreateOrUpdateInfo] | None = None


class AssociationOp(msgspec.Struct, frozen=True, rename="camel"):
    """One step of a batch: CREATE, UPSERT or DELETE. A DELETE has only a type and cascadeLifecycle."""

    op_type: str | None = None
    subject: str | None = None
    association_type: str | None = None
    lifecycle: str | None = None
    frozen: bool | None = None
    schema: RegisterSchemaRequest | None = None
    normalize: bool | None = None
    cascade_lifecycle: bool | None = None


class AssociationOpRequest(msgspec.Struct, frozen=True, rename="camel"):
    """Steps for one resource."""

    resource_name: str | None = None
    resource_namespace: str | None = None
    resource_id: str | None = None
    resource_type: str | None = None
    associations: list[AssociationOp] | None = None


class AssociationBatchRequest(msgspec.Struct, frozen=True):
    """Steps for several resources, each with a result of its own."""

    requests: list[AssociationOpRequest] | None = None


class AssociationGetRequest(msgspec.Struct, frozen=True, rename="camel"):
    """The associations of a resource by id, or by namespace and name."""

    resource_name: str | None = None
    resource_namespace: str | None = None
    resource_id: str | None = None
    resource_type: str | None = None
    association_types: list[str] | None = None
    lifecycle: str | None = None


class AssociationBatchGetRequest(msgspec.Struct, frozen=True):
    """Associations of several resources."""

    requests: list[AssociationGetRequest] | None = None


class ExtendedSchema(SubjectVersionBody, frozen=True, omit_defaults=True, rename="camel"):
    """A version with the associations of its subject."""

    associations: list[Association] = msgspec.field(default_factory=list)


class AssociationInfo(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Result of one association of a request; schema is the version that was registered for it."""

    subject: str
    association_type: str
    lifecycle: str
    frozen: bool | None = None
    schema: SubjectVersionBody | None = None


class AssociationResponse(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A resource and the associations that were created for it."""

    resource_name: str = ""
    resource_namespace: str = ""
    resource_id: str = ""
    resource_type: str = ""
    associations: list[AssociationInfo] = []


class AssociationResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """Result of one request of a batch."""

    error: ErrorMessage | None = None
    result: AssociationResponse | None = None


class AssociationBatchResponse(msgspec.Struct, frozen=True):
    """Results in the order of the requests."""

    results: list[AssociationResult]


# --- keys of the DEK registry -----------------------------------------------------------------------------------------


class CreateKekRequest(msgspec.Struct, frozen=True, rename="camel"):
    """A KMS key to register as a KEK. `deleted` restores a soft-deleted one, or creates one that is soft-deleted."""

    name: str | None = None
    kms_type: str | None = None
    kms_key_id: str | None = None
    kms_props: dict[str, str] | None = None
    doc: str | None = None
    shared: bool | None = None
    deleted: bool | None = None


class CreateDekRequest(msgspec.Struct, frozen=True, rename="camel"):
    """A data key to register. Without key material the server generates one, if the KEK that wraps it is shared."""

    subject: str | None = None
    version: Int32 | None = None
    algorithm: str | None = None
    encrypted_key_material: str | None = None
    deleted: bool | None = None


# --- exporters --------------------------------------------------------------------------------------------------------


class ExporterRequest(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """An exporter to create, or changes to one: absent members stay as they are.

    contextType AUTO (a context named after the exporter), CUSTOM (the context given), NONE (contexts stay as they are)
    or DEFAULT (the default one); subjects are names or patterns with *; formats have ${subject} or ${kek} in them.
    """

    name: str | None = None
    context_type: str | UnsetType | None = UNSET
    context: str | UnsetType | None = UNSET
    subjects: list[str] | UnsetType | None = UNSET
    subject_rename_format: str | UnsetType | None = UNSET
    kek_rename_format: str | UnsetType | None = UNSET
    config: dict[str, str] | UnsetType | None = UNSET


class Exporter(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Definition of an exporter in a response; credentials in its config are hidden."""

    name: str
    context_type: str = ""
    context: str = ""
    subjects: list[str] = []
    subject_rename_format: str = ""
    kek_rename_format: str = ""
    config: dict[str, str] = {}


class ExporterName(msgspec.Struct, frozen=True):
    """Response to every change of an exporter."""

    name: str


class ExporterStatus(msgspec.Struct, frozen=True):
    """Progress of an exporter: state STARTING, RUNNING, PAUSED or ERROR; ts is milliseconds since 1970 UTC."""

    name: str
    state: str
    offset: int
    ts: int
    trace: str = ""
