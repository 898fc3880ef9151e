"""Topics of several types, records of any type, and rules, without Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pyarrow as pa
import pytest

from stele.client import ResolvedSchema, Rule, RuleSet, Schema, SchemaRegistryClient, SchemaSnapshot
from stele.client.serdes import ExpressionLimits, Rules
from stele.client.serdes.rules import RuleContext, RuleExecutor
from stele.client.serdes.schemas import parse_schema
from stele.errors import DataError, Invalid, RegistryUnreachable, RuleFailed, RulesRefused, VersionNotFound
from stele.formats.protobuf import message_class
from stele.spark.decode.records import RecordDecoder, RecordEncoder, plan_read, plan_write
from stele.spark.engines.error_codes import describe_errors
from stele.spark.registry import pin_schemas
from stele.wire.confluent import frame


def avro(name: str, *fields: str, number: int, subject: str = "", version: int = 1) -> ResolvedSchema:
    """Return a schema of a record with string fields, all but the first with defaults."""
    definitions = [
        {"name": field, "type": "string", **({"default": "-"} if place else {})} for place, field in enumerate(fields)
    ]
    text = json.dumps({"type": "record", "name": name, "namespace": "acme", "fields": definitions})
    return ResolvedSchema(text, id=number, subject=subject or f"acme.{name}", version=version)


ORDER, ORDER2 = avro("Order", "id", number=1), avro("Order", "id", "note", number=2, version=2)
CANCEL = avro("Cancel", "why", number=3)
SNAPSHOT = SchemaSnapshot((ORDER, ORDER2, CANCEL))


def frame_datum(schema: ResolvedSchema, datum: Any) -> bytes:
    """Return a framed record."""
    own = parse_schema(schema)
    return frame(schema.id, own.format.codec(own.parsed).encode(datum))


def decode(frames: list[bytes | None], registry: Any, subject: Any, **options: Any) -> tuple[list[Any], list[Any]]:
    """Return decoded values and reasons."""
    reading = plan_read(registry, subject, engine="python", patience=0.0, **options)
    decoded = RecordDecoder(reading).decode(pa.array(frames, pa.binary()))
    assert decoded.values.type == reading.type
    return decoded.values.to_pylist(), describe_errors(decoded).to_pylist()


# --- the reader's schema --------------------------------------------------------------------------------------------


def test_readers_of_every_kind(tmp_path: Path) -> None:
    """A reader can be a number, `latest`, a text, a `Schema` or a file; any other word is an unknown version."""
    own = avro("Order", "mine", number=0)
    file = tmp_path / "order.avsc"
    file.write_text(own.text)
    assert pin_schemas(SNAPSHOT, "acme.Order").reader == ORDER2
    assert pin_schemas(SNAPSHOT, "acme.Order", 1).reader == pin_schemas(SNAPSHOT, "acme.Order", "1").reader == ORDER
    for reader in (own.text, Schema(own.text), file):
        assert pin_schemas(SNAPSHOT, "acme.Order", reader).reader.text == own.text
    assert pin_schemas(SNAPSHOT, "acme.Order", own).reader == own
    with pytest.raises(VersionNotFound):
        pin_schemas(SNAPSHOT, "acme.Order", "newest")
    proto = ResolvedSchema("syntax = 'proto3'; message A {}", "PROTOBUF", subject="p", version=1)
    assert pin_schemas(SchemaSnapshot((proto,)), "p", "message B { }").reader.schema_type == "PROTOBUF"


# --- several types --------------------------------------------------------------------------------------------------


def test_each_type_has_a_column() -> None:
    """Records go to the column of their subject, and old versions are resolved; all other records have a reason."""
    stranger = avro("Stranger", "x", number=9, subject="elsewhere")
    registry = SchemaSnapshot((*SNAPSHOT.schemas, stranger))
    frames = [
        frame_datum(ORDER, {"id": "1"}), frame_datum(CANCEL, {"why": "no"}), None,
        frame_datum(ORDER2, {"id": "2", "note": "n"}),
        frame_datum(stranger, {"x": "y"}), frame(77, b""), b"bad", frame_datum(CANCEL, {"why": "no"}) + b"x",
    ]  # fmt: skip
    values, reasons = decode(frames, registry, ["acme.Order", "acme.Cancel"])
    assert values == [
        {"Order": {"id": "1", "note": "-"}, "Cancel": None},
        {"Order": None, "Cancel": {"why": "no"}},
        None,
        {"Order": {"id": "2", "note": "n"}, "Cancel": None},
        *[None] * 4,
    ]
    assert reasons == [
        *[None] * 4,
        "schema id 9 belongs to none of Order, Cancel",
        "unknown schema id 77",
        "no frame: the first byte must be 0, followed by a schema id of four bytes",
        "bytes are left over after the value",
    ]


def test_columns_may_be_named() -> None:
    """A mapping names the columns. Types with equal names, or without one, are named by their subjects."""
    values, _ = decode(
        [frame_datum(CANCEL, {"why": "no"})], SNAPSHOT, {"placed": "acme.Order", "cancelled": "acme.Cancel"}
    )
    assert values == [{"placed": None, "cancelled": {"why": "no"}}]
    twin = avro("Order", "id", number=5, subject="other-value")
    both = plan_read(SchemaSnapshot((*SNAPSHOT.schemas, twin)), ["acme.Order", "other-value"])
    assert [target.name for target in both.targets] == ["acme.Order", "other-value"]
    with pytest.raises(Invalid, match="newest versions"):
        plan_read(SNAPSHOT, ["acme.Order"], 1)
    with pytest.raises(Invalid, match="no subject given"):
        plan_read(SNAPSHOT, [])


def test_a_type_registered_elsewhere_is_known_by_its_name() -> None:
    """A record whose id belongs to no pinned subject goes to the column whose type has its name."""

    class Late:
        def __call__(self) -> Any:
            return self

        def snapshot(self, *, subjects: Any) -> SchemaSnapshot:
            """Return the pinned versions."""
            return SchemaSnapshot(tuple(known for known in SNAPSHOT.schemas if known.subject in subjects))

        def resolve(self, schema: int, *, context: str = "") -> ResolvedSchema:
            """Return a schema of another subject."""
            del context
            return avro("Cancel", "why", "more", number=schema, subject="late")

    frames: list[bytes | None] = [frame_datum(avro("Cancel", "why", "more", number=8), {"why": "a", "more": "b"})]
    assert decode(frames, Late(), ["acme.Order", "acme.Cancel"])[0] == [{"Order": None, "Cancel": {"why": "a"}}]


def test_formats_may_be_mixed() -> None:
    """Types of one topic can have different schema languages."""
    proto = ResolvedSchema(
        'syntax = "proto3"; message Ping { int32 n = 1; }', "PROTOBUF", id=4, subject="ping", version=1
    )
    kind: Any = message_class(parse_schema(proto).parsed)
    frames: list[bytes | None] = [frame(4, kind(n=5).SerializeToString(), [0]), frame_datum(CANCEL, {"why": "x"})]
    values, _ = decode(frames, SchemaSnapshot((*SNAPSHOT.schemas, proto)), ["ping", "acme.Cancel"])
    assert values == [{"Ping": {"n": 5}, "Cancel": None}, {"Ping": None, "Cancel": {"why": "x"}}]


def test_records_of_any_type_are_json() -> None:
    """Without a subject a record is decoded to the name of its type and its value as text, in every format."""
    proto = ResolvedSchema('syntax = "proto3"; package p; message M { int64 n = 1; }', "PROTOBUF", id=4)
    thrift = ResolvedSchema("struct T { 1: binary b }", "THRIFT", id=5)
    dated = ResolvedSchema(
        '{"type": "record", "name": "D", "fields": [{"name": "d", "type": {"type": "int", "logicalType": "date"}}]}',
        id=6,
    )
    registry = SchemaSnapshot((*SNAPSHOT.schemas, proto, thrift, dated))
    frames = [
        frame_datum(ORDER, {"id": "1"}), frame(4, b"\x08\x05", [0]), frame_datum(thrift, {"b": b"\xff"}), None,
        frame(6, b"\x02"), frame(99, b""), b"x", frame(4, b"\xff", [0]), frame(4, b"", [7]),
    ]  # fmt: skip
    values, reasons = decode(frames, registry, None)
    assert values[:5] == [
        {"type": "acme.Order", "json": '{"id":"1"}'},
        {"type": "p.M", "json": '{"n": "5"}'},
        {"type": "T", "json": '{"b":"/w=="}'},
        None,
        {"type": "D", "json": '{"d":"1970-01-02"}'},
    ]
    assert values[5:] == [None] * 4
    assert reasons[5] == "unknown schema id 99"
    assert all(reasons[6:])
    own = avro("Order", "id", number=0)
    assert decode(frames[:1], registry, None, reader=own)[0] == [{"id": "1"}]
    with pytest.raises(VersionNotFound):
        plan_read(registry, None, 3)


# --- rules ----------------------------------------------------------------------------------------------------------


class Shout(RuleExecutor):
    """A rule that converts to upper case when reading, to lower case when writing."""

    def run(self, context: RuleContext, value: Any) -> Any:
        """Return the value after the rule; see `RuleExecutor`."""
        if value["id"] == "fail":
            raise ValueError("told to")
        if value["id"] == "away":
            raise RegistryUnreachable("no keys today")
        return {**value, "id": value["id"].upper() if context.mode.name == "READ" else value["id"].lower()}


class Move(RuleExecutor):
    """A migration rule that moves the id to the note."""

    def run(self, context: RuleContext, value: Any) -> Any:
        """Return the value after the rule; see `RuleExecutor`."""
        return {"id": "moved", "note": value["id"]}


RUN = Rules(executors={"SHOUT": Shout, "MOVE": Move})


def add_rule(schema: ResolvedSchema, phase: str, rule_type: str, mode: str) -> ResolvedSchema:
    """Return the schema with a rule."""
    rules: Any = {f"{phase}_rules": [Rule("loud", type=rule_type, mode=mode)]}
    return msgspec.structs.replace(schema, rule_set=RuleSet(**rules))


def test_rules_for_reading_are_refused_unless_someone_decides() -> None:
    """A rule for reading or migration in any pinned version fails the plan and is named; one for writing does not."""
    for phase, mode in (("domain", "READ"), ("domain", "WRITEREAD"), ("encoding", "READ"), ("migration", "UPGRADE")):
        snapshot = SchemaSnapshot((add_rule(ORDER, phase, "SHOUT", mode), ORDER2))
        with pytest.raises(RulesRefused, match=r"version 1 of 'acme\.Order' has the rule 'loud'"):
            plan_read(snapshot, "acme.Order")
        assert plan_read(snapshot, "acme.Order", rules="ignore").rules == "ignore"
    plan_read(SchemaSnapshot((add_rule(ORDER, "domain", "SHOUT", "WRITE"),)), "acme.Order")
    disabled = msgspec.structs.replace(ORDER, rule_set=RuleSet(domain_rules=[Rule("off", type="X", disabled=True)]))
    plan_read(SchemaSnapshot((disabled,)), "acme.Order")
    with pytest.raises(Invalid, match="'refuse', 'run', 'ignore'"):
        plan_read(SNAPSHOT, "acme.Order", rules="maybe")  # type: ignore[arg-type]  # on purpose


def test_rules_run_and_are_ignored_as_chosen() -> None:
    """With `run` values are those after the rule, and its failure is a reason; with `ignore` they are as stored."""
    schema = add_rule(ORDER, "domain", "SHOUT", "READ")
    snapshot = SchemaSnapshot((schema,))
    frames = [frame_datum(schema, {"id": "a"}), None, frame_datum(schema, {"id": "fail"}), frame(99, b""), b"x"]
    values, reasons = decode(frames, snapshot, "acme.Order", rules=RUN)
    assert values == [{"id": "A"}, None, None, None, None]
    assert "told to" in reasons[2]
    assert reasons[3] == "unknown schema id 99"
    assert decode(frames[:1], snapshot, "acme.Order", rules="ignore")[0] == [{"id": "a"}]


def test_records_without_rules_keep_the_fast_way() -> None:
    """Only records of schemas with rules go through rules; all records keep the ids of their frames."""
    migrating = add_rule(ORDER2, "migration", "MOVE", "UPGRADE")
    snapshot = SchemaSnapshot((ORDER, migrating))
    reading = plan_read(snapshot, "acme.Order", engine="python", rules=RUN)
    frames = [frame_datum(ORDER, {"id": "old"}), frame_datum(migrating, {"id": "new", "note": "n"})]
    decoded = RecordDecoder(reading).decode(pa.array(frames))
    assert decoded.values.to_pylist() == [{"id": "moved", "note": "old"}, {"id": "new", "note": "n"}]
    assert decoded.schema_ids.to_pylist() == [1, 2]
    older = plan_read(snapshot, "acme.Order", 1, engine="python", rules=RUN)
    assert RecordDecoder(older).decode(pa.array(frames)).values.to_pylist() == [{"id": "old"}, {"id": "new"}]


def test_rules_of_strangers_are_bounded_in_columns() -> None:
    """A rule that exceeds its time limit makes its records bad, and the task goes on."""
    hostile = Rule("slow", type="CEL", mode="READ", expr="['aaaaaaaa']" + ".map(x, x + x)" * 40)
    schema = msgspec.structs.replace(ORDER, rule_set=RuleSet(domain_rules=[hostile]))
    frames: list[bytes | None] = [frame_datum(schema, {"id": "a"})]
    rules = Rules(limits=ExpressionLimits(seconds=0.5, memory=64 << 20))
    values, reasons = decode(frames, SchemaSnapshot((schema,)), "acme.Order", rules=rules)
    assert values == [None]
    assert "takes more than" in reasons[0]


def test_an_outage_behind_a_rule_is_an_outage() -> None:
    """Keys that cannot be fetched fail the task; they do not make records bad."""
    schema = add_rule(ORDER, "domain", "SHOUT", "READ")
    with pytest.raises(RegistryUnreachable, match="no keys today"):
        decode([frame_datum(schema, {"id": "away"})], SchemaSnapshot((schema,)), "acme.Order", rules=RUN)


def test_a_rule_registered_after_planning_is_a_reason() -> None:
    """With `refuse`, records of a later schema with a rule are bad records, and the reason names the rule."""
    late = add_rule(avro("Order", "id", number=6), "encoding", "SHOUT", "READ")

    class Late:
        def __call__(self) -> Any:
            return self

        def snapshot(self, *, subjects: Any) -> SchemaSnapshot:
            """Return the pinned version."""
            return SchemaSnapshot((ORDER,))

        def resolve(self, schema: int, *, context: str = "") -> ResolvedSchema:
            """Return the later version."""
            return late

    values, reasons = decode([frame_datum(late, {"id": "x"})], Late(), "acme.Order")
    assert values == [None]
    assert reasons == ["schema id 6 cannot be read: its rule 'loud' would have to run: choose rules='run' or 'ignore'"]


def holder(schema: ResolvedSchema) -> SchemaRegistryClient:
    """Return a client of a registry that has one schema."""
    answer_questions = {
        "schema": schema.text,
        "schemaType": schema.schema_type,
        "ruleSet": msgspec.to_builtins(schema.rule_set),
    }
    transport = httpx.MockTransport(lambda _: httpx.Response(200, json=answer_questions))
    return SchemaRegistryClient("http://registry", transport=transport)


def test_rules_for_writing() -> None:
    """A rule for writing is refused by default. With `run` records are written after it; its failure is raised."""
    schema = add_rule(ORDER, "domain", "SHOUT", "WRITE")
    with pytest.raises(RulesRefused, match="must not be written"):
        plan_write(schema, SNAPSHOT)
    rows = pa.array([{"id": "LOUD"}, None])

    def encode_rows(rules: Any, values: Any = rows) -> list[Any]:
        client = holder(schema)
        writing = plan_write(schema, lambda: client, rules=rules, engine="python")
        return list(RecordEncoder(writing).encode(values)[0].to_pylist())

    assert encode_rows("ignore") == [frame_datum(schema, {"id": "LOUD"}), None]
    assert encode_rows(RUN) == [frame_datum(schema, {"id": "loud"}), None]
    with pytest.raises(RuleFailed, match="told to"):
        encode_rows(RUN, pa.array([{"id": "fail"}]))
    with pytest.raises(RegistryUnreachable, match="no keys today"):
        encode_rows(RUN, pa.array([{"id": "away"}]))
    with pytest.raises(Invalid, match="need a registry"):
        RecordEncoder(plan_write(schema, SNAPSHOT, rules=RUN, engine="python"))
    thrift = add_rule(ResolvedSchema("struct T { 1: string id }", "THRIFT", id=1), "domain", "SHOUT", "WRITE")
    client = holder(thrift)
    with pytest.raises(DataError, match="rules cannot run on data of the format THRIFT"):
        RecordEncoder(plan_write(thrift, lambda: client, rules=RUN))
