"""Bodies of bulk imports, an extension of this API: what a registry shows of itself, to be put down as it is shown."""

from __future__ import annotations

import msgspec

from stele.apis.confluent.entities import Int32, RuleSet, SchemaReference
from stele.apis.confluent.entities_associations import Association
from stele.core.metadata import Metadata


class ImportedVersion(msgspec.Struct, frozen=True, rename="camel"):
    """A version under its own number and id; ts is when it was registered, in milliseconds since 1970 UTC."""

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
    """A KEK of a context, `.` for the default one; secrets that are there stay where none are sent."""

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
    """A definition of an exporter, and how far it is; hidden credentials leave those that are there."""

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
    """What to import; versions after those they refer to. Every level concerned has to be in IMPORT mode."""

    versions: list[ImportedVersion] = []
    keks: list[ImportedKek] = []
    deks: list[ImportedDek] = []
    associations: list[Association] = []
    exporters: list[ImportedExporter] = []


class ImportRefusal(msgspec.Struct, frozen=True):
    """What was not taken: kind is version, kek, dek, association or exporter; number its version or 0."""

    kind: str
    name: str
    number: int
    error_code: int
    message: str


class ImportResponse(msgspec.Struct, frozen=True):
    """What was refused, in the order of the request; everything else is there."""

    refused: list[ImportRefusal]
