"""Pravega's frame: an encoding id, which stands for a version of the group and a codec."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa

from stele.client.request import JSON, CachePolicy, Effect, Request, build_path, build_query, encode_body, json_decoder
from stele.client.serdes.schemas import parse_schema
from stele.client.snapshot import ResolvedSchema, SchemaSnapshot
from stele.errors import Invalid, NotFound
from stele.spark.engines.arrow import Column
from stele.spark.registry import get_client
from stele.spark.wires.base import FrameParts, Framer, ResolvedId, prepend_frame, split_by_heads
from stele.wire import pravega

if TYPE_CHECKING:
    from stele.spark.registry import RegistryLike, SchemaLookup

_HEADER: Final = 5
MAX_ENCODINGS: Final = 1000
"""Maximum number of encodings of a group that are listed."""


class _Format(msgspec.Struct, rename="camel"):
    serialization_format: str


class _Schema(msgspec.Struct, rename="camel"):
    type: str
    serialization_format: _Format
    schema_data: bytes


class _Codec(msgspec.Struct):
    name: str = ""


class _Version(msgspec.Struct, frozen=True):
    id: int = -1


class _Encoding(msgspec.Struct, rename="camel"):
    schema_info: _Schema
    codec_type: _Codec
    version_info: _Version = _Version()


class _EncodingId(msgspec.Struct, rename="camel"):
    encoding_id: int


@dataclass(frozen=True, slots=True)
class Pravega:
    """`01`, the encoding id in four bytes, the payload after its codec. Ids belong to one group.

    group, namespace   where encodings are looked up; '' is the group of the subject
    codec              codec of written records: one of `stele.wire.pravega.CODECS`, which the group must have
    """

    group: str = ""
    namespace: str = ""
    codec: str = pravega.NONE
    name: str = "pravega"
    id_type = pa.int32()
    id_label = "encoding id"
    needs_headers = False

    def split(self, values: Column, headers: Column | None) -> FrameParts:
        """Take a binary column apart; see `Wire.split`."""
        del headers
        return split_by_heads(values, _HEADER, lambda head: pravega.unframe(head)[0], self.id_type)

    def resolve_id(self, number: Any, lookup: SchemaLookup) -> ResolvedId | None:
        """Return the schema and codec of an encoding id; see `Wire.resolve_id`.

        Raises `Invalid` if the registry is a snapshot, which holds no encodings.
        """
        _require_registry(lookup.registry)
        group = self.group or lookup.pinned.subject
        request = self._encoding_request(group, number)
        encoding = lookup.query((group, number), lambda registry: registry.send(request), NotFound)
        if encoding is None:
            return None
        codec = encoding.codec_type.name
        unpack = partial(pravega.decompress, codec) if codec else None
        return ResolvedId(
            _to_resolved_schema(encoding.schema_info), encoding.schema_info.type, unpack, padded=bool(codec)
        )

    def list_encodings(self, registry: RegistryLike, subject: str, version: int) -> list[tuple[int, str]]:
        """Return the encoding ids of a version of the subject, each with its codec ("" for none), in order.

        Encoding ids of a group are dense from 0, so they are read one by one up to the first unknown one.
        """
        _require_registry(registry)
        assert not isinstance(registry, SchemaSnapshot)
        client, group = get_client(registry), self.group or subject
        encodings = []
        for number in range(MAX_ENCODINGS):
            try:
                encoding = client.send(self._encoding_request(group, number))
            except NotFound:
                break
            if encoding.version_info.id + 1 == version:
                encodings.append((number, encoding.codec_type.name))
        return encodings

    def _encoding_request(self, group: str, number: int) -> Request[_Encoding]:
        return Request(
            "GET",
            f"{_group_path(group)}/encodings/{number}",
            json_decoder(_Encoding),
            build_query({"namespace": self.namespace or None}),
            cache_policy=CachePolicy.IMMUTABLE,
            subject=group,
        )

    def framer(self, writer: ResolvedSchema, message: str, registry: RegistryLike) -> Framer:
        """Return the framer of a schema, with its encoding id from the registry; see `Wire.framer`.

        Raises `NotFound` for a codec or schema that the group does not have.
        """
        _require_registry(registry)
        assert not isinstance(registry, SchemaSnapshot)
        own, client = parse_schema(writer), get_client(registry)
        group = self.group or writer.subject
        schema = {
            "type": message or own.parsed.type_name,
            "serializationFormat": {"serializationFormat": _format_word(writer.schema_type)},
            "schemaData": b64encode(writer.text.encode()).decode(),
        }
        parameters = build_query({"namespace": self.namespace or None})
        version = client.send(
            Request(
                "POST",
                f"{_group_path(group)}/schemas/versions/find",
                json_decoder(Any),
                parameters,
                encode_body(schema),
                JSON,
            )
        )
        body = encode_body({"versionInfo": version, "codecType": self.codec})
        route = f"{_group_path(group)}/encodings"
        encoding = client.send(
            Request("PUT", route, json_decoder(_EncodingId), parameters, body, JSON, effect=Effect.WRITE)
        )
        return PravegaFramer(encoding.encoding_id, self.codec)


@dataclass(frozen=True, slots=True)
class PravegaFramer:
    """Puts the encoding id of one schema before payloads; see `Framer`."""

    number: int
    codec: str

    def __call__(self, payloads: Column, indexes: bytes) -> tuple[Column, Column | None]:
        """Frame payloads; see `Framer`."""
        del indexes  # the encoding names the message
        if self.codec:
            packed = [None if data is None else pravega.compress(self.codec, data) for data in payloads.to_pylist()]
            payloads = pa.array(packed, pa.binary())
        return prepend_frame(pravega.frame(self.number, b""), payloads), None


def _require_registry(registry: RegistryLike) -> None:
    if isinstance(registry, SchemaSnapshot):
        raise Invalid("a snapshot holds no encodings: reading the Pravega wire needs the registry")


def _group_path(name: str) -> str:
    return build_path("v1", "groups", name)


def _to_resolved_schema(schema: _Schema) -> ResolvedSchema:
    """Return the schema as a document. Protobuf descriptors, which are not text, are base64."""
    try:
        text = schema.schema_data.decode()
    except UnicodeDecodeError:
        text = b64encode(schema.schema_data).decode()
    return ResolvedSchema(text, schema.serialization_format.serialization_format.upper())


def _format_word(schema_type: str) -> str:
    known = {"AVRO": "Avro", "PROTOBUF": "Protobuf", "JSON": "Json"}
    if schema_type not in known:
        raise Invalid(f"the Pravega wire cannot hold the format {schema_type}")
    return known[schema_type]
