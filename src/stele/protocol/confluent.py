"""JSON bodies of the Confluent API: answers of the server, and requests of the client and the migration.

Fields at their default are omitted, as the original omits empty values: None means "not given". Unknown members are
ignored. Bodies that only the server needs are in `apis/confluent`.
"""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as BinasciiError
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from stele.core.metadata import Metadata
from stele.core.policy_json import PolicyJson
from stele.errors import DecodeError

MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"
"""Media type of all bodies."""

Int32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]


class ErrorMessage(msgspec.Struct, frozen=True):
    """Body of every error: the HTTP status, or that times 100 plus a number, and a sentence."""

    error_code: int
    message: str


# --- schemas ----------------------------------------------------------------------------------------------------------


class SchemaReference(msgspec.Struct, frozen=True):
    """A schema that the text refers to by `name`; version -1 is the latest, and the number at that time is stored."""

    name: str
    subject: str
    version: Int32 = -1


class Rule(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """One rule of a data contract: a condition on data or a transformation of it. Registries store it, clients run it.

    Attributes:
        name: Name of the rule, unique in its rule set.
        doc: Free text.
        kind: TRANSFORM (also if it is None) or CONDITION.
        mode: WRITE, READ, WRITEREAD (also if it is None), UPGRADE, DOWNGRADE or UPDOWN.
        type: Name of the executor of the rule: CEL, JSONATA, ENCRYPT …
        tags: The rule applies to fields with one of these tags; without tags, to all fields.
        params: Settings of the executor.
        expr: Expression of the rule, in the language of its type.
        on_success: Action after a success, or two with a comma between for the two directions of a mode.
        on_failure: Action after a failure, likewise.
        disabled: Whether the rule does not run.

    Servers always answer with kind, mode and disabled.
    """

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
    """The rules of a schema by phase: between versions, on values, and on encoded bytes.

    enable_at says where they run: ALL, CLIENT, GATEWAY, SERVER or NONE.
    """

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

    No schema means the text of the latest version. version 0 is the next one, -1 requires the latest; id -1 allows any
    id.
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


class SubjectVersion(msgspec.Struct, frozen=True):
    """The number of a version."""

    subject: str
    version: int


class ContextId(msgspec.Struct, frozen=True):
    """The id of a schema in one context."""

    context: str
    id: int


class CompatibilityCheckResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """Whether a schema may be registered. messages has the reasons against it, if the request asks for them."""

    is_compatible: bool
    messages: list[str] | None = None


# --- settings ---------------------------------------------------------------------------------------------------------


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


class LevelInForce(msgspec.Struct, frozen=True):
    """The level in force after the settings of a level were removed, as Karapace answers."""

    compatibility: str


class ConfigUpdateRequest(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Changes to the settings of a level: an absent member stays, null clears.

    A level (`compatibility`) alone replaces the whole policy. That includes the parts that only `steleCompatibility`
    shows: a first version, a different range in one direction, validators. `steleCompatibility` sets an exact policy.
    Together with a level, the policy must be one that is shown as that level.
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


# --- associations -----------------------------------------------------------------------------------------------------


class Association(msgspec.Struct, frozen=True, rename="camel"):
    """A subject to which a resource is bound. The only type of resource is a topic of a Kafka cluster.

    Attributes:
        subject: Name of the subject, qualified if it is in another context than the default one.
        guid: Name of the association.
        resource_name: Name of the topic.
        resource_namespace: Id of the topic's Kafka cluster.
        resource_id: Id of the topic.
        resource_type: `topic`.
        association_type: `key` or `value`.
        lifecycle: STRONG (the subject belongs only to this resource) or WEAK.
        frozen: Whether the association can no longer be changed.
    """

    subject: str
    guid: str = ""
    resource_name: str = ""
    resource_namespace: str = ""
    resource_id: str = ""
    resource_type: str = "topic"
    association_type: str = ""
    lifecycle: str = "WEAK"
    frozen: bool = False


# --- encryption keys --------------------------------------------------------------------------------------------------


class Kek(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A key encryption key: a key of a key management service (KMS), which wraps data keys.

    Attributes:
        name: Name of the key in the registry.
        kms_type: Kind of the KMS, such as `aws-kms`.
        kms_key_id: Id of the key in the KMS.
        kms_props: Settings of the KMS. Servers do not return the secret ones.
        doc: Free text.
        shared: Whether the server may use the key, too, so that it can create and unwrap data keys.
        ts: When it was last changed, in milliseconds since 1970 UTC. Only in answers.
        deleted: True for a soft-deleted one.
    """

    name: str
    kms_type: str
    kms_key_id: str
    kms_props: dict[str, str] | None = None
    doc: str | None = None
    shared: bool | None = None
    ts: int | None = None
    deleted: bool | None = None


class UpdateKekRequest(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Changes to a KEK: what is left out stays, None clears."""

    kms_props: dict[str, str] | UnsetType | None = UNSET
    doc: str | UnsetType | None = UNSET
    shared: bool | UnsetType | None = UNSET


class Dek(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A version of a data encryption key (DEK) of a subject.

    Attributes:
        kek_name: Name of the KEK that wraps it.
        subject: The subject whose data it encrypts.
        version: Number of the version, from 1.
        algorithm: AES128_GCM, AES256_GCM or AES256_SIV.
        encrypted_key_material: The wrapped key in base64.
        key_material: The plain key in base64, if the server can unwrap it.
        ts: When it was last changed, in milliseconds since 1970 UTC.
        deleted: True for a soft-deleted one.
    """

    kek_name: str = ""
    subject: str = ""
    version: int = 0
    algorithm: str = ""
    encrypted_key_material: str | None = None
    key_material: str | None = None
    ts: int = 0
    deleted: bool | None = None

    def __repr__(self) -> str:
        return f"Dek({self.kek_name!r}, {self.subject!r}, {self.version}, {self.algorithm!r})"  # never the key

    def wrapped_key(self) -> bytes | None:
        """Return the wrapped key, None if the server sent none. Raises `DecodeError` for invalid base64."""
        return _decode_base64(self.encrypted_key_material)

    def plain_key(self) -> bytes | None:
        """Return the plain key, None if the server does not unwrap it. Raises `DecodeError` for invalid base64."""
        return _decode_base64(self.key_material)


def _decode_base64(material: str | None) -> bytes | None:
    if material is None:
        return None
    try:
        return b64decode(material, validate=True)
    except (BinasciiError, ValueError):
        raise DecodeError("the server sent a key that is not base64") from None


# --- bulk import ------------------------------------------------------------------------------------------------------


class ImportedVersion(msgspec.Struct, frozen=True, rename="camel"):
    """A version with its number and id; ts is when it was registered, in milliseconds since 1970 UTC."""

    subject: str
    version: Int32
    id: Int32
    schema: str
    schema_type: str | None = None
    references: list[SchemaReference] | None = None
    metadata: Metadata | None = None
    rule_set: RuleSet | None = None
    deleted: bool = False
    ts: int | None = None


class ImportedKek(msgspec.Struct, frozen=True, rename="camel"):
    """A KEK of a context, `.` for the default one. Stored secrets stay if none are sent."""

    name: str
    kms_type: str
    kms_key_id: str
    context: str = "."
    kms_props: dict[str, str] | None = None
    doc: str | None = None
    shared: bool = False
    ts: int | None = None
    deleted: bool = False


class ImportedDek(msgspec.Struct, frozen=True, rename="camel"):
    """A wrapped data key; context is that of the KEK that wraps it."""

    kek_name: str
    subject: str
    version: Int32
    algorithm: str
    encrypted_key_material: str
    context: str = "."
    ts: int | None = None
    deleted: bool = False


class ImportedExporter(msgspec.Struct, frozen=True, rename="camel"):
    """A definition of an exporter. Hidden credentials leave the stored ones.

    state and offset belong to the source's log: the imported exporter is paused, and starts from the beginning.
    """

    name: str
    context_type: str = "AUTO"
    context: str = ""
    subjects: list[str] = []
    subject_rename_format: str = ""
    kek_rename_format: str = ""
    config: dict[str, str] = {}
    state: str = "STARTING"
    offset: int = 0
    ts: int | None = None


class ImportRequest(msgspec.Struct, frozen=True):
    """Elements to import, each version after those it refers to. Every level concerned must be in IMPORT mode."""

    versions: list[ImportedVersion] = []
    keks: list[ImportedKek] = []
    deks: list[ImportedDek] = []
    associations: list[Association] = []
    exporters: list[ImportedExporter] = []


class ImportRefusal(msgspec.Struct, frozen=True):
    """An element that was refused: kind is version, kek, dek, association or exporter; number is its version or 0."""

    kind: str
    name: str
    number: int
    error_code: int
    message: str


class ImportResponse(msgspec.Struct, frozen=True):
    """The refused elements, in the order of the request; all others were imported."""

    refused: list[ImportRefusal]


class LevelConfigsRequest(msgspec.Struct, frozen=True):
    """Levels whose settings and modes are requested: subjects, contexts as `:.team:`, '' for the default context."""

    levels: list[str] = []


class LevelConfig(msgspec.Struct, frozen=True, omit_defaults=True):
    """The settings and the mode that are set at a level; None for none."""

    level: str
    config: Config | None = None
    mode: str | None = None


# --- the server -------------------------------------------------------------------------------------------------------


class ServerVersion(msgspec.Struct, frozen=True, rename="camel"):
    """The release of a server, and the commit that it was built from."""

    version: str = ""
    commit_id: str = ""
