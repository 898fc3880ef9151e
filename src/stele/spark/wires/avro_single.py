"""Avro's single-object encoding: a fingerprint of the schema before the payload.

No registry API finds a schema by that fingerprint in general. So the fingerprints of the subject's versions are
compared: the pinned ones first, then those that the registry has by then.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from stele.errors import DataError, Invalid
from stele.formats.avro import AVRO
from stele.spark.engines.arrow import Column
from stele.spark.registry import parse_avro
from stele.spark.wires.base import FrameParts, Framer, ResolvedId, prepend_frame, split_by_heads
from stele.wire import avro_single

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stele.client.snapshot import ResolvedSchema
    from stele.spark.registry import RegistryLike, SchemaLookup

_HEADER = 10


@dataclass(frozen=True, slots=True)
class SingleObject:
    """`C3 01`, the Rabin fingerprint, the payload; ids are fingerprints in hexadecimal digits."""

    name: str = "avro-single-object"
    id_type = pa.string()
    id_label = "schema fingerprint"
    needs_headers = False

    def split(self, values: Column, headers: Column | None) -> FrameParts:
        """Take a binary column apart; see `Wire.split`."""
        del headers
        return split_by_heads(values, _HEADER, lambda head: avro_single.unframe(head)[0].hex(), self.id_type)

    def resolve_id(self, number: Any, lookup: SchemaLookup) -> ResolvedId | None:
        """Return the version with this fingerprint; see `Wire.resolve_id`."""
        wanted = bytes.fromhex(number)
        pinned = [*lookup.pinned.snapshot.schemas, lookup.pinned.reader]
        schema = _find_by_rabin(wanted, pinned)
        if schema is None and lookup.subjects:
            fresh = lookup.query(("versions", number), lambda registry: registry.snapshot(subjects=lookup.subjects))
            schema = None if fresh is None else _find_by_rabin(wanted, fresh.schemas)
            if schema is None:
                lookup.remember_unknown(("versions", number))
        return None if schema is None else ResolvedId(schema)

    def framer(self, writer: ResolvedSchema, message: str, registry: RegistryLike) -> Framer:
        """Return the framer of a schema; see `Wire.framer`. Raises `Invalid` for a schema that is not Avro."""
        del message, registry
        if writer.schema_type != "AVRO":
            raise Invalid(f"single objects are Avro, the schema is {writer.schema_type}")
        return SingleObjectFramer(_rabin_of(writer))


@dataclass(frozen=True, slots=True)
class SingleObjectFramer:
    """Puts the fingerprint of one schema before payloads; see `Framer`."""

    rabin: bytes

    def __call__(self, payloads: Column, indexes: bytes) -> tuple[Column, Column | None]:
        """Frame payloads; see `Framer`."""
        return prepend_frame(avro_single.frame(self.rabin, indexes), payloads), None


def _find_by_rabin(rabin: bytes, schemas: Iterable[ResolvedSchema]) -> ResolvedSchema | None:
    for schema in schemas:
        try:
            if schema.schema_type == "AVRO" and _rabin_of(schema) == rabin:
                return schema
        except DataError:  # a schema that does not parse has no fingerprint
            continue
    return None


def _rabin_of(schema: ResolvedSchema) -> bytes:
    return AVRO.fingerprints(parse_avro(schema))["rabin"]
