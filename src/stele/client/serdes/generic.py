"""A deserializer for topics that hold, or may come to hold, records of several formats."""

from __future__ import annotations

from stele.client.serdes.avro import AvroDeserializer
from stele.client.serdes.deserializer import BaseDeserializer, Decode, Stages
from stele.client.serdes.json import JsonDeserializer
from stele.client.serdes.protobuf import ProtobufDeserializer
from stele.client.serdes.schemas import parse_schema
from stele.client.snapshot import ResolvedSchema
from stele.wire.confluent import Frame

_KINDS: dict[str, type[BaseDeserializer]] = {
    kind.schema_type: kind for kind in (AvroDeserializer, JsonDeserializer, ProtobufDeserializer)
}


class Deserializer(BaseDeserializer):
    """Deserializes records of any format, by the type of their writer's schema; see `BaseDeserializer`.

    A reader's schema applies to records of its own format; others are read with their writer's schema.
    """

    def select_reader(self, schema: ResolvedSchema, reader: ResolvedSchema | None) -> ResolvedSchema | None:
        """Return the reader's schema if it has the format of the writer's schema, else None."""
        return reader if reader is not None and reader.schema_type == schema.schema_type else None

    def make_decoder(self, schema: ResolvedSchema, reader: ResolvedSchema | None) -> Decode:
        """Return the decoder for a schema of any format; see `BaseDeserializer.make_decoder`."""
        kind = _KINDS.get(schema.schema_type)
        if kind is not None:
            return kind(self.source).make_decoder(schema, reader)
        own = parse_schema(schema)
        codec = own.format.codec(own.parsed, None if reader is None else parse_schema(reader).parsed)

        def decode(frame: Frame) -> object:
            return codec.decode(bytes(frame.payload()))

        return decode

    def make_stages(self, schema: ResolvedSchema, reader: ResolvedSchema | None, *, migrating: bool) -> Stages:
        """Return the decoding steps. Values of formats without tags have no fields for rules."""
        kind = _KINDS.get(schema.schema_type)
        if kind is not None:
            return kind(self.source).make_stages(schema, reader, migrating=migrating)
        type_name = str(parse_schema(schema).parsed.type_name)
        return Stages(
            type_name=lambda _: type_name,
            read=self.make_decoder(schema, None if migrating else reader),
            land=lambda _, value: value,
            walk=lambda _: None,
            finish=lambda value: value,
        )
