"""Addresses of topics that events go to."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import urlsplit

from stele.errors import InvalidRequest


class KafkaAddress(NamedTuple):
    """A topic, and a broker (`host:port`) that knows where it is."""

    broker: str
    topic: str


def parse_kafka_sink(sink: str) -> KafkaAddress:
    """Return the topic that `kafka://host:port/topic` names. Raises `InvalidRequest`."""
    try:
        parts = urlsplit(sink)
        broker, topic = f"{parts.hostname or ''}:{parts.port or 9092}", parts.path.strip("/")
    except ValueError:
        parts, broker, topic = urlsplit(""), "", ""
    if parts.scheme != "kafka" or not parts.hostname or not topic or "/" in topic or parts.query or parts.username:
        raise InvalidRequest("the sink of a KAFKA subscription is kafka://host:port/topic")
    return KafkaAddress(broker, topic)
