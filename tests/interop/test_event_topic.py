"""Subscriptions to a topic: events reach a real broker, keyed by their subject."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
from confluent_kafka import Consumer, Message
from tests.support.server_process import serving


def test_events_reach_a_topic(broker: str, topic: str, tmp_path: Path) -> None:
    """Each event is one record: the key is its subject, the value the event as JSON."""
    with serving("--store", "memory:", folder=tmp_path, environ={"STELE_EVENT_BROKERS": broker}) as server:
        filters = [{"prefix": {"subject": "/schemagroups/"}}]
        body = {"sink": f"kafka://{broker}/{topic}", "protocol": "KAFKA", "filters": filters}
        httpx.post(f"{server.url}/subscriptions", json=body, timeout=120).raise_for_status()
        for subject in ("topic-a", "topic-b"):
            answer = httpx.post(f"{server.url}/subjects/{subject}/versions", json={"schema": '"string"'}, timeout=120)
            answer.raise_for_status()
        consumer = Consumer(
            {
                "bootstrap.servers": broker,
                "group.id": topic,
                "auto.offset.reset": "earliest",
                "topic.metadata.refresh.interval.ms": 500,  # the first event may create the topic later than this
            }
        )
        consumer.subscribe([topic])
        records: dict[str, Message] = {}  # by event id: a record with a late acknowledgement is sent again
        try:
            for _ in range(400):
                record = consumer.poll(0.5)
                if record is not None and record.error() is None:
                    records.setdefault(json.loads(record.value() or b"")["id"], record)
                if len(records) == 2:
                    break
        finally:
            consumer.close()
    events = [json.loads(record.value() or b"") for record in records.values()]
    assert [event["subject"] for event in events] == [
        f"/schemagroups/default/schemas/topic-{name}/versions/1" for name in "ab"
    ]
    assert [record.key() for record in records.values()] == [event["subject"].encode() for event in events]
