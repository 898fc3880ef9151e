"""A deserializer for topics that hold, or may come to hold, records of several formats."""

from __future__ import annotations

from stele.client.serdes.avro import AvroDeserializer
from stele.client.serdes.deserializer import BaseDeserializer, Decode
from stele.client.serdes.json import JsonDeserializer
from stele.client.serdes.protobuf import ProtobufDeserializer
from stele.client.serdes.schemas import ready
from stele.client.snapshot import ResolvedSchema
from stele.wire.confluent import Frame

_KINDS: dict[str, type[BaseDeserializer]] = {
    kind.schema_type: kind for kind in (AvroDeserializer, JsonDeserializer, ProtobufDeserializer)
}


class Deserializer(BaseDeserializer):
    """Records of any format to values, by the type of the schema each was written with; see `BaseDeserializer`.

    A reader's schema applies to records of its own format; others are read as they were written.
    """

    def decoder(self, schema: ResolvedSchema, reader: ResolvedSchema | None) -> Decode:
        """See `BaseDeserializer`."""
        fitting = reader if reader is not None and reader.schema_type == schema.schema_type else None
        kind = _KINDS.get(schema.schema_type)
        if kind is not None:
            return kind(self._source).decoder(schema, fitting)
        own = ready(schema)
        codec = own.format.codec(own.parsed, None if fitting is None else ready(fitting).parsed)

        def decode(frame: Frame) -> object:
            return codec.decode(bytes(frame.payload()))

        return decode
