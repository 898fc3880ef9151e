"""Records transcoded without Spark: fields mapped by name, errors of single records, and headers replaced."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from stele.cli.offline import StoreTransport
from stele.client import Schema, SchemaRegistryClient
from stele.errors import CannotConvert
from stele.formats.avro import AVRO
from stele.formats.jsonschema import JSON_SCHEMA
from stele.formats.protobuf import PROTOBUF
from stele.spark.data_audit.transcoders import HeaderMerger, make_transcoder, map_by_name
from stele.spark.decode.records import plan_read, plan_write
from stele.spark.engines.error_codes import CODE_NAMES, describe_errors
from stele.spark.wires import CloudEvents, HeaderGuid, Prefix
from stele.wire.confluent import HEADER_NAMES

ORDER: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "orderId", "type": "long"},
        {"name": "amount", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "PAID"]}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "raw", "type": "bytes", "default": ""},
    ],
}
PROTO = """
syntax = "proto3";
import "google/protobuf/timestamp.proto";
package shop;
message Other { int32 x = 1; }
message Order {
  int64 order_id = 1;
  string amount = 2;
  google.protobuf.Timestamp at = 3;
  State state = 4;
  repeated string tags = 5;
  optional string note = 6;
  string channel = 7;
}
enum State { NEW = 0; PAID = 1; }
"""
JSON = json.dumps(
    {
        "title": "Order",
        "type": "object",
        "properties": {
            "order_id": {"type": "integer"},
            "amount": {"type": "string"},
            "at": {"type": "string", "format": "date-time"},
            "state": {"enum": ["NEW", "PAID"]},
            "channel": {"type": "string", "default": "web"},
            "note": {"type": "string", "maxLength": 5},
        },
        "required": ["order_id", "at"],
    }
)


def datum(number: int, **more: Any) -> dict[str, Any]:
    """Return an order."""
    from datetime import UTC, datetime
    from decimal import Decimal

    at = datetime(2026, 11, 22, 10, number % 60, tzinfo=UTC)
    order = {"orderId": number, "amount": Decimal(f"{number}.50"), "at": at, "state": "PAID", "tags": ["a"]}
    return {**order, "note": None, "raw": b"x", **more}


def frame_value(schema_id: int, value: Any) -> bytes:
    """Return a record as fastavro writes it."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(ORDER), value)
    return b"\0" + schema_id.to_bytes(4, "big") + out.getvalue()


@pytest.fixture
def client() -> Iterator[SchemaRegistryClient]:
    """A client of a registry in this process with the three subjects; ids 1 to 3."""
    transport = StoreTransport("memory:")
    with SchemaRegistryClient("http://registry", transport=transport) as opened:
        opened.register("avro", Schema(json.dumps(ORDER)))
        opened.register("proto", Schema(PROTO, "PROTOBUF"))
        opened.register("json", Schema(JSON, "JSON"))
        yield opened
    transport.close()


def move_records(client: SchemaRegistryClient, records: list[bytes | None], old: str, new: str, **more: Any) -> Any:
    """Transcode records of one subject to another one.

    Returns the new records, their error codes (None for good ones), and their ids.
    """
    reading = plan_read(lambda: client, old, message=more.pop("message", ""), engine="python")
    to_message = more.pop("to_message", "")
    writing = plan_write(client.resolve_version(new), lambda: client, message=to_message, engine="python")
    transcoded = make_transcoder(reading, writing).transcode(pa.array(records, pa.binary()), None)
    assert transcoded.headers is None
    codes = [CODE_NAMES[code] if code else None for code in transcoded.records.codes.to_pylist()]
    assert describe_errors(transcoded.records).is_valid().to_pylist() == [code is not None for code in codes]
    return transcoded.records.values.to_pylist(), codes, transcoded.records.schema_ids.to_pylist()


def test_avro_to_protobuf_and_back(client: SchemaRegistryClient) -> None:
    """Fields match without case and underscores, decimals become text, instants become messages.

    The way back gives the original records.
    """
    old: list[bytes | None] = [frame_value(1, datum(n)) for n in range(5)] + [None]
    there, codes, ids = move_records(client, old, "avro", "proto", to_message="shop.Order")
    assert codes == [None] * 6
    assert ids == [1] * 5 + [None]
    assert there[5] is None
    message: Any = PROTOBUF.parse(PROTO.encode(), {}).message_class("shop.Order").FromString(there[3][7:])
    assert there[3][:7] == b"\0\0\0\0\2\2\2", "the frame names the second message"
    assert (message.order_id, message.amount, message.state, list(message.tags)) == (3, "3.50", 1, ["a"])
    assert message.at.seconds == 1_795_341_780
    back, codes, _ = move_records(client, there, "proto", "avro", message="shop.Order")
    assert codes == [None] * 6
    values = [fastavro.schemaless_reader(io.BytesIO(record[5:]), fastavro.parse_schema(ORDER)) for record in back[:5]]
    assert values == [{**datum(n), "raw": b""} for n in range(5)]


def test_what_cannot_be_written_is_told_alone(client: SchemaRegistryClient) -> None:
    """Records that break the new schema's rules, damaged ones and unknown ones each get an error.

    The other records are written.
    """
    old: list[bytes | None] = [
        frame_value(1, datum(1, note="short")),
        frame_value(1, datum(2, note="too long")),
        frame_value(1, datum(3))[:-3],
        frame_value(9, datum(4)),
        b"x",
        None,
        frame_value(1, datum(5)),
    ]
    there, codes, _ = move_records(client, old, "avro", "json")
    assert codes == [None, "UNWRITABLE_VALUE", "INVALID_DATA", "UNKNOWN_SCHEMA_ID", "NOT_FRAMED", None, None]
    assert [record is None for record in there] == [False, True, True, True, True, True, False]
    assert json.loads(there[0][5:]) == {
        "order_id": 1,
        "amount": "1.50",
        "at": "2026-11-22T10:01:00Z",
        "state": "PAID",
        "channel": "web",
        "note": "short",
    }
    with pytest.raises(CannotConvert, match="tags: the target requires it"):
        move_records(client, there, "json", "avro")


def test_columns_halve_a_batch_until_the_bad_are_alone(client: SchemaRegistryClient) -> None:
    """Within one language, a single value too wide for the new schema is one dead letter, at any position."""
    client.set_config("NONE", "narrow")
    wide = {"type": "record", "name": "N", "fields": [{"name": "s", "type": ["null", "string"], "default": None}]}
    old = client.register("narrow", Schema(json.dumps(wide))).id
    client.register("narrow", Schema(json.dumps(wide).replace('["null", "string"]', '"string"').replace("null", '""')))
    out = []
    for text in ("a", None, "b", None, "c"):
        stream = io.BytesIO()
        fastavro.schemaless_writer(stream, fastavro.parse_schema(wide), {"s": text})
        out.append(b"\0" + old.to_bytes(4, "big") + stream.getvalue())
    there, codes, _ = move_records(client, list(out), "narrow", "narrow")
    assert [code is None for code in codes] == [True, False, True, False, True]
    assert [record and record[-1:] for record in there] == [b"a", None, b"b", None, b"c"]


def models(old: Any, new: Any) -> tuple[Any, Any]:
    """Return the neutral models of two schemas."""
    pair: list[Any] = []
    proto: Any = PROTOBUF
    for text in (old, new):
        if isinstance(text, dict):
            pair.append(AVRO.to_model(AVRO.parse(json.dumps(text).encode(), {}))[0])
        elif text.startswith("{"):
            pair.append(JSON_SCHEMA.to_model(JSON_SCHEMA.parse(text.encode(), {}))[0])
        else:
            pair.append(proto.to_model(PROTOBUF.parse(text.encode(), {}), "shop.Order")[0])
    return pair[0], pair[1]


def test_losses_are_named() -> None:
    """Fields without a target, fields without a source, and symbols that the target lacks are listed as losses."""
    _, losses = map_by_name(*models(ORDER, JSON.replace('"PAID"', '"LOST"')))
    is_data_loss = {(loss.path, loss.what): loss.data for loss in losses}
    assert is_data_loss["tags", "FIELD"] is True
    assert is_data_loss["raw", "FIELD"] is True
    assert is_data_loss["channel", "FILLED"] is False
    assert is_data_loss["state", "SYMBOL"] is True


@pytest.mark.parametrize(
    ("field", "why"),
    [
        ({"name": "missing", "type": "string"}, "missing: the target requires it"),
        ({"name": "orderId", "type": "string"}, "orderId: int64 does not become string"),
        ({"name": "orderId", "type": "boolean"}, "int64 does not become boolean"),
        ({"name": "tags", "type": "string"}, "array does not become string"),
    ],
)
def test_what_no_value_can_become_is_refused(field: Any, why: str) -> None:
    """Types that cannot be converted are an error before the first record."""
    other = {**ORDER, "fields": [field]}
    with pytest.raises(CannotConvert, match=why):
        map_by_name(*models(ORDER, other))


def test_records_inside_themselves_are_entered_once() -> None:
    """A record that contains itself is mapped at any depth, and its loss is listed once."""
    old = {
        "type": "record",
        "name": "L",
        "fields": [{"name": "v", "type": "long"}, {"name": "next", "type": ["null", "L"]}],
    }
    new = json.loads(json.dumps(old).replace('"long"', '"int"'))
    adapt, losses = map_by_name(*models(old, new))
    value = {"v": 1, "next": {"v": 2, "next": {"v": 3, "next": None}}}
    assert adapt(value) == value
    assert [(loss.path, loss.what) for loss in losses] == [("v", "RANGE")]


def test_headers_of_the_old_wire_go(client: SchemaRegistryClient) -> None:
    """The guid header and event attributes of the old wire are removed. Other headers stay, in order."""
    del client
    name = HEADER_NAMES["value"]
    old = pa.array(
        [[{"key": "trace", "value": b"1"}, {"key": name, "value": b"old"}, {"key": "ce_id", "value": b"2"}], None],
        pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
    )
    new = pa.array([[{"key": name, "value": b"new"}]] * 2, old.type)

    def names(column: Any) -> list[Any]:
        return [row and [entry["key"] for entry in row] for row in column.to_pylist()]

    assert names(HeaderMerger(HeaderGuid()).merge_headers(old, None, 2)) == [["trace", "ce_id"], None]
    assert names(HeaderMerger(CloudEvents()).merge_headers(old, None, 2)) == [["trace", name], None]
    merged_headers = HeaderMerger(Prefix()).merge_headers(old, new, 2)
    assert names(merged_headers) == [["trace", "ce_id", name], [name]]
    assert merged_headers.to_pylist()[0][-1]["value"] == b"new"
    assert HeaderMerger(Prefix()).merge_headers(None, None, 2).to_pylist() == [None, None]
