"""Serializers and deserializers against a small fake registry: their options, frames and errors."""

from __future__ import annotations

import json
import pickle
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID, uuid5

import httpx
import pytest
from google.protobuf.struct_pb2 import Struct, Value
from google.protobuf.timestamp_pb2 import Timestamp

from stele import errors
from stele.client import Schema, SchemaReference, SchemaRegistryClient, SchemaSnapshot, record_name
from stele.client.serdes import (
    AvroDeserializer,
    AvroSerializer,
    Deserializer,
    Headers,
    IdPlace,
    JsonDeserializer,
    JsonSerializer,
    ProtobufDeserializer,
    ProtobufSerializer,
)
from stele.wire import confluent

ORDER = '{"type":"record","name":"Order","namespace":"shop","fields":[{"name":"id","type":"long"}]}'
ORDER_2 = (
    '{"type":"record","name":"Order","namespace":"shop","fields":[{"name":"id","type":"long"},'
    '{"name":"note","type":"string","default":"none"}]}'
)
PERSON = '{"title":"Person","type":"object","properties":{"name":{"type":"string"}},"required":["name"]}'
PROTO = """
syntax = "proto3";
package shop;
message Outer { message Inner { string text = 1; } int64 id = 1; }
message Other { int32 n = 1; }
"""


class Registry:
    """Registers, looks up and returns schemas. Counts its requests."""

    def __init__(self) -> None:
        self.schemas: list[dict[str, Any]] = []
        self.subjects: dict[str, list[int]] = {}
        self.asked: Counter[str] = Counter()

    def handle(self, request: httpx.Request) -> httpx.Response:
        """Answer one request."""
        parts = request.url.path.strip("/").split("/")
        self.asked[f"{request.method} {parts[0]}"] += 1
        match request.method, parts:
            case "POST", ["subjects", subject, "versions"]:
                return self._register(subject, json.loads(request.content))
            case "POST", ["subjects", subject]:
                return self._lookup(subject, json.loads(request.content))
            case "GET", ["subjects", subject, "versions"]:
                return httpx.Response(200, json=list(range(1, len(self.subjects[subject]) + 1)))
            case "GET", ["subjects", subject, "versions", number]:
                ids = self.subjects.get(subject, [])
                version = len(ids) if number == "latest" else int(number)
                if not 0 < version <= len(ids):
                    return refusal(40402)
                return self._answer(ids[version - 1], subject=subject, version=version)
            case "GET", ["schemas", "ids", schema_id]:
                return self._answer(int(schema_id)) if int(schema_id) <= len(self.schemas) else refusal(40403)
            case "GET", ["schemas", "ids", schema_id, "versions"]:
                places = [(name, ids) for name, ids in self.subjects.items() if int(schema_id) in ids]
                versions = [{"subject": name, "version": ids.index(int(schema_id)) + 1} for name, ids in places]
                return httpx.Response(200, json=versions)
            case "GET", ["schemas", "guids", guid]:
                return next(
                    (self._answer(number) for number in range(1, len(self.schemas) + 1) if guid_of(number) == guid),
                    refusal(40403),
                )
        raise AssertionError(request.url)

    def _register(self, subject: str, schema: dict[str, Any]) -> httpx.Response:
        if schema not in self.schemas:
            self.schemas.append(schema)
        schema_id = self.schemas.index(schema) + 1
        ids = self.subjects.setdefault(subject, [])
        if schema_id not in ids:
            ids.append(schema_id)
        return self._answer(schema_id, subject=subject, version=ids.index(schema_id) + 1)

    def _lookup(self, subject: str, schema: dict[str, Any]) -> httpx.Response:
        ids = self.subjects.get(subject, [])
        schema_id = self.schemas.index(schema) + 1 if schema in self.schemas else 0
        if schema_id not in ids:
            return refusal(40403)
        return self._answer(schema_id, subject=subject, version=ids.index(schema_id) + 1)

    def _answer(self, schema_id: int, **more: Any) -> httpx.Response:
        return httpx.Response(
            200, json=self.schemas[schema_id - 1] | {"id": schema_id, "guid": guid_of(schema_id)} | more
        )


def refusal(code: int) -> httpx.Response:
    """Return an error response."""
    return httpx.Response(code // 100, json={"error_code": code, "message": "not found"})


def guid_of(schema_id: int) -> str:
    """Return the guid of a schema."""
    return str(uuid5(UUID(int=0), str(schema_id)))


@pytest.fixture
def registry() -> Registry:
    """An empty registry."""
    return Registry()


@pytest.fixture
def client(registry: Registry) -> SchemaRegistryClient:
    """A client of the registry."""
    return SchemaRegistryClient("http://registry", transport=httpx.MockTransport(registry.handle))


def test_avro_round_trip(client: SchemaRegistryClient) -> None:
    """A record consists of the schema id and Avro's bytes, and is read back unchanged."""
    serialize = AvroSerializer(client, ORDER, auto_register=True)
    data = serialize({"id": 21}, topic="orders")
    assert data == b"\x00\x00\x00\x00\x01\x2a"
    assert AvroDeserializer(client)(data) == Deserializer(client)(data) == {"id": 21}


def test_none_is_a_tombstone(client: SchemaRegistryClient, registry: Registry) -> None:
    """None is serialized and deserialized as None, without a schema and without a request."""
    assert AvroSerializer(client, ORDER)(None, topic="orders") is None
    assert Deserializer(client)(None) is None
    assert not registry.asked


def test_the_registry_is_asked_once(client: SchemaRegistryClient, registry: Registry) -> None:
    """A thousand records take one registration and one lookup of the id."""
    serialize = AvroSerializer(client, ORDER, auto_register=True)
    deserialize = AvroDeserializer(client)
    for number in range(1000):
        assert deserialize(serialize({"id": number}, topic="orders")) == {"id": number}
    assert sum(registry.asked.values()) == 2


def test_threads_share_a_serializer_and_a_deserializer(client: SchemaRegistryClient) -> None:
    """Concurrent threads with several topics use the right subject's id and read back their own values."""
    serialize = AvroSerializer(client, ORDER, auto_register=True)
    deserialize = Deserializer(client)

    def work(number: int) -> bool:
        return bool(deserialize(serialize({"id": number}, topic=f"orders-{number % 7}")) == {"id": number})

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(500)))


def test_schemas_are_not_registered_unasked(client: SchemaRegistryClient, registry: Registry) -> None:
    """By default a serializer does not register its schema, and a missing schema raises an error."""
    with pytest.raises(errors.ContentNotFound):
        AvroSerializer(client, ORDER)({"id": 1}, topic="orders")
    assert not registry.schemas
    client.register("orders-value", Schema(ORDER))
    assert AvroSerializer(client, ORDER)({"id": 1}, topic="orders") == b"\x00\x00\x00\x00\x01\x02"


def test_a_missing_schema_is_looked_for_again(client: SchemaRegistryClient) -> None:
    """A failed lookup is not cached: after the schema is registered, the same serializer works."""
    serialize = AvroSerializer(client, ORDER)
    with pytest.raises(errors.ContentNotFound):
        serialize({"id": 1}, topic="orders")
    client.register("orders-value", Schema(ORDER))
    assert serialize({"id": 1}, topic="orders")


def test_subjects_by_field_strategy_and_context(client: SchemaRegistryClient, registry: Registry) -> None:
    """Topic and field, record name, and context are part of the requested subject."""
    AvroSerializer(client, ORDER, auto_register=True)({"id": 1}, topic="orders", field="key")
    AvroSerializer(client, ORDER, auto_register=True, naming=record_name)({"id": 1})
    AvroSerializer(client, ORDER, auto_register=True, context="team")({"id": 1}, topic="orders")
    assert set(registry.subjects) == {"orders-key", "shop.Order", ":.team:orders-value"}


def test_use_latest_writes_with_the_newest_version(client: SchemaRegistryClient) -> None:
    """The newest version's schema and id are used, also when it changes while a producer runs."""
    serialize = AvroSerializer(client, use_latest=True)
    client.register("orders-value", Schema(ORDER))
    assert serialize({"id": 1}, topic="orders") == b"\x00\x00\x00\x00\x01\x02"
    client.register("orders-value", Schema(ORDER_2))
    assert serialize({"id": 1, "note": "x"}, topic="orders") == b"\x00\x00\x00\x00\x02\x02\x02x"


def test_use_id_writes_with_that_schema(client: SchemaRegistryClient) -> None:
    """A pinned id is used whatever the subject holds."""
    client.register("elsewhere", Schema(ORDER))
    assert AvroSerializer(client, use_id=1)({"id": 1}, topic="orders") == b"\x00\x00\x00\x00\x01\x02"


def test_choices_that_exclude_each_other(client: SchemaRegistryClient) -> None:
    """Contradictory and missing options raise when the serializer is created."""
    with pytest.raises(errors.InvalidRequest):
        AvroSerializer(client, ORDER, auto_register=True, use_latest=True)
    with pytest.raises(errors.InvalidRequest):
        AvroSerializer(client)
    with pytest.raises(errors.InvalidRequest):
        AvroDeserializer(client, ORDER, use_latest=True)


def test_values_that_do_not_fit(client: SchemaRegistryClient) -> None:
    """An unfit value raises `EncodeError`."""
    with pytest.raises(errors.EncodeError):
        AvroSerializer(client, ORDER, auto_register=True)({"id": "x"}, topic="orders")


def test_reader_schema_resolves(client: SchemaRegistryClient) -> None:
    """Old records are read as the reader's version, with its defaults."""
    data = AvroSerializer(client, ORDER, auto_register=True)({"id": 1}, topic="orders")
    assert AvroDeserializer(client, ORDER_2)(data) == {"id": 1, "note": "none"}
    client.register("orders-value", Schema(ORDER_2))
    assert AvroDeserializer(client, use_latest=True)(data, topic="orders") == {"id": 1, "note": "none"}


def test_bytes_schema_is_bare_on_the_wire(client: SchemaRegistryClient) -> None:
    """A top-level bytes value has no length before it, as with the vendor's clients."""
    data = AvroSerializer(client, '"bytes"', auto_register=True)(b"xyz", topic="raw")
    assert data == b"\x00\x00\x00\x00\x01xyz"
    assert AvroDeserializer(client)(data) == b"xyz"
    with pytest.raises(errors.EncodeError):
        AvroSerializer(client, '"bytes"', auto_register=True)("xyz", topic="raw")


def test_references_are_fetched(client: SchemaRegistryClient) -> None:
    """A schema with a reference works, for writing and for reading."""
    client.register("order", Schema(ORDER))
    basket = '{"type":"record","name":"Basket","fields":[{"name":"order","type":"shop.Order"}]}'
    schema = Schema(basket, references=(SchemaReference("shop.Order", "order", 1),))
    data = AvroSerializer(client, schema, auto_register=True)({"order": {"id": 1}}, topic="baskets")
    assert Deserializer(client)(data) == {"order": {"id": 1}}


def test_json_round_trip(client: SchemaRegistryClient) -> None:
    """JSON is compact, and keeps the order of members and non-ASCII letters."""
    data = JsonSerializer(client, PERSON, auto_register=True)({"z": 1.5, "name": "Zoë"}, topic="people")
    assert data == b'\x00\x00\x00\x00\x01{"z":1.5,"name":"Zo\xc3\xab"}'
    assert JsonDeserializer(client)(data) == Deserializer(client)(data) == {"z": 1.5, "name": "Zoë"}


def test_json_validation_can_be_turned_off(client: SchemaRegistryClient) -> None:
    """By default both sides refuse unfit values; without validation both accept them."""
    with pytest.raises(errors.EncodeError, match="name"):
        JsonSerializer(client, PERSON, auto_register=True)({}, topic="people")
    data = JsonSerializer(client, PERSON, auto_register=True, validate=False)({}, topic="people")
    with pytest.raises(errors.DecodeError, match="name"):
        JsonDeserializer(client)(data)
    assert JsonDeserializer(client, validate=False)(data) == {}


@pytest.mark.parametrize("value", [{"name": {1, 2}}, {"name": float("nan")}, object()])
def test_json_refuses_what_is_no_json(client: SchemaRegistryClient, value: Any) -> None:
    """Sets, objects and NaN raise an error, because JSON cannot express them."""
    with pytest.raises(errors.EncodeError):
        JsonSerializer(client, "true", auto_register=True)(value, topic="people")


def test_json_writes_integers_of_any_size(client: SchemaRegistryClient) -> None:
    """Integers beyond 64 bits are kept."""
    data = JsonSerializer(client, "true", auto_register=True)(2**70, topic="n")
    assert JsonDeserializer(client)(data) == 2**70


@pytest.mark.parametrize("payload", [b"", b"{", b"\xff", b"[" * 100_000])
def test_json_bytes_that_are_no_json(client: SchemaRegistryClient, payload: bytes) -> None:
    """Invalid JSON raises `DecodeError`, with and without validation, at any depth."""
    client.register("people-value", Schema(PERSON, "JSON"))
    for validate in (True, False):
        with pytest.raises(errors.DecodeError):
            JsonDeserializer(client, validate=validate)(confluent.frame(1, payload))


def test_guid_in_a_header(client: SchemaRegistryClient) -> None:
    """The guid may be in a header, where readers find it without a setting."""
    headers: Headers = [("trace", b"1")]
    serialize = AvroSerializer(client, ORDER, auto_register=True, id_in=IdPlace.HEADER)
    data = serialize({"id": 1}, topic="orders", headers=headers)
    assert data == b"\x02"
    assert headers[1] == ("__value_schema_id", b"\x01" + UUID(guid_of(1)).bytes)
    assert Deserializer(client)(data, headers=headers) == {"id": 1}
    with pytest.raises(errors.EncodeError, match="headers"):
        serialize({"id": 1}, topic="orders")


@pytest.mark.parametrize("data", [b"", b"\x00\x00", b"plain text"])
def test_foreign_bytes_are_frame_errors(client: SchemaRegistryClient, data: bytes) -> None:
    """Records without a schema frame raise `FrameError`, unlike damaged payloads."""
    with pytest.raises(errors.FrameError):
        Deserializer(client)(data)


def test_unknown_id(client: SchemaRegistryClient) -> None:
    """An id that the registry does not know raises `ContentNotFound`."""
    with pytest.raises(errors.ContentNotFound):
        Deserializer(client)(b"\x00\x00\x00\x00\x09x")


def test_other_formats_are_refused_by_name(client: SchemaRegistryClient) -> None:
    """A deserializer of one format refuses records of another format."""
    data = JsonSerializer(client, PERSON, auto_register=True)({"name": "x"}, topic="people")
    with pytest.raises(errors.FormatMismatch, match="JSON"):
        AvroDeserializer(client)(data)


def test_damaged_payload(client: SchemaRegistryClient) -> None:
    """Trailing and missing bytes raise `DecodeError`."""
    client.register("orders-value", Schema(ORDER))
    for payload in (b"", b"\x02\x02"):
        with pytest.raises(errors.DecodeError):
            AvroDeserializer(client)(confluent.frame(1, payload))


def test_a_snapshot_reads_without_a_registry(client: SchemaRegistryClient, registry: Registry) -> None:
    """A saved snapshot decodes the records without requests."""
    data = AvroSerializer(client, ORDER, auto_register=True)({"id": 1}, topic="orders")
    snapshot = SchemaSnapshot.from_json(client.snapshot(subjects=["orders-value"]).to_json())
    registry.asked.clear()
    assert Deserializer(snapshot)(data) == {"id": 1}
    assert not registry.asked


def test_deserializers_travel_to_other_processes(client: SchemaRegistryClient) -> None:
    """A deserializer on a snapshot can be pickled into a job, also after it has been used."""
    data = AvroSerializer(client, ORDER, auto_register=True)({"id": 1}, topic="orders")
    deserialize = Deserializer(client.snapshot(subjects=["orders-value"]))
    assert deserialize(data) == pickle.loads(pickle.dumps(deserialize))(data) == {"id": 1}


def test_protobuf_generated_class(client: SchemaRegistryClient) -> None:
    """The record of a generated message contains its index in the file, and the class reads it back."""
    serialize = ProtobufSerializer(client, Value, auto_register=True)
    value = Value(string_value="x")
    data = serialize(value, topic="values")
    assert data == b"\x00\x00\x00\x00\x01\x02\x02" + value.SerializeToString()
    assert ProtobufDeserializer(client, message=Value)(data) == value
    assert serialize({"fields": {"a": 1}}, topic="values")  # a dict in the JSON mapping of Value


def test_protobuf_other_messages_of_the_file(client: SchemaRegistryClient) -> None:
    """Every message of the file may be written; a message of another file is refused."""
    serialize = ProtobufSerializer(client, Value, auto_register=True)
    assert serialize(Struct(), topic="values") == b"\x00\x00\x00\x00\x01\x00"
    with pytest.raises(errors.EncodeError, match="Timestamp"):
        serialize(Timestamp(), topic="values")


def test_protobuf_dynamic_messages(client: SchemaRegistryClient) -> None:
    """With a schema's text, dicts become messages, and records become messages of the writer's type."""
    serialize = ProtobufSerializer(client, PROTO, message="shop.Outer.Inner", auto_register=True)
    data = serialize({"text": "x"}, topic="t")
    assert data == b"\x00\x00\x00\x00\x01\x04\x00\x00\x0a\x01x"
    message = Deserializer(client)(data)
    assert (message.DESCRIPTOR.full_name, message.text) == ("shop.Outer.Inner", "x")
    with pytest.raises(errors.EncodeError, match="fit"):
        serialize({"unheard": 1}, topic="t")
    with pytest.raises(errors.EncodeError, match="neither"):
        serialize(5, topic="t")


def test_protobuf_damaged_records(client: SchemaRegistryClient) -> None:
    """Invalid indexes and damaged payloads raise data errors."""
    client.register("t-value", Schema(PROTO, "PROTOBUF"))
    deserialize = Deserializer(client)
    with pytest.raises(errors.DecodeError, match="indexes"):
        deserialize(confluent.frame(1, b"", [7]))
    with pytest.raises(errors.DecodeError, match=r"shop\.Other"):
        deserialize(confluent.frame(1, b"\xff", [1]))
    with pytest.raises(errors.FrameError):
        deserialize(confluent.frame(1, b"\x02"))
