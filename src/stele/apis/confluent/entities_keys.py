"""Bodies of the DEK registry. ts is milliseconds since 1970 UTC; deleted is there only when it is true."""

from __future__ import annotations

import msgspec

from stele.protocol.confluent import Dek, Int32, Kek, UpdateKekRequest

__all__ = ["CreateDekRequest", "CreateKekRequest", "Dek", "Kek", "UpdateKekRequest"]


class CreateKekRequest(msgspec.Struct, frozen=True, rename="camel"):
    """A key of a KMS to register; deleted brings one back, or puts a deleted one there."""

    name: str | None = None
    kms_type: str | None = None
    kms_key_id: str | None = None
    kms_props: dict[str, str] | None = None
    doc: str | None = None
    shared: bool | None = None
    deleted: bool | None = None


class CreateDekRequest(msgspec.Struct, frozen=True, rename="camel"):
    """A data key to register; without key material the server makes one, if the key that wraps it is shared."""

    subject: str | None = None
    version: Int32 | None = None
    algorithm: str | None = None
    encrypted_key_material: str | None = None
    deleted: bool | None = None
