"""Bodies of requests and responses.

The specification leaves most members optional; null means absent.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from stele.core.policy_json import PolicyJson

MEDIA_TYPE = "application/vnd.openschema.v1+json"
"""Media type of all bodies; a client that names it at the root means this dialect."""


class _Body(msgspec.Struct, frozen=True, rename="camel"):
    """Base of all bodies; unknown members are ignored."""


class SubjectInput(_Body, frozen=True):
    """A subject to create or to change; what is absent stays as it is."""

    tenant: str
    namespace: str
    subject: str
    status: str
    app: str | None = None
    description: str | None = None
    compatibility: str | None = None
    coordinate: str | None = None


class SubjectBody(_Body, frozen=True):
    """A subject.

    Times are UTC, to the millisecond. `coordinate` is `group:artifact:version` of a package. `steleCompatibility`, an
    extension, is present if no compatibility level expresses the policy exactly.
    """

    subject: str
    namespace: str
    tenant: str
    app: str
    description: str
    compatibility: str
    coordinate: str
    status: str
    created_time: str
    last_modified_time: str
    stele_compatibility: PolicyJson | UnsetType = UNSET


class SchemaInput(_Body, frozen=True):
    """A schema to register.

    The definition is text, or JSON if the format is. Clients choose neither id nor version.
    """

    schema_definition: msgspec.Raw | UnsetType = UNSET
    serialization: str | None = None
    name: str | None = None
    comment: str | None = None
    validator: str | None = None


class SchemaInputDoc(_Body, frozen=True):
    """The same as `SchemaInput`, for the OpenAPI document."""

    schema_definition: Any
    serialization: str | None = None
    name: str | None = None
    comment: str | None = None
    validator: str | None = None


class SchemaBody(_Body, frozen=True):
    """A schema with its numbers; the definition is JSON if its author sent JSON, else text."""

    name: str
    id: str
    comment: str
    serialization: str
    schema_definition: Any
    validator: str
    version: int


class SubjectWithSchema(SubjectBody, frozen=True, kw_only=True):
    """A subject with one of its schemas, and the format of the schema."""

    format: str
    schema: SchemaBody


class SubjectNames(_Body, frozen=True):
    """Names of subjects."""

    name: list[str]


class VersionNumbers(_Body, frozen=True):
    """Version numbers."""

    version: list[int]


class SingleVersion(_Body, frozen=True):
    """A version number."""

    version: int


class SchemaLocation(_Body, frozen=True):
    """Subject and version of a schema."""

    subject: str
    version: int


class SchemaIdBody(_Body, frozen=True):
    """The id of a schema."""

    id: str


class CheckInput(_Body, frozen=True):
    """A schema to check: whole, or only its definition."""

    schema: msgspec.Raw


class CheckInputDoc(_Body, frozen=True):
    """The same as `CheckInput`, for the OpenAPI document."""

    schema: Any


class CompatibilityAnswer(_Body, frozen=True):
    """Whether a schema is compatible with one version."""

    is_compatible: bool


class ConfigInput(_Body, frozen=True):
    """The compatibility to set."""

    compatibility: str


class ConfigBody(_Body, frozen=True, omit_defaults=True):
    """The compatibility of a subject; `steleCompatibility` as in `SubjectBody`."""

    compatibility: str
    stele_compatibility: PolicyJson | UnsetType = UNSET
