"""RocketMQ's frame: a record id, which together with the subject names a version of a schema."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

from stele.client.request import JSON, CachePolicy, Request, build_path, json_decoder
from stele.client.snapshot import ResolvedSchema, SchemaSnapshot
from stele.errors import Invalid, NotFound
from stele.spark.engines.arrow import Column
from stele.spark.registry import get_client
from stele.spark.wires.base import FrameParts, Framer, ResolvedId, prepend_frame, split_by_heads
from stele.wire import rocketmq as wire

if TYPE_CHECKING:
    from stele.spark.registry import RegistryLike, SchemaLookup


class _Record(msgspec.Struct, rename="camel"):
    record_id: int | None
    idl: str
    type: str


@dataclass(frozen=True, slots=True)
class RocketMQ:
    """The record id in eight bytes, after `10` if the records are Avro; then the payload.

    form             `avro` or `json`: which of the two frames the topic has
    cluster, tenant  location of the subject; subject '' is that of the call
    """

    form: str = "avro"
    cluster: str = "default"
    tenant: str = "default"
    subject: str = ""
    name: str = "rocketmq"
    id_type = pa.int64()
    id_label = "record id"
    needs_headers = False

    def split(self, values: Column, headers: Column | None) -> FrameParts:
        """Take a binary column apart; see `Wire.split`."""
        del headers
        unframe, size = (wire.unframe_avro, 9) if self.form == "avro" else (wire.unframe_json, 8)
        return split_by_heads(values, size, lambda head: unframe(head)[0], self.id_type)

    def resolve_id(self, number: Any, lookup: SchemaLookup) -> ResolvedId | None:
        """Return the schema of a record id; see `Wire.resolve_id`.

        Raises `Invalid` if the registry is a snapshot, which holds no record ids.
        """
        if isinstance(lookup.registry, SchemaSnapshot):
            raise Invalid("a snapshot holds no record ids: reading the RocketMQ wire needs the registry")
        subject = self.subject or lookup.pinned.subject
        route = f"{self._subject_path(subject)}/recordId/{number}/schema"
        request = Request("GET", route, json_decoder(_Record), cache_policy=CachePolicy.IMMUTABLE, subject=subject)
        record = lookup.query((subject, number), lambda registry: registry.send(request), NotFound)
        return None if record is None else ResolvedId(ResolvedSchema(record.idl, record.type.upper()), message="")

    def framer(self, writer: ResolvedSchema, message: str, registry: RegistryLike) -> Framer:
        """Return the framer of a schema; see `Wire.framer`. Raises `NotFound` if the subject has no record with it."""
        del message
        if isinstance(registry, SchemaSnapshot):
            raise Invalid("a snapshot holds no record ids: writing the RocketMQ wire needs the registry")
        subject = self.subject or writer.subject
        route = f"{self._subject_path(subject)}/schema/schema"
        record = get_client(registry).send(
            Request("POST", route, json_decoder(_Record), body=writer.text.encode(), media=JSON, subject=subject)
        )
        if record.record_id is None:
            raise NotFound(f"the schema has no record id in the subject {subject!r}")
        frame = wire.frame_avro if self.form == "avro" else wire.frame_json
        return RocketMQFramer(frame(record.record_id, b""))

    def _subject_path(self, subject: str) -> str:
        where = ("cluster", self.cluster, "tenant", self.tenant, "subject", subject)
        return "/schema-registry/v1" + build_path(*where)


@dataclass(frozen=True, slots=True)
class RocketMQFramer:
    """Puts the record id of one schema before payloads; see `Framer`."""

    prefix: bytes

    def __call__(self, payloads: Column, indexes: bytes) -> tuple[Column, Column | None]:
        """Frame payloads; see `Framer`."""
        del indexes
        return prepend_frame(self.prefix, payloads), None
