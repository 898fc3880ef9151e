"""Records without a frame, all of one schema that the caller names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from stele.spark.engines.arrow import Column
from stele.spark.wires.base import FrameParts, Framer, ResolvedId

if TYPE_CHECKING:
    from stele.client.snapshot import ResolvedSchema
    from stele.spark.registry import RegistryLike, SchemaLookup


@dataclass(frozen=True, slots=True)
class Unframed:
    """Bare payloads, written with the schema of this id."""

    schema_id: int
    name: str = "unframed"
    id_type = pa.int32()
    id_label = "schema id"
    needs_headers = False

    def split(self, values: Column, headers: Column | None) -> FrameParts:
        """Take a binary column apart; see `Wire.split`. Every record has the given id."""
        del headers
        values = values.cast(pa.binary())
        ids = pc.if_else(values.is_valid(), pa.scalar(self.schema_id, pa.int32()), None)
        return FrameParts(ids, values, pa.nulls(len(values), pa.string()))

    def resolve_id(self, number: Any, lookup: SchemaLookup) -> ResolvedId | None:
        """Return the schema of an id; see `Wire.resolve_id`."""
        schema = lookup.find_schema(number)
        return None if schema is None else ResolvedId(schema, message="")

    def framer(self, writer: ResolvedSchema, message: str, registry: RegistryLike) -> Framer:
        """Return a framer that adds no frame; see `Wire.framer`."""
        del writer, message, registry
        return UnframedFramer()


@dataclass(frozen=True, slots=True)
class UnframedFramer:
    """Returns payloads unchanged; see `Framer`."""

    def __call__(self, payloads: Column, indexes: bytes) -> tuple[Column, Column | None]:
        """Frame payloads; see `Framer`."""
        del indexes
        return payloads, None
