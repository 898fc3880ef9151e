"""Subscriptions to a topic: events reach a real broker, keyed by their subject."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
from confluent_kafka import Consumer
from tests.support.server_process import serving


def test_events_reach_a_topic(broker: str, topic: str, tmp_path: Path) -> None:
    """Each event is one record: the key is its subject, the value the event as JSON."""
    with serving("--store", "memory:", folder=tmp_path, environ={"STELE_EVENT_BROKERS": broker}) as server:
        filters = [{"prefix": {"subject": "/schemagroups/"}}]
        body = {"sink": f"kafka://{broker}/{topic}", "protocol": "KAFKA", "filters": filters}
        httpx.post(f"{server.url}/subscriptions", json=body).raise_for_status()
        for subject in ("topic-a", "topic-b"):
            answer = httpx.post(f"{server.url}/subjects/{subject}/versions", json={"schema": '"string"'})
            answer.raise_for_status()
        consumer = Consumer({"bootstrap.servers": broker, "group.id": topic, "auto.offset.reset": "earliest"})
        consumer.subscribe([topic])
        try:
            polled = (consumer.poll(0.5) for _ in range(100))
            records = (record for record in polled if record is not None and record.error() is None)
            found = [next(records), next(records)]
        finally:
            consumer.close()
    events = [json.loads(record.value() or b"") for record in found]
    assert [event["subject"] for event in events] == [
        f"/schemagroups/default/schemas/topic-{name}/versions/1" for name in "ab"
    ]
    assert [record.key() for record in found] == [event["subject"].encode() for event in events]
