"""Confluent's two frames: the id before the payload, and the guid in a record header."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from stele.errors import FrameError, Invalid
from stele.spark.engines.arrow import Column
from stele.spark.wires.base import (
    HEADERS,
    FrameParts,
    Framer,
    ResolvedId,
    first_header,
    prepend_frame,
    read_ids,
    split_heads,
)
from stele.wire import confluent
from stele.wire.confluent import RecordField

if TYPE_CHECKING:
    from stele.client.snapshot import ResolvedSchema
    from stele.spark.registry import RegistryLike, SchemaLookup

_GUID_END: Final = 17


@dataclass(frozen=True, slots=True)
class Prefix:
    """`00`, the id in four bytes, the payload. Engines read this frame, so records are passed on unchanged."""

    name: str = "confluent"
    id_type = pa.int32()
    id_label = "schema id"
    needs_headers = False

    def split(self, values: Column, headers: Column | None) -> FrameParts:
        """Take a binary column apart; see `Wire.split`."""
        del headers
        heads, payloads = split_heads(values, 5)
        ids, reasons = read_ids(heads, lambda head: confluent.unframe(head)[0], self.id_type)
        return FrameParts(ids, payloads, reasons)

    def resolve_id(self, number: Any, lookup: SchemaLookup) -> ResolvedId | None:
        """Return the schema of an id; see `Wire.resolve_id`."""
        schema = lookup.find_schema(number)
        return None if schema is None else ResolvedId(schema)

    def framer(self, writer: ResolvedSchema, message: str, registry: RegistryLike) -> Framer:
        """Return the framer of a schema; see `Wire.framer`."""
        del message, registry
        return PrefixFramer(writer.id)


@dataclass(frozen=True, slots=True)
class PrefixFramer:
    """Puts the id of one schema before payloads; see `Framer`."""

    number: int

    def __call__(self, payloads: Column, indexes: bytes) -> tuple[Column, Column | None]:
        """Frame payloads; see `Framer`."""
        return prepend_frame(confluent.id_prefix(self.number) + indexes, payloads), None


@dataclass(frozen=True, slots=True)
class HeaderGuid:
    """`01` and the guid in the header `__value_schema_id`, or `__key_schema_id` if `field` is `key`.

    Records without the header are read by the id before their payload, as Confluent's clients do. Ids are text: the
    guid or the number.
    """

    field: RecordField = "value"
    name: str = "confluent-header"
    id_type = pa.string()
    id_label = "schema"
    needs_headers = True

    def split(self, values: Column, headers: Column | None) -> FrameParts:
        """Take a binary column apart; see `Wire.split`."""
        assert headers is not None
        guid_headers = first_header(headers, confluent.HEADER_NAMES[self.field])
        heads, rest = split_heads(values, 5)
        bare = guid_headers.is_null()
        own, own_reasons = read_ids(guid_headers, _read_header_guid, pa.string())
        near, near_reasons = read_ids(heads.filter(bare), _read_prefix_id, pa.string())
        places = _positions_among(bare)
        payloads = pc.if_else(bare, rest, values.cast(pa.binary()))
        indexes = pc.fill_null(pc.binary_slice(guid_headers, _GUID_END, 1 << 31), b"")
        ids = pc.coalesce(own, near.take(places))
        reasons = pc.coalesce(own_reasons, near_reasons.take(places))
        tombstones = values.is_null()
        return FrameParts(
            _null_where(ids, tombstones), payloads, _null_where(reasons, tombstones), pc.if_else(bare, None, indexes)
        )

    def resolve_id(self, number: Any, lookup: SchemaLookup) -> ResolvedId | None:
        """Return the schema of a guid or a number; see `Wire.resolve_id`."""
        schema = lookup.find_schema(int(number) if number.isdecimal() else UUID(number))
        return None if schema is None else ResolvedId(schema)

    def framer(self, writer: ResolvedSchema, message: str, registry: RegistryLike) -> Framer:
        """Return the framer of a schema; see `Wire.framer`. Raises `Invalid` if the server does not return guids."""
        del message, registry
        if not writer.guid:
            raise Invalid("the server did not return the guid of the schema, which the header needs")
        return HeaderFramer(UUID(writer.guid), confluent.HEADER_NAMES[self.field])


@dataclass(frozen=True, slots=True)
class HeaderFramer:
    """Puts the guid of one schema into a header; see `Framer`."""

    guid: UUID
    header: str

    def __call__(self, payloads: Column, indexes: bytes) -> tuple[Column, Column | None]:
        """Frame payloads; see `Framer`."""
        value = confluent.guid_header(self.guid) + indexes
        one = pa.array([[{"key": self.header, "value": value}]], HEADERS)
        return payloads, one.take(pa.array([0] * len(payloads), pa.int64()))


def _read_header_guid(value: bytes) -> str:
    frame = confluent.read_frame(b"", value)
    if not isinstance(frame.schema, UUID):
        raise FrameError("the record header has no guid")
    return str(frame.schema)


def _read_prefix_id(head: bytes) -> str:
    return str(confluent.unframe(head)[0])


def _positions_among(chosen: Column) -> Column:
    """Return for each chosen row its position among the chosen ones, null for the others."""
    counted = pc.subtract(pc.cumulative_sum(chosen.cast(pa.int64())), 1)
    return pc.if_else(chosen, counted, None)


def _null_where(column: Column, mask: Column) -> Column:
    return pc.if_else(mask, None, column)
