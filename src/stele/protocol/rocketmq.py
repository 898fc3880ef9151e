"""The API's objects, member for member: clients in Java refuse members they do not know, so nothing is added to those.

Numbers are 64 bits wide; null stands for a record id where a version has none (see `translate.record_id`).
"""

from __future__ import annotations

import msgspec

from stele.core.policy_json import PolicyJson


class _Body(msgspec.Struct, frozen=True, rename="camel"):
    """What all objects share; members unknown here are ignored, null is as good as absent."""


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
    """What registering and updating answer."""

    record_id: int
    version: int


class DeletedRecord(_Body, frozen=True):
    """What deleting answers: the newest record that went, or the only one."""

    record_id: int | None


class Dependency(_Body, frozen=True):
    """Coordinates of a package with the classes of a schema."""

    group_id: str
    artifact_id: str
    version: str


class SubjectRecord(_Body, frozen=True):
    """A record as one of its subjects sees it: `cluster/tenant/subject`, `tenant/schema`."""

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


class SchemaRecord(_Body, frozen=True):
    """A version of a schema, and the subjects bound to it. schema_id is what all its record ids begin with."""

    schema: str
    schema_id: int
    version: int
    record_id: int | None
    idl: str
    dependency: Dependency | None
    subjects: list[BoundSubject]
    type: str


class TenantSchema(_Body, frozen=True):
    """Where a schema is."""

    tenant: str
    schema: str


class SchemaAudit(_Body, frozen=True):
    """Who made a schema and changed it last, and when: milliseconds since 1970."""

    desc: str
    created_by: str
    created_time: int
    last_modified_by: str
    last_modified_time: int


class SchemaMeta(_Body, frozen=True, omit_defaults=True):
    """What describes a schema. steleCompatibility is there when no level says the policy exactly: an extension."""

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

    schema_records: list[SchemaRecord]


class SchemaDescription(_Body, frozen=True):
    """A schema with all there is to know about it."""

    qualified_name: TenantSchema
    audit: SchemaAudit
    meta: SchemaMeta
    details: SchemaDetails
