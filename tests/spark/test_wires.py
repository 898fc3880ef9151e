"""Wires against a real server: the ids that it assigns are resolved again, in every dialect that has a wire."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from tests.support.server_process import call, serving

from stele.spark.decode.records import RecordDecoder, RecordEncoder, plan_read, plan_write
from stele.spark.engines.error_codes import describe_errors
from stele.spark.registry import pin_schemas
from stele.spark.wires import Pravega, RocketMQ, Wire
from stele.wire import pravega

SCHEMA = '{"type":"record","name":"R","namespace":"n","fields":[{"name":"a","type":"int"}]}'


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server in memory with the subject `g`, which is a Pravega group with a codec, and the RocketMQ subject `r`."""
    with serving("--store", "memory:", folder=tmp_path_factory.mktemp("server")) as running:
        properties: dict[str, Any] = {
            "serializationFormat": {"serializationFormat": "Avro"},
            "compatibility": {"policy": "AllowAny"},
            "allowMultipleTypes": True,
        }
        _post(f"{running.url}/v1/groups", {"groupName": "g", "groupProperties": properties})
        _post(f"{running.url}/v1/groups/g/codecTypes", {"name": pravega.GZIP})
        _post(f"{running.url}/subjects/g/versions", {"schema": SCHEMA})
        rocketmq = f"{running.url}/schema-registry/v1/cluster/default/tenant/default/subject/r/schema/r"
        _post(rocketmq, {"schemaIdl": SCHEMA, "schemaType": "AVRO"})
        yield running.url


def _post(url: str, body: Any) -> None:
    answer = call(url, "POST", body)
    assert answer.status in (200, 201), answer


@pytest.mark.parametrize(
    ("subject", "wire"),
    [
        ("g", "confluent"),
        ("g", "confluent-header"),
        ("g", "avro-single-object"),
        ("g", "cloudevents:structured"),
        ("g", "cloudevents"),
        ("g", "pravega"),
        ("g", Pravega(codec=pravega.GZIP)),
        ("r", RocketMQ()),
    ],
    ids=str,
)
def test_what_is_written_is_read(server: str, subject: str, wire: str | Wire) -> None:
    """Records written for a wire are read from it, by the ids of the server."""
    writer = pin_schemas(server, subject, patience=30).reader
    written = RecordEncoder(plan_write(writer, server, wire=wire, engine="python")).encode(pa.array([{"a": 5}, None]))
    decoded = RecordDecoder(plan_read(server, subject, wire=wire, engine="python")).decode(*written)
    assert describe_errors(decoded).to_pylist() == [None, None]
    assert decoded.values.to_pylist() == [{"a": 5}, None]
