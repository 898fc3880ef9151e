"""JSON bodies of the RocketMQ API that the server answers with and the client reads.

Java's clients reject unknown members, so nothing is added to these bodies. Numbers are 64 bits wide. A version without
a record id (see `apis.rocketmq.translate.record_id`) has null for it.
"""

from __future__ import annotations

import msgspec

from stele.core.policy_json import PolicyJson


class _Body(msgspec.Struct, frozen=True, rename="camel"):
    """Base of all bodies. Unknown members are ignored; null means the same as absent."""


class NewSchema(_Body, frozen=True):
    """A new schema: its text (IDL), type and policy."""

    schema_idl: str
    schema_type: str | None = None
    owner: str | None = None
    compatibility: str | None = None
    desc: str | None = None


class SchemaUpdate(_Body, frozen=True):
    """The next version of a schema; an owner or a description that is empty stays as it is."""

    schema_idl: str
    owner: str | None = None
    desc: str | None = None


class RecordVersion(_Body, frozen=True):
    """Answer to registering and updating: the record and its version."""

    record_id: int
    version: int


class DeletedRecord(_Body, frozen=True):
    """Answer to deleting: the newest record that was deleted, or the only one."""

    record_id: int | None


class Dependency(_Body, frozen=True):
    """Coordinates of a package with the classes of a schema."""

    group_id: str
    artifact_id: str
    version: str


class SubjectRecord(_Body, frozen=True):
    """A record in one of its subjects: `cluster/tenant/subject`, `tenant/schema`, text (IDL) and type."""

    subject_full_name: str
    schema_full_name: str
    version: int
    record_id: int | None
    idl: str
    dependency: Dependency | None
    type: str


class BoundSubject(_Body, frozen=True):
    """A subject by its full name."""

    cluster: str
    tenant: str
    subject: str


class RecordWithSubjects(_Body, frozen=True):
    """A version of a schema, and the subjects bound to it; all record ids of the schema begin with schema_id."""

    schema: str
    schema_id: int
    version: int
    record_id: int | None
    idl: str
    dependency: Dependency | None
    subjects: list[BoundSubject]
    type: str


class TenantSchema(_Body, frozen=True):
    """Tenant and name of a schema."""

    tenant: str
    schema: str


class SchemaAudit(_Body, frozen=True):
    """The callers that created a schema and last changed it, with times (milliseconds since 1970)."""

    desc: str
    created_by: str
    created_time: int
    last_modified_by: str
    last_modified_time: int


class SchemaMeta(_Body, frozen=True, omit_defaults=True):
    """Attributes of a schema.

    `steleCompatibility`, an extension, is present if no level expresses the policy exactly.
    """

    type: str
    tenant: str
    schema_name: str
    compatibility: str
    owner: str
    unique_id: int
    namespace: str = msgspec.field(default_factory=str)
    stele_compatibility: PolicyJson | None = None


class SchemaDetails(_Body, frozen=True):
    """The records of a schema, oldest first."""

    schema_records: list[RecordWithSubjects]


class SchemaDescription(_Body, frozen=True):
    """A schema with all its attributes."""

    qualified_name: TenantSchema
    audit: SchemaAudit
    meta: SchemaMeta
    details: SchemaDetails
