"""What the registry's API takes and gives, as typed values.

JSON names are the API's own camelCase ones; fields a server leaves out get the defaults below, fields this client does
not know are ignored, so the same types fit every generation of server. Source:
docs/protocols/confluent.md#objects.
"""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from stele.core.findings import Finding
from stele.core.policy_form import PolicyForm

Version = int | Literal["latest"]
"""A version number, counted from 1, or the newest live version."""


class SchemaReference(msgspec.Struct, frozen=True, rename="camel"):
    """One schema named by another: name is what the text says, subject and version where it is registered."""

    name: str
    subject: str
    version: int


class Metadata(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Free facts about a schema: tags by field path, properties, and which properties are secret."""

    tags: dict[str, list[str]] = {}
    properties: dict[str, str] = {}
    sensitive: list[str] = []


class Rule(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One data rule; the registry stores it, clients run it."""

    name: str
    doc: str = ""
    kind: str = "TRANSFORM"
    mode: str = "WRITEREAD"
    type: str = ""
    tags: list[str] = []
    params: dict[str, str] = {}
    expr: str = ""
    on_success: str | None = None
    on_failure: str | None = None
    disabled: bool = False


class RuleSet(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The data rules of a schema by phase."""

    migration_rules: list[Rule] = []
    domain_rules: list[Rule] = []
    encoding_rules: list[Rule] = []
    enable_at: str | None = None


class Schema(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A schema to register, look up or check.

    text         the document; '' with metadata or rule_set means "the newest version's text"
    schema_type  AVRO, PROTOBUF, JSON, or another type the server knows
    version, id  only for imports, and to insist on the next number
    """

    text: str = msgspec.field(name="schema")
    schema_type: str = "AVRO"
    references: tuple[SchemaReference, ...] = ()
    metadata: Metadata | None = None
    rule_set: RuleSet | None = None
    version: int | None = None
    id: int | None = None


class RegisteredSchema(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A schema as a registry knows it.

    Which fields a server fills depends on the call and its generation: an empty text, or 0 for id or version, means
    "not said". ts is milliseconds since 1970; max_id comes only when asked for.
    """

    text: str = msgspec.field(name="schema", default="")
    schema_type: str = "AVRO"
    references: tuple[SchemaReference, ...] = ()
    subject: str = ""
    version: int = 0
    id: int = 0
    guid: str = ""
    metadata: Metadata | None = None
    rule_set: RuleSet | None = None
    ts: int | None = None
    deleted: bool = False
    max_id: int | None = None

    def as_schema(self) -> Schema:
        """The same document as something to register elsewhere, without its ids."""
        return Schema(self.text, self.schema_type, self.references, self.metadata, self.rule_set)


class SubjectVersion(msgspec.Struct, frozen=True):
    """One place a schema is registered at."""

    subject: str
    version: int


class ContextId(msgspec.Struct, frozen=True):
    """The id a schema has in one context."""

    context: str
    id: int


class ServerVersion(msgspec.Struct, frozen=True, rename="camel"):
    """What the server says about its build."""

    version: str = ""
    commit_id: str = ""


class ClusterId(msgspec.Struct, frozen=True):
    """What the server says about its cluster: id, and the clusters it belongs to by kind."""

    id: str = ""
    clusters: dict[str, str] = {}


class Compatibility(msgspec.Struct, frozen=True, rename={"compatible": "is_compatible"}):
    """The answer of a compatibility check; messages only come when asked for."""

    compatible: bool
    messages: tuple[str, ...] = ()


class Config(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The settings of a subject, a context or the whole registry; None is "not set here".

    stele_compatibility is there when compatibility is only the nearest stricter level; other registries have no such.
    """

    compatibility: str | None = None
    alias: str | None = None
    alias_for_deks: str | None = None
    normalize: bool | None = None
    validate_fields: bool | None = None
    validate_new_schemas: bool | None = None
    validate_rules: bool | None = None
    compatibility_policy: str | None = None
    compatibility_group: str | None = None
    default_metadata: Metadata | None = None
    override_metadata: Metadata | None = None
    default_rule_set: RuleSet | None = None
    override_rule_set: RuleSet | None = None
    stele_compatibility: PolicyForm | None = None


class ConfigUpdate(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Changes to settings: what is left out stays as it is, None clears.

    compatibility alone replaces the whole policy; stele_compatibility sets one that no level names.
    """

    compatibility: str | UnsetType | None = UNSET
    alias: str | UnsetType | None = UNSET
    alias_for_deks: str | UnsetType | None = UNSET
    normalize: bool | UnsetType | None = UNSET
    validate_fields: bool | UnsetType | None = UNSET
    validate_new_schemas: bool | UnsetType | None = UNSET
    validate_rules: bool | UnsetType | None = UNSET
    compatibility_policy: str | UnsetType | None = UNSET
    compatibility_group: str | UnsetType | None = UNSET
    default_metadata: Metadata | UnsetType | None = UNSET
    override_metadata: Metadata | UnsetType | None = UNSET
    default_rule_set: RuleSet | UnsetType | None = UNSET
    override_rule_set: RuleSet | UnsetType | None = UNSET
    stele_compatibility: PolicyForm | UnsetType | None = UNSET


class Association(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A subject a resource is bound to.

    resource_namespace  the id of the Kafka cluster of a topic
    association_type    `key` or `value`
    lifecycle           STRONG: the subject is the resource's alone; WEAK
    """

    subject: str
    resource_name: str = ""
    resource_namespace: str = ""
    resource_id: str = ""
    resource_type: str = "topic"
    association_type: str = ""
    lifecycle: str = "WEAK"
    frozen: bool = False
    guid: str = ""


class ReferenceText(msgspec.Struct, frozen=True):
    """A referenced document for a stateless check: its name and its text."""

    name: str
    schema: str


class Older(msgspec.Struct, frozen=True, omit_defaults=True):
    """A schema to check against, with the documents it refers to."""

    schema: str
    references: tuple[ReferenceText, ...] = ()


class CheckResult(msgspec.Struct, frozen=True):
    """The verdict of a stateless check, with its reasons."""

    compatible: bool
    findings: tuple[Finding, ...] = ()
