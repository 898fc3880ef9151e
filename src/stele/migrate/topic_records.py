"""Records of a `_schemas` topic: decodes and encodes them, as Confluent, Karapace and Redpanda write them.

Keys and values are JSON; the key's `keytype` names the kind of the record. Source:
docs/protocols/confluent.md#the-_schemas-topic.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, NamedTuple, TypeVar

import msgspec

from stele.core.metadata import Metadata
from stele.errors import InvalidRequest
from stele.migrate.reading import decode_json
from stele.protocol.confluent import Config, RuleSet, SchemaReference

T = TypeVar("T")


class Flavour(StrEnum):
    """The make of registry that writes the records."""

    CONFLUENT = "confluent"
    KARAPACE = "karapace"
    REDPANDA = "redpanda"


class Record(NamedTuple):
    """One record in a topic.

    offset and ts (milliseconds since 1970 UTC) are None where they are not known; place names it in messages.
    """

    key: bytes | None
    value: bytes | None
    offset: int | None = None
    place: str = "record"
    ts: int | None = None


class Key(msgspec.Struct, frozen=True, rename="camel"):
    """The key of a record.

    seq and node are Redpanda's: the offset the record was meant for, and the id of the node that wrote it.
    The last members are those of associations (ASSOC) and of keys (KEK, DEK), which are in a topic of their own.
    """

    keytype: str
    subject: str | None = None
    version: int | None = None
    magic: int = 0
    tenant: str | None = None
    context: str | None = None
    seq: int | None = None
    node: int | None = None
    resource_name: str = ""
    resource_namespace: str = ""
    resource_type: str = ""
    association_type: str = ""
    name: str = ""
    kek_name: str = ""
    algorithm: str = ""


class SchemaValue(msgspec.Struct, frozen=True, rename="camel"):
    """Value of a SCHEMA record."""

    version: int
    id: int
    schema: str
    subject: str | None = None
    schema_type: str | None = None
    references: list[SchemaReference] | None = None
    metadata: Metadata | None = None
    rule_set: RuleSet | None = None
    deleted: bool | None = False


class ModeValue(msgspec.Struct, frozen=True):
    """Value of a MODE record."""

    mode: str


class DeleteValue(msgspec.Struct, frozen=True):
    """Value of a DELETE_SUBJECT record: all versions up to this one are soft-deleted."""

    version: int


class AssociationValue(msgspec.Struct, frozen=True, rename="camel"):
    """Value of an ASSOC record."""

    subject: str
    guid: str = ""
    resource_id: str = ""
    lifecycle: str = "WEAK"
    frozen: bool = False


class KekValue(msgspec.Struct, frozen=True, rename="camel"):
    """Value of a KEK record. Unlike the API, it contains the secrets in kmsProps."""

    kms_type: str
    kms_key_id: str
    kms_props: dict[str, str] | None = None
    doc: str | None = None
    shared: bool = False
    deleted: bool = False


class DekValue(msgspec.Struct, frozen=True, rename="camel"):
    """Value of a DEK record."""

    encrypted_key_material: str
    deleted: bool = False


_key = msgspec.json.Decoder(Key)
_VALUES = (SchemaValue, ModeValue, DeleteValue, Config, AssociationValue, KekValue, DekValue)
_decoders: dict[type, msgspec.json.Decoder[Any]] = {kind: msgspec.json.Decoder(kind) for kind in _VALUES}
_MAGIC = {"SCHEMA": {0, 1}}


def read_key(record: Record) -> Key:
    """Return the key of a record. Raises `InvalidRequest` with the name of the record."""
    if record.key is None:
        raise InvalidRequest(f"{record.place}: the record has no key")
    key = decode_json(_key.decode, record.key, f"{record.place}: the key is not what the format promises")
    if key.magic not in _MAGIC.get(key.keytype, {0}):
        raise InvalidRequest(f"{record.place}: a {key.keytype} key of an unknown generation, magic {key.magic}")
    if (key.seq is None) != (key.node is None):
        raise InvalidRequest(f"{record.place}: the key needs either both seq and node, or neither")
    return key


def read_value(record: Record, kind: type[T]) -> T:
    """Return the value of a record that has one. Raises `InvalidRequest` with the name of the record."""
    assert record.value is not None
    value: T = decode_json(
        _decoders[kind].decode, record.value, f"{record.place}: the value is not what the format promises"
    )
    return value


def encode_json(members: dict[str, Any]) -> bytes:
    """Return the members as JSON in the given order, since compaction compares keys byte by byte."""
    return msgspec.json.encode(members)
