"""Records without a frame, all of one schema that the caller names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from stele.spark.engines.arrow import Column
from stele.spark.wires.base import Found, Parts, Seal

if TYPE_CHECKING:
    from stele.client.snapshot import ResolvedSchema
    from stele.spark.registry.clients import RegistryLike
    from stele.spark.registry.snapshot import SchemaLookup


@dataclass(frozen=True, slots=True)
class Unframed:
    """Bare payloads, written with the schema of this id."""

    schema_id: int
    name: str = "unframed"
    id_type = pa.int32()
    what = "schema id"
    needs_headers = False

    def split(self, values: Column, headers: Column | None) -> Parts:
        """See `Wire`."""
        del headers
        values = values.cast(pa.binary())
        ids = pc.if_else(values.is_valid(), pa.scalar(self.schema_id, pa.int32()), None)
        return Parts(ids, values, pa.nulls(len(values), pa.string()))

    def find(self, number: Any, lookup: SchemaLookup) -> Found | None:
        """See `Wire`."""
        schema = lookup.find_schema(number)
        return None if schema is None else Found(schema, message="")

    def seal(self, writer: ResolvedSchema, message: str, registry: RegistryLike) -> Seal:
        """See `Wire`."""
        del writer, message, registry
        return UnframedSeal()


@dataclass(frozen=True, slots=True)
class UnframedSeal:
    """See `Seal`."""

    def __call__(self, payloads: Column, indexes: bytes) -> tuple[Column, Column | None]:
        """Frame payloads; see `Seal`."""
        del indexes
        return payloads, None
