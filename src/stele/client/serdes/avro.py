"""Avro records in the Confluent wire format.

A value of the schema `bytes` is written bare, without the length that Avro puts before it. The vendor's clients have
always written it so, so readers must expect it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stele.client.serdes.deserializer import BaseDeserializer, Decode, Stages
from stele.client.serdes.rules.avro_fields import avro_walk
from stele.client.serdes.rules.model import Walk
from stele.client.serdes.schemas import ParsedSchema, parse_schema, require_type
from stele.client.serdes.serializer import Encode, Encoded, Serializer
from stele.client.snapshot import ResolvedSchema
from stele.errors import EncodeError
from stele.wire.confluent import Frame


class AvroSerializer(Serializer):
    """Serializes Python values to Avro; see `Serializer`."""

    schema_type = "AVRO"

    def make_encoder(self, schema: ParsedSchema) -> Encode:
        """Return the encoder for a schema; see `Serializer.make_encoder`."""
        if _is_bytes(schema):
            return _encode_bare_bytes
        codec = schema.format.codec(schema.parsed)
        return lambda value: Encoded(codec.encode(value))

    def make_walker(self, schema: ParsedSchema) -> Callable[[Any], Walk]:
        """Return the function that finds the field walk of a value; see `Serializer.make_walker`."""
        walk = avro_walk(schema.parsed)
        return lambda _: walk


class AvroDeserializer(BaseDeserializer):
    """Deserializes Avro to Python values, resolved to the reader's schema if there is one; see `BaseDeserializer`."""

    schema_type = "AVRO"

    def make_decoder(self, schema: ResolvedSchema, reader: ResolvedSchema | None) -> Decode:
        """Return the decoder for a schema. Raises `FormatMismatch` for a record of another format."""
        require_type(schema, self.schema_type)
        writer = parse_schema(schema)
        if _is_bytes(writer):
            return lambda frame: bytes(frame.payload())
        codec = writer.format.codec(writer.parsed, None if reader is None else parse_schema(reader).parsed)

        def decode(frame: Frame) -> Any:
            return codec.decode(bytes(frame.payload()))

        return decode

    def make_stages(self, schema: ResolvedSchema, reader: ResolvedSchema | None, *, migrating: bool) -> Stages:
        """Return the decoding steps. Results of migrations are not checked against the reader's schema."""
        type_name = str(parse_schema(schema).parsed.type_name)
        parsed = parse_schema(reader or schema).parsed
        walk = avro_walk(parsed)
        return Stages(
            type_name=lambda _: type_name,
            read=self.make_decoder(schema, None if migrating else reader),
            land=lambda _, value: value,
            walk=lambda _: walk,
            finish=lambda value: value,
        )


def _encode_bare_bytes(value: Any) -> Encoded:
    if not isinstance(value, bytes | bytearray):
        raise EncodeError(f"{type(value).__name__} is not a bytes value")
    return Encoded(bytes(value))


def _is_bytes(schema: ParsedSchema) -> bool:
    return bool(schema.parsed.root.kind == "bytes")
