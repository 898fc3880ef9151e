"""Bodies of the DEK registry. ts is milliseconds since 1970 UTC; deleted is there only when it is true."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType

from stele.apis.confluent.entities import Int32


class CreateKekRequest(msgspec.Struct, frozen=True, rename="camel"):
    """A key of a KMS to register; deleted brings one back, or puts a deleted one there."""

    name: str | None = None
    kms_type: str | None = None
    kms_key_id: str | None = None
    kms_props: dict[str, str] | None = None
    doc: str | None = None
    shared: bool | None = None
    deleted: bool | None = None


class UpdateKekRequest(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Changes to a key: what is absent stays, null clears."""

    kms_props: dict[str, str] | UnsetType | None = UNSET
    doc: str | UnsetType | None = UNSET
    shared: bool | UnsetType | None = UNSET


class Kek(msgspec.Struct, frozen=True, rename="camel"):
    """A key encryption key: a key of a KMS by its id. shared lets the server wrap and unwrap data keys with it."""

    name: str
    kms_type: str
    kms_key_id: str
    kms_props: dict[str, str]
    doc: str | UnsetType
    shared: bool
    ts: int
    deleted: bool | UnsetType = UNSET


class CreateDekRequest(msgspec.Struct, frozen=True, rename="camel"):
    """A data key to register; without key material the server makes one, if the key that wraps it is shared."""

    subject: str | None = None
    version: Int32 | None = None
    algorithm: str | None = None
    encrypted_key_material: str | None = None
    deleted: bool | None = None


class Dek(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A data encryption key; material is base64, and there unwrapped only when the server can unwrap it."""

    kek_name: str
    subject: str
    version: int
    algorithm: str
    encrypted_key_material: str
    key_material: str | None = None
    ts: int = 0
    deleted: bool | None = None
