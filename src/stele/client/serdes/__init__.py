"""Values to framed bytes and back, in the Confluent wire format, byte for byte as the vendor's own clients do it.

    serialize = AvroSerializer(registry, '{"type": "record", …}')
    deserialize = Deserializer(registry)                       # any format, by the schema id
    deserialize(serialize(order, topic="orders"))

Serializers need a `SchemaRegistryClient`; deserializers take a client or a `SchemaSnapshot`. Both may be shared between
threads. They parse every schema once, and send requests only for unknown schemas. None stays None: a tombstone.
With an `AsyncSchemaRegistryClient` wrap them: `AsyncSerializer(AvroSerializer(registry, …))`, `AsyncDeserializer(…)`.

If the schema of a record has rules, they run: conditions, transformations, migrations, encryption. See `Rules`, and
`stele.client.serdes.rules` for the rest.
"""

from stele.client.serdes.async_serdes import AsyncDeserializer, AsyncSerializer
from stele.client.serdes.avro import AvroDeserializer, AvroSerializer
from stele.client.serdes.deserializer import BaseDeserializer
from stele.client.serdes.framing import Headers, IdPlace
from stele.client.serdes.generic import Deserializer
from stele.client.serdes.json import JsonDeserializer, JsonSerializer
from stele.client.serdes.protobuf import ProtobufDeserializer, ProtobufSerializer
from stele.client.serdes.rules import DeadLetter, ExpressionLimits, Override, RuleFailed, Rules, RulesRefused
from stele.client.serdes.serializer import Serializer

__all__ = [
    "AsyncDeserializer",
    "AsyncSerializer",
    "AvroDeserializer",
    "AvroSerializer",
    "BaseDeserializer",
    "DeadLetter",
    "Deserializer",
    "ExpressionLimits",
    "Headers",
    "IdPlace",
    "JsonDeserializer",
    "JsonSerializer",
    "Override",
    "ProtobufDeserializer",
    "ProtobufSerializer",
    "RuleFailed",
    "Rules",
    "RulesRefused",
    "Serializer",
]
