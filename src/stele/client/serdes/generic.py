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
    """Records of any format to values, by the type of the schema each was written with; see `BaseDeserializer`.

    A reader's schema applies to records of its own format; others are read as they were written.
    """

    def select_reader(self, schema: ResolvedSchema, reader: ResolvedSchema | None) -> ResolvedSchema | None:
        """See `BaseDeserializer`."""
        return reader if reader is not None and reader.schema_type == schema.schema_type else None

    def make_decoder(self, schema: ResolvedSchema, reader: ResolvedSchema | None) -> Decode:
        """See `BaseDeserializer`."""
        kind = _KINDS.get(schema.schema_type)
        if kind is not None:
            return kind(self.source).make_decoder(schema, reader)
        own = parse_schema(schema)
        codec = own.format.codec(own.parsed, None if reader is None else parse_schema(reader).parsed)

        def decode(frame: Frame) -> object:
            return codec.decode(bytes(frame.payload()))

        return decode

    def make_stages(self, schema: ResolvedSchema, reader: ResolvedSchema | None, *, migrating: bool) -> Stages:
        """See `BaseDeserializer`. Values of formats without tags have no fields for rules."""
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
