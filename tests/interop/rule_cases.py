"""One record in three schema languages, and functions with which both sides write and read it by rules."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from confluent_kafka.schema_registry import SchemaRegistryClient as TheirClient
from confluent_kafka.schema_registry import dual_schema_id_deserializer
from confluent_kafka.schema_registry.avro import AvroDeserializer as TheirAvroDeserializer
from confluent_kafka.schema_registry.avro import AvroSerializer as TheirAvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer as TheirJsonDeserializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer as TheirJsonSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer as TheirProtobufDeserializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer as TheirProtobufSerializer
from confluent_kafka.schema_registry.rule_registry import RuleRegistry
from confluent_kafka.schema_registry.rules.cel.cel_executor import CelExecutor
from confluent_kafka.schema_registry.rules.cel.cel_field_executor import CelFieldExecutor
from confluent_kafka.schema_registry.rules.encryption.encrypt_executor import (
    EncryptionExecutor,
    FieldEncryptionExecutor,
)
from confluent_kafka.schema_registry.rules.jsonata.jsonata_executor import JsonataExecutor
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from tests.interop import hkdf_stand_in

from stele.client import Rule, RuleSet, Schema, SchemaRegistryClient
from stele.client.serdes import (
    AvroDeserializer,
    AvroSerializer,
    JsonDeserializer,
    JsonSerializer,
    ProtobufDeserializer,
    ProtobufSerializer,
    Rules,
)
from stele.client.serdes.framing import SeenHeaders

SECRET = "open sesame"
AVRO = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string"], "confluent:tags": ["PII"], "default": None},
        {"name": "raw", "type": "bytes", "confluent:tags": ["PII"], "default": ""},
        {
            "name": "lines",
            "type": {
                "type": "array",
                "items": {
                    "type": "record",
                    "name": "Line",
                    "fields": [{"name": "text", "type": "string", "confluent:tags": ["PII"]}],
                },
            },
            "default": [],
        },
    ],
}
JSON = {
    "title": "Order",
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "note": {"oneOf": [{"type": "null"}, {"type": "string"}], "confluent:tags": ["PII"]},
        "lines": {"type": "array", "items": {"$ref": "#/definitions/Line"}},
    },
    "definitions": {"Line": {"type": "object", "properties": {"text": {"type": "string", "confluent:tags": ["PII"]}}}},
}
PROTOBUF = """
syntax = "proto3";
package %s;
import "confluent/meta.proto";
message Order {
  int64 id = 1;
  string note = 2 [(confluent.field_meta).tags = "PII"];
  bytes raw = 3 [(confluent.field_meta).tags = "PII"];
  repeated Line lines = 4;
  message Line { string text = 1 [(confluent.field_meta).tags = "PII"]; }
}
"""


def their_rules() -> RuleRegistry:
    """Return a rule registry with confluent-kafka's executors."""
    sys.modules.setdefault("hkdf", hkdf_stand_in)
    from confluent_kafka.schema_registry.rules.encryption.localkms.local_driver import LocalKmsDriver

    LocalKmsDriver.register()
    registry = RuleRegistry()
    for kind in (CelExecutor, CelFieldExecutor, JsonataExecutor, EncryptionExecutor, FieldEncryptionExecutor):
        registry.register_executor(kind())
    return registry


@dataclass
class Case:
    """A schema language. `value` is written by both sides; `plain` converts a value of either side to a dict."""

    name: str
    text: str
    value: Any
    plain: Callable[[Any], dict[str, Any]]
    message: type[Message] | None = None
    their_options: dict[str, Any] | None = None

    def schema(self, *rules: Rule, text: str = "", **more: Any) -> Schema:
        """Return a version with domain rules, or with the members in `more`."""
        rule_set = RuleSet(domain_rules=list(rules), **more.pop("rule_set", {}))
        return Schema(text or self.text, self.name, rule_set=rule_set, **more)

    def they_write(self, client: TheirClient, topic: str, value: Any = None) -> bytes:
        """Return what confluent-kafka writes with the newest version."""
        conf = {"auto.register.schemas": False, "use.latest.version": True, **(self.their_options or {})}
        arguments: dict[str, Any] = {"conf": conf, "rule_conf": {"secret": SECRET}, "rule_registry": their_rules()}
        match self.name:
            case "AVRO":
                serializer: Any = TheirAvroSerializer(client, None, **arguments)
            case "JSON":
                serializer = TheirJsonSerializer(None, client, **arguments)
            case _:
                serializer = TheirProtobufSerializer(self.message, client, **arguments)
        own = deepcopy(self.value if value is None else value)  # confluent-kafka's rules change their input
        try:
            data: bytes = serializer(own, _context(topic))
        finally:
            serializer.close()
        return data

    def they_read(
        self,
        client: TheirClient,
        topic: str,
        data: bytes,
        *,
        latest: bool = False,
        marked: str = "",
        headers: SeenHeaders = None,
    ) -> dict[str, Any]:
        """Return what confluent-kafka reads.

        `latest` reads with the newest version, `marked` with the newest version whose property `mark` has this value.
        """
        conf = {"use.latest.version": latest, **(self.their_options or {})}
        if headers:
            conf["schema.id.deserializer"] = dual_schema_id_deserializer
        if marked:
            conf["use.latest.with.metadata"] = {"mark": marked}
        arguments: dict[str, Any] = {"conf": conf, "rule_conf": {"secret": SECRET}, "rule_registry": their_rules()}
        match self.name:
            case "AVRO":
                deserializer: Any = TheirAvroDeserializer(client, None, **arguments)
            case "JSON":
                deserializer = TheirJsonDeserializer(None, schema_registry_client=client, **arguments)
            case _:
                deserializer = TheirProtobufDeserializer(self.message, schema_registry_client=client, **arguments)
        try:
            return self.plain(deserializer(data, _context(topic, headers)))
        finally:
            deserializer.close()

    def we_write(
        self, client: SchemaRegistryClient, topic: str, value: Any = None, rules: Rules | None = None
    ) -> bytes:
        """Return what Stele writes with the newest version."""
        kind = {"AVRO": AvroSerializer, "JSON": JsonSerializer, "PROTOBUF": ProtobufSerializer}[self.name]
        serializer: Any = kind(client, use_latest=True, rules=rules or Rules({"secret": SECRET}))
        data: bytes = serializer(self.value if value is None else value, topic=topic)
        return data

    def we_read(
        self,
        client: SchemaRegistryClient,
        topic: str,
        data: bytes,
        *,
        latest: bool = False,
        marked: str = "",
        headers: SeenHeaders = None,
    ) -> dict[str, Any]:
        """Return what Stele reads, with the same options."""
        chosen = {"mark": marked} if marked else None
        kind = {"AVRO": AvroDeserializer, "JSON": JsonDeserializer, "PROTOBUF": ProtobufDeserializer}[self.name]
        deserializer: Any = kind(client, use_latest=latest, use_metadata=chosen, rules=Rules({"secret": SECRET}))
        return self.plain(deserializer(data, topic=topic, headers=headers))


def avro_case() -> Case:
    """Return the record in Avro."""
    value = {"id": 7, "note": "ring twice", "raw": b"\0\xff", "lines": [{"text": "one"}, {"text": "two"}]}
    return Case("AVRO", json.dumps(AVRO), value, dict)


def json_case() -> Case:
    """Return the record in JSON."""
    value = {"id": 7, "note": "ring twice", "lines": [{"text": "one"}, {"text": "two"}]}
    return Case("JSON", json.dumps(JSON), value, dict, their_options={"validate": True})


def protobuf_case(message: type[Message], package: str) -> Case:
    """Return the record in Protobuf, of a class that was generated without the tags."""
    value: Any = message()
    value.id, value.note, value.raw = 7, "ring twice", b"\0\xff"
    value.lines.add(text="one")
    value.lines.add(text="two")
    return Case("PROTOBUF", PROTOBUF % package, value, _as_dict, message)


def _as_dict(message: Message) -> dict[str, Any]:
    fields: dict[str, Any] = MessageToDict(message, preserving_proto_field_name=True)
    return fields


def _context(topic: str, headers: SeenHeaders = None) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE, headers or [])
