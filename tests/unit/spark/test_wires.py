"""Wire formats as Spark sees them: columns of records taken apart, without Spark."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Iterable
from typing import Any, TypeVar
from uuid import UUID

import pyarrow as pa
import pytest

from stele.client import RegisteredSchema, Request, ResolvedSchema, Schema, SchemaSnapshot, Version
from stele.client.serdes.schemas import parse_schema
from stele.errors import ContentNotFound, DataError, Invalid, NotFound, RegistryUnreachable
from stele.formats.avro import AVRO
from stele.spark.decode.records import RecordDecoder, RecordEncoder, plan_read, plan_write
from stele.spark.engines.error_codes import describe_errors
from stele.spark.registry import PinnedSchemas, SchemaLookup, retry_unavailable
from stele.spark.wires import CloudEvents, HeaderGuid, Pravega, RocketMQ, Unframed, Wire, get_wire
from stele.spark.wires.base import HEADERS
from stele.wire import avro_single, cloudevents, confluent, pravega

T = TypeVar("T")
ONE = '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}'
TWO = ONE.replace("}]", '}, {"name": "b", "type": "string", "default": "-"}]')
PROTO = 'syntax = "proto3"; message Other { int32 n = 1; } message R { int32 a = 1; bytes rest = 2; }'
GUIDS = ("00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000000002")
VERSIONS = tuple(
    ResolvedSchema(text, id=number + 7, guid=GUIDS[number], subject="s", version=number + 1)
    for number, text in enumerate((ONE, TWO))
)


class Fake:
    """A registry that answers from a dict of paths; `away` makes it unavailable."""

    def __init__(self, *schemas: ResolvedSchema, answers: dict[str, Any] | None = None) -> None:
        self.schemas = list(schemas)
        self.answers = answers or {}
        self.asked: list[str] = []
        self.away = 0

    def __call__(self) -> Fake:
        return self

    def _note_request(self, what: str) -> None:
        self.asked.append(what)
        if self.away:
            self.away -= 1
            raise RegistryUnreachable("away")

    def snapshot(self, *, subjects: Iterable[str] = ()) -> SchemaSnapshot:
        """Return all versions of the subjects."""
        self._note_request("snapshot")
        return SchemaSnapshot(tuple(schema for schema in self.schemas if schema.subject in subjects))

    def resolve(self, schema: int | UUID, *, context: str = "") -> ResolvedSchema:
        """Return a schema by id or guid."""
        del context
        self._note_request(str(schema))
        for known in self.schemas:
            if schema in (known.id, known.guid and UUID(known.guid)):
                return known
        raise ContentNotFound(str(schema))

    def resolve_version(self, subject: str, number: Version = "latest") -> ResolvedSchema:
        """Return a schema by subject and version."""
        return SchemaSnapshot(tuple(self.schemas)).resolve_version(subject, number)

    def resolve_schema(self, schema: Schema, *, context: str = "") -> ResolvedSchema:
        """Return the schema unchanged."""
        return ResolvedSchema(schema.text, schema.schema_type, context=context)

    def register(self, subject: str, schema: Schema) -> RegisteredSchema:
        """Raise an error: the tests do not register."""
        raise NotImplementedError

    def lookup(self, subject: str, schema: Schema) -> RegisteredSchema:
        """Raise an error: the tests do not look up."""
        raise NotImplementedError

    def send(self, request: Request[T]) -> T:
        """Return the answer for the method and target."""
        self._note_request(f"{request.method} {request.target}")
        answer_questions = self.answers.get(f"{request.method} {request.target}")
        if answer_questions is None:
            raise NotFound("no such thing")
        return request.read(json.dumps(answer_questions).encode())


def avro(schema: ResolvedSchema, **datum: Any) -> bytes:
    """Return the payload of a record."""
    own = parse_schema(schema)
    return own.format.codec(own.parsed).encode(datum)


PAYLOADS = (avro(VERSIONS[0], a=1), avro(VERSIONS[1], a=2, b="two"))
ROWS = [{"a": 1, "b": "-"}, {"a": 2, "b": "two"}]


def decode(
    wire: Any, registry: Any, values: list[bytes | None], headers: list[Any] | None = None, **options: Any
) -> tuple[list[Any], list[Any], list[Any]]:
    """Return values, ids and reasons of records, read by the newest version of `s`."""
    reading = plan_read(registry, options.pop("subject", "s"), wire=wire, engine="python", patience=0.0, **options)
    column = None if headers is None else pa.array(headers, HEADERS)
    decoded = RecordDecoder(reading).decode(pa.array(values, pa.binary()), column)
    assert decoded.schema_ids.type == reading.wire.id_type
    return decoded.values.to_pylist(), decoded.schema_ids.to_pylist(), describe_errors(decoded).to_pylist()


def encode_rows(wire: Any, registry: Any, writer: ResolvedSchema, rows: list[Any]) -> list[Any]:
    """Return records, and their headers if the wire has them."""
    writing = plan_write(writer, registry, wire=wire, engine="python")
    return [column.to_pylist() for column in RecordEncoder(writing).encode(pa.array(rows))]


def test_confluent_prefix() -> None:
    """The id prefix works with two writers, a tombstone, an unknown id, and a record without a frame."""
    frames = [confluent.frame(7, PAYLOADS[0]), confluent.frame(8, PAYLOADS[1]), None, confluent.frame(9, b""), b"x"]
    values, ids, reasons = decode("confluent", Fake(*VERSIONS), frames)
    assert values == [*ROWS, None, None, None]
    assert ids == [7, 8, None, 9, None]
    assert [reason is None for reason in reasons] == [True, True, True, False, False]
    assert encode_rows("confluent", Fake(*VERSIONS), VERSIONS[1], [ROWS[1], None]) == [[frames[1], None]]


def test_guids_in_headers() -> None:
    """The guid of a header is used, else the id before the payload. The header of the other field is ignored."""
    headers = [
        [{"key": "x", "value": b""}, {"key": "__value_schema_id", "value": confluent.guid_header(UUID(GUIDS[0]))}],
        [{"key": "__value_schema_id", "value": confluent.guid_header(UUID(GUIDS[1]))}],
        [{"key": "__key_schema_id", "value": confluent.guid_header(UUID(GUIDS[1]))}],
        None,
        [{"key": "__value_schema_id", "value": b"\x01short"}],
        [{"key": "__value_schema_id", "value": confluent.guid_header(UUID(int=5))}],
        [{"key": "__value_schema_id", "value": confluent.guid_header(UUID(GUIDS[0])) + b"\0"}],
        [{"key": "__value_schema_id", "value": confluent.guid_header(UUID(GUIDS[0]))}],
    ]
    records = [*PAYLOADS, confluent.frame(7, PAYLOADS[0]), b"", PAYLOADS[0], PAYLOADS[0], PAYLOADS[0], None]
    values, ids, reasons = decode("confluent-header", Fake(*VERSIONS), records, headers)
    assert values == [*ROWS, ROWS[0], None, None, None, None, None]
    assert ids == [GUIDS[0], GUIDS[1], "7", None, None, str(UUID(int=5)), GUIDS[0], None]
    assert reasons[:3] == [None, None, None]
    assert reasons[3:] == [
        "0 bytes are too few for a frame: magic byte and id take 5",
        "6 bytes are too few for a frame: magic byte and guid take 17",
        f"unknown schema {UUID(int=5)}",
        "unexpected bytes after the guid in the record header",
        None,
    ]
    encoded_records, encoded_headers = encode_rows("confluent-header", Fake(*VERSIONS), VERSIONS[1], [ROWS[1]])
    assert (encoded_records, encoded_headers) == ([PAYLOADS[1]], [headers[1]])
    with pytest.raises(Invalid, match="guid"):
        plan_write(ResolvedSchema(ONE, id=1), Fake(), wire="confluent-header")


def test_message_indexes_in_headers() -> None:
    """The message indexes of a Protobuf record are after the guid in the header."""
    schema = ResolvedSchema(PROTO, "PROTOBUF", id=7, guid=GUIDS[0], subject="s", version=1)
    value = confluent.guid_header(UUID(GUIDS[0]), (1,))
    headers = [[{"key": "__value_schema_id", "value": value}]]
    values, _, _ = decode(HeaderGuid(), Fake(schema), [b"\x08\x05"], headers, message="R")
    assert values == [{"a": 5, "rest": b""}]
    writing = plan_write(schema, Fake(schema), wire="confluent-header", message="R")
    record_column, header_column = RecordEncoder(writing).encode(pa.array([{"a": 5}]))
    assert (record_column.to_pylist(), header_column.to_pylist()) == ([b"\x08\x05"], headers)


def test_single_objects() -> None:
    """Fingerprints are compared with those of the subject's versions; a later version is found by one request."""
    registry = Fake(VERSIONS[0])
    prints = [AVRO.fingerprints(parse_schema(schema).parsed)["rabin"] for schema in VERSIONS]
    frames = [avro_single.frame(prints[0], PAYLOADS[0]), avro_single.frame(bytes(8), b""), None, b"\xc3"]
    reading = plan_read(registry, "s", wire="avro-single-object", engine="python")
    decoder = RecordDecoder(reading)
    decoded = decoder.decode(pa.array(frames))
    assert decoded.values.to_pylist() == [{"a": 1}, None, None, None]
    assert decoded.schema_ids.to_pylist() == [prints[0].hex(), bytes(8).hex(), None, None]
    assert describe_errors(decoded).to_pylist()[1] == f"unknown schema fingerprint {bytes(8).hex()}"
    registry.schemas.append(VERSIONS[1])
    decoder.decode(pa.array(frames))
    assert registry.asked == ["snapshot", "snapshot"], "once to plan, once for the unknown one"
    late = decoder.decode(pa.array([avro_single.frame(prints[1], PAYLOADS[1])]))
    assert late.values.to_pylist() == [{"a": 2}]
    assert encode_rows("avro-single-object", registry, VERSIONS[0], [{"a": 1}]) == [[frames[0]]]
    with pytest.raises(Invalid, match="single objects are Avro"):
        plan_write(ResolvedSchema("{}", "JSON"), registry, wire="avro-single-object")


def encoding(schema: ResolvedSchema, codec: str = "", type_name: str = "R", *, data: bytes = b"") -> dict[str, Any]:
    """Return the Pravega API's answer for an encoding."""
    word = {"AVRO": "Avro", "PROTOBUF": "Protobuf", "JSON": "Json"}[schema.schema_type]
    info = {
        "type": type_name,
        "serializationFormat": {"serializationFormat": word},
        "schemaData": b64encode(data or schema.text.encode()).decode(),
    }
    return {"schemaInfo": info, "versionInfo": {}, "codecType": {"name": codec}}


@pytest.mark.parametrize("codec", pravega.CODECS)
def test_pravega_encodings_and_codecs(codec: str) -> None:
    """An encoding id gives the schema and the codec; a payload that cannot be decompressed is a bad record."""
    answers = {
        "GET /v1/groups/s/encodings/0": encoding(VERSIONS[0]),
        "GET /v1/groups/s/encodings/1": encoding(VERSIONS[1], codec),
    }
    registry = Fake(*VERSIONS, answers=answers)
    packed = pravega.frame(1, pravega.compress(codec, PAYLOADS[1]))
    broken = pravega.frame(1, b"\xff\xff")
    values, ids, reasons = decode(
        "pravega", registry, [pravega.frame(0, PAYLOADS[0]), packed, broken, None, packed[:3]]
    )
    assert values == [*ROWS, None, None, None]
    assert ids == [0, 1, 1, None, None]
    assert reasons[2] is not None
    assert "magic byte and encoding id take 5" in reasons[4]
    values, _, reasons = decode("pravega", registry, [pravega.frame(5, b"")])
    assert reasons == ["unknown encoding id 5"]
    registry.answers |= {
        "POST /v1/groups/s/schemas/versions/find": {"type": "R", "version": 1, "id": 1},
        "PUT /v1/groups/s/encodings": {"encodingId": 1},
    }
    assert encode_rows(Pravega(codec=codec), registry, VERSIONS[1], [ROWS[1], None]) == [[packed, None]]


def test_pravega_payloads_may_end_with_zero_bytes() -> None:
    """Java's writers also compress the unused rest of their buffer: the datum ends where its format says."""
    other = ResolvedSchema('{"type": "array", "items": "int"}', subject="t", version=1, id=1)
    proto = ResolvedSchema(PROTO, "PROTOBUF", subject="p", version=1, id=1)
    answers = {
        "GET /v1/groups/t/encodings/0": encoding(other, pravega.GZIP),
        "GET /v1/groups/p/encodings/0": encoding(proto, pravega.GZIP),
    }
    registry = Fake(other, proto, answers=answers)

    def pad_payload(payload: bytes, zeros: int) -> bytes:
        return pravega.frame(0, pravega.compress(pravega.GZIP, payload + bytes(zeros)))

    lists = [[0] * n for n in (0, 1, 5, 40)]
    own = parse_schema(other)
    codec = own.format.codec(own.parsed)
    values, _, reasons = decode(
        "pravega",
        registry,
        [pad_payload(codec.encode(datum), zeros) for datum in lists for zeros in (0, 1, 100)],
        subject="t",
    )
    assert values == [datum for datum in lists for _ in range(3)]
    assert not any(reasons)
    payloads = [b"\x08\x01", b"\x12\x03\0\0\0", b"\x08\0", b""]
    values, _, _ = decode(
        "pravega",
        registry,
        [pad_payload(payload, zeros) for payload in payloads for zeros in (0, 3)],
        subject="p",
        message="R",
    )
    wanted = [{"a": 1, "rest": b""}, {"a": 0, "rest": b"\0\0\0"}, {"a": 0, "rest": b""}, {"a": 0, "rest": b""}]
    assert values == [value for value in wanted for _ in range(2)]


def test_pravega_descriptors_are_schemas() -> None:
    """A Protobuf schema is given as descriptors, and its type names the message of the data."""
    from stele.formats.protobuf import file_descriptor_set

    schema = ResolvedSchema(PROTO, "PROTOBUF", subject="s", version=1, id=1)
    data = file_descriptor_set(parse_schema(schema).parsed).SerializeToString()
    registry = Fake(schema, answers={"GET /v1/groups/s/encodings/0": encoding(schema, data=data)})
    values, _, reasons = decode("pravega", registry, [pravega.frame(0, b"\x08\x05")], message="R")
    assert (values, reasons) == ([{"a": 5, "rest": b""}], [None])
    values, _, reasons = decode("pravega", registry, [pravega.frame(0, b"\x08\x05")])
    assert reasons == ["the record is a R, not a Other"]


def test_rocketmq_records() -> None:
    """Nine bytes before Avro data, eight before JSON; the record id with the subject names the schema."""
    number = (1 << 22) | 1
    where = "/schema-registry/v1/cluster/default/tenant/default/subject/s"
    answers = {
        f"GET {where}/recordId/{number}/schema": {"recordId": number, "idl": ONE, "type": "AVRO"},
        f"POST {where}/schema/schema": {"recordId": number, "idl": ONE, "type": "AVRO"},
    }
    registry = Fake(*VERSIONS, answers=answers)
    record = b"\x10" + number.to_bytes(8, "big") + PAYLOADS[0]
    values, ids, reasons = decode("rocketmq", registry, [record, None, b"\x10", b"\0" * 12, b"\x10" + bytes(7) + b"\2"])
    assert values == [ROWS[0], None, None, None, None]
    assert ids == [number, None, None, None, 2]
    assert reasons[4] == "unknown record id 2"
    assert all(reasons[2:4])
    assert encode_rows(RocketMQ(), registry, VERSIONS[0], [{"a": 1}]) == [[record]]
    schema = ResolvedSchema(
        '{"type": "object", "properties": {"a": {"type": "integer"}}}', "JSON", subject="s", version=1, id=1
    )
    registry = Fake(
        schema, answers={f"GET {where}/recordId/5/schema": {"recordId": 5, "idl": schema.text, "type": "JSON"}}
    )
    values, _, _ = decode("rocketmq:json", registry, [(5).to_bytes(8, "big") + b'{"a": 3}'])
    assert values == [{"a": 3}]


def test_cloud_events() -> None:
    """The URI of a header or of a document names an id, a guid or a version; it is never fetched."""
    uris = [
        "http://r/schemas/ids/7",
        f"http://r/schemas/guids/{GUIDS[1]}",
        "/subjects/s/versions/1",
        "schemagroups/g/schemas/s/versions/2",
    ]
    strange = ["http://evil/schemas/ids/7", "http://r/what", "http://r.evil/schemas/ids/7"]
    payloads = [*PAYLOADS, *PAYLOADS]
    headers: list[Any] = [[{"key": "ce_dataschema", "value": uri.encode()}] for uri in [*uris, *strange]]
    wire = CloudEvents(bases=("http://r",))
    values, ids, reasons = decode(
        wire, Fake(*VERSIONS), [*payloads, *PAYLOADS, PAYLOADS[0], b"", None], [*headers, [], None]
    )
    assert values == [*ROWS, *ROWS, None, None, None, None, None]
    assert ids == [*uris, *strange, None, None]
    assert reasons[4:] == [*(f"unknown dataschema {uri}" for uri in strange), "the event names no dataschema", None]


def test_structured_cloud_events() -> None:
    """Data are a JSON value, or base64; documents that are not events are bad records."""
    schema = ResolvedSchema(
        '{"type": "object", "properties": {"a": {"type": "integer"}}}', "JSON", subject="s", version=1, id=7
    )
    attributes = {"id": "1", "source": "/x", "type": "t"}
    document = cloudevents.structured_event("/schemas/ids/7", b'{"a": 90071992547409931}', attributes, is_json=True)
    packed = cloudevents.structured_event("/schemas/ids/7", b'{"a": 2}', attributes, is_json=False)
    bare = b'{"specversion": "1.0", "data": 3}'
    values, _, reasons = decode("cloudevents:structured", Fake(schema), [document, packed, bare, b"{", b"[]", None])
    assert values == [{"a": 90071992547409931}, {"a": 2}, None, None, None, None]
    assert reasons[2] == "the event names no dataschema"
    assert all(why.startswith("not a structured CloudEvent") for why in reasons[3:5])
    documents = encode_rows(CloudEvents("structured", base="http://r"), Fake(schema), schema, [{"a": 5}, None])[0]
    event = cloudevents.read_structured(documents[0])
    assert (event.dataschema, event.data, documents[1]) == ("http://r/schemas/ids/7", b'{"a":5}', None)
    records, headers = encode_rows(CloudEvents(base="http://r"), Fake(schema), schema, [{"a": 5}, {"a": 6}])
    names = {each["key"]: each["value"] for each in headers[0]}
    assert names["ce_dataschema"] == b"http://r/schemas/ids/7"
    assert headers[0] != headers[1], "each event has an id of its own"
    assert records == [b'{"a":5}', b'{"a":6}']


def test_unframed_records() -> None:
    """All payloads have the given schema."""
    values, ids, _ = decode("unframed:7", Fake(*VERSIONS), [PAYLOADS[0], None])
    assert (values, ids) == ([ROWS[0], None], [7, None])
    assert encode_rows(Unframed(7), Fake(*VERSIONS), VERSIONS[0], [{"a": 1}]) == [[PAYLOADS[0]]]
    values, _, reasons = decode("unframed:99", Fake(*VERSIONS), [PAYLOADS[0]])
    assert reasons == ["unknown schema id 99"]


@pytest.mark.parametrize(
    ("word", "message"),
    [("carrier-pigeon", "choose one of confluent"), ("unframed", "unframed:7"), ("confluent:x", "no setting"),
     ("confluent-header:x", "key or of a value"), ("rocketmq:xml", "avro or json"),
     ("cloudevents:x", "binary or structured"), ("avro-single-object:x", "no setting")],
)  # fmt: skip
def test_words_that_name_no_wire(word: str, message: str) -> None:
    """An unknown word is refused with a list of the known ones."""
    with pytest.raises(Invalid, match=message):
        get_wire(word)


def test_snapshots_have_no_encodings() -> None:
    """Wires whose ids only a registry knows raise an error with a snapshot; the others read without a registry."""
    snapshot = SchemaSnapshot(VERSIONS)
    for word in ("pravega", "rocketmq"):
        with pytest.raises(Invalid, match="needs the registry"):
            decode(word, snapshot, [b"\x01\0\0\0\0", b"\x10" + bytes(7) + b"\1"])
    assert decode("unframed:7", snapshot, [PAYLOADS[0]])[0] == [ROWS[0]]


def test_a_sixth_wire_is_a_class() -> None:
    """A custom wire needs only the methods of `Wire`."""
    from stele.spark.wires.base import FrameParts, ResolvedId

    class Hashed:
        """A wire with one byte before the payload."""

        name = "mine"
        id_type = pa.int8()
        id_label = "letter"
        needs_headers = False

        def split(self, values: Any, headers: Any) -> FrameParts:
            """Take a column apart; see `Wire.split`."""
            data = values.to_pylist()
            return FrameParts(
                pa.array([row[0] if row else None for row in data], pa.int8()),
                pa.array([row[1:] if row else None for row in data], pa.binary()),
                pa.nulls(len(data), pa.string()),
            )

        def resolve_id(self, number: Any, lookup: SchemaLookup) -> ResolvedId | None:
            """Return the schema of an id; see `Wire.resolve_id`."""
            schema = lookup.find_schema(number + 6)
            return None if schema is None else ResolvedId(schema)

        def framer(self, writer: ResolvedSchema, message: str, registry: Any) -> Any:
            """Return a framer; see `Wire.framer`."""
            raise NotImplementedError

    wire: Wire = Hashed()
    assert decode(wire, Fake(*VERSIONS), [b"\x01" + PAYLOADS[0], b"\x02" + PAYLOADS[1], None])[0] == [*ROWS, None]


# --- registries that are away ---------------------------------------------------------------------------------------


class Clock:
    """A clock that advances only by sleeping."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        """Advance the time."""
        self.slept.append(seconds)
        self.now += seconds


def away(times: int) -> Callable[[], str]:
    """Return a call that fails `times` times."""
    left = [times]

    def call() -> str:
        if left[0]:
            left[0] -= 1
            raise RegistryUnreachable("away")
        return "back"

    return call


def test_a_registry_that_comes_back_is_waited_for() -> None:
    """Pauses double and have jitter. Patience limits their sum, and the last error is raised."""
    clock = Clock()
    assert retry_unavailable(away(3), 30, sleep=clock.sleep, clock=clock, jitter=lambda: 0.0) == "back"
    assert clock.slept == [0.5, 1.0, 2.0]
    clock = Clock()
    assert retry_unavailable(away(1), 30, sleep=clock.sleep, clock=clock, jitter=lambda: 1.0) == "back"
    assert clock.slept == [0.25]
    clock = Clock()
    with pytest.raises(RegistryUnreachable):
        retry_unavailable(away(1000), 30, sleep=clock.sleep, clock=clock, jitter=lambda: 0.0)
    assert sum(clock.slept) <= 30
    assert max(clock.slept) <= 10
    with pytest.raises(RegistryUnreachable):
        retry_unavailable(away(1), 0, sleep=clock.sleep, clock=clock)
    with pytest.raises(DataError):
        retry_unavailable(lambda: (_ for _ in ()).throw(DataError("not an outage")), 30, sleep=clock.sleep, clock=clock)


def test_an_outage_is_raised_for_every_wire() -> None:
    """With every wire, a registry that does not answer raises an error and makes no bad records."""
    registry = Fake(VERSIONS[0])
    reading = plan_read(registry, "s", wire="avro-single-object", engine="python", patience=0.0)
    registry.away = 1
    with pytest.raises(RegistryUnreachable):
        RecordDecoder(reading).decode(pa.array([avro_single.frame(bytes(8), b"")]))
    lookup = SchemaLookup(PinnedSchemas("s", SchemaSnapshot(()), VERSIONS[0]), registry, patience=5.0)
    registry.away = 1
    assert lookup.find_schema(7) == VERSIONS[0]
