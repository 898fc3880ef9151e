"""The registry's data on ids, loaded from a real registry; and statistics of records of other languages."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pyarrow as pa
import pytest

from stele.cli.offline import StoreTransport
from stele.client import ResolvedSchema, Schema, SchemaReference, SchemaRegistryClient, SchemaSnapshot
from stele.errors import Invalid, SubjectNotFound
from stele.spark.data_audit.aggregation import RAW, TIME
from stele.spark.data_audit.audit_scope import AuditScope, load_scope
from stele.spark.data_audit.backtest import BacktestAggregator, BacktestCounts
from stele.spark.data_audit.census import make_census
from stele.spark.data_audit.data_stats import NO_ID, SchemaStats, SchemaStatsAggregator


def text(kind: str) -> str:
    """Return a record schema with one field."""
    return json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": kind}]})


@pytest.fixture
def client() -> Iterator[SchemaRegistryClient]:
    """A client of an empty registry in this process."""
    transport = StoreTransport("memory:")
    with SchemaRegistryClient("http://registry", transport=transport) as opened:
        yield opened
    transport.close()


def test_hidden_versions_and_references_count(client: SchemaRegistryClient) -> None:
    """A soft-deleted version is judged for purging. A version that other schemas refer to is never safe."""
    ids = [client.register("s", Schema(text(kind))).id for kind in ("int", "long", "double")]
    client.delete_version("s", 1)
    outer = json.dumps({"type": "record", "name": "O", "fields": [{"name": "r", "type": "R"}]})
    by = client.register("o", Schema(outer, references=(SchemaReference("R", "s", 2),))).id
    scope = load_scope(lambda: client, "s", engine="python")
    assert [(it.version, it.hidden, it.newest, it.referred_by) for it in scope.versions] == [
        (1, True, False, ()),
        (2, False, False, (by,)),
        (3, False, True, ()),
    ]
    census = make_census({str(ids[2]): SchemaStats(records=2), str(by): SchemaStats(records=1)}, scope)
    assert [it.why.partition(":")[0] for it in census.versions] == ["safe to purge", "not safe", "not safe"]
    assert census.versions[1].why == f"not safe: needed by schema {by}"
    assert census.ids[1].places == ("o v1",), "an id of another subject is told with where it is"
    with pytest.raises(SubjectNotFound):
        load_scope(lambda: client, "nobody")


def test_questions_that_make_no_sense() -> None:
    """Subjects of two contexts and engines that tasks do not have are refused."""
    with pytest.raises(Invalid, match="several contexts"):
        load_scope("http://nowhere", [":.a:s", "s"])
    with pytest.raises(Invalid, match="engine"):
        load_scope("http://nowhere", "s", engine="fast")


def of(schema_text: str, schema_type: str = "AVRO") -> AuditScope:
    """Return the scope of a registry with one schema, of id 1."""
    schema = ResolvedSchema(schema_text, schema_type, id=1, subject="s", version=1)
    return load_scope(SchemaSnapshot((schema,)), "s", engine="python")


def batch(*records: bytes | None) -> pa.RecordBatch:
    """Return records as tasks get them, one per day, from the last day before 1970 on."""
    times = pa.array([(n - 1) * 86_400_000_000 for n in range(len(records))], pa.int64())
    return pa.RecordBatch.from_arrays([pa.array(records, pa.binary()), times], [RAW, TIME])


def test_protobuf_records_are_seen() -> None:
    """Optional fields that are not set are counted as not present, and damaged records are counted by reason."""
    proto = 'syntax = "proto3"; message M { int32 a = 1; optional string b = 2; }'
    begin = b"\0\0\0\0\1\0"
    answer = SchemaStatsAggregator(of(proto, "PROTOBUF").context).start_task()
    stats = answer(batch(begin + b"\x08\x01", begin + b"\x08\x02", begin + b"\x12\xff", None, b"x"))
    assert {path: (it.present, it.slots) for path, it in stats["1"].fields.items()} == {"a": (2, 2), "b": (0, 2)}
    assert (stats["1"].records, sum(stats["1"].reasons.values())) == (3, 1)
    assert (stats[NO_ID].records, stats[NO_ID].nulls) == (1, 1)
    assert stats["1"].days == {-1: 1, 0: 1, 1: 1}
    assert (stats["1"].first, stats["1"].last) == (-86_400_000_000, 86_400_000_000)


def test_schemas_without_columns_are_counted_all_the_same() -> None:
    """Records of a type that contains itself are counted. Their fields are not examined, and a note has the reason."""
    node = {"type": "record", "name": "N", "fields": [{"name": "next", "type": ["null", "N"]}]}
    stats = SchemaStatsAggregator(of(json.dumps(node)).context).start_task()(batch(b"\0\0\0\0\1\0"))
    assert stats["1"].records == 1
    assert stats["1"].fields == {}
    assert stats["1"].note.startswith("schema id 1 cannot be read:")


def test_trials_without_a_wire_frame() -> None:
    """Unframed records of a given id are tried like framed ones."""
    schema = ResolvedSchema(text("string"), id=1, subject="s", version=1)
    scope = load_scope(SchemaSnapshot((schema,)), "s", wire="unframed:1", engine="python")
    tried = BacktestAggregator(scope.context, ResolvedSchema(text("bytes"))).start_task()(
        batch(b"\x02a", b"\x09", None)
    )
    assert (tried["1"].records, tried["1"].damaged) == (2, {"a length is negative or reaches beyond the record": 1})
    assert tried["1"].broken == {}
    assert tried[NO_ID] == BacktestCounts(nulls=1, most=10)
