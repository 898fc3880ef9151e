"""Creates the topics of a log, and checks existing ones."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Final

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its names are not marked as exported
    AdminClient,
    ConfigResource,
    NewTopic,
    ResourceType,
    TopicDescription,
)

from stele.errors import StoreError
from stele.storage.kafka.client import ANSWER_SECONDS, PARTITION, store_error
from stele.storage.kafka.url import TopicAddress

__all__ = [
    "TOPIC_SETTINGS",
    "find_replicas",
    "find_topic",
    "name_snapshot_topic",
    "prepare_topic",
    "read_topic_settings",
]

_LOGGER = logging.getLogger(__name__)

TOPIC_SETTINGS: Final[Mapping[str, str]] = {
    "cleanup.policy": "compact",
    "max.message.bytes": str(32 << 20),
    "max.compaction.lag.ms": str(24 * 3600 * 1000),  # purged texts are gone after a day
    "message.timestamp.type": "CreateTime",
}
"""Settings of a topic that Stele creates."""

_SHOWN_WITHIN: Final = 10.0
"""Seconds to wait until the brokers list a topic that was created."""


def name_snapshot_topic(topic: str) -> str:
    """Return the name of the topic with the snapshots of a log, from the name of the log's topic."""
    return f"{topic}-snapshots"


def prepare_topic(admin: AdminClient, address: TopicAddress, topic: str) -> None:
    """Create the topic if there is none; check that it has one partition and keeps every record.

    Raises `StoreError`.
    """
    try:
        partitions = find_topic(admin, topic)
        if partitions is None:
            _make_topic(admin, address, topic)
            partitions = _await_topic(admin, topic)
        if partitions is None:
            raise StoreError(f"The topic {topic} of {address.place} was created, but the brokers do not list it yet")
        if partitions != 1:
            raise StoreError(
                f"The topic {topic} of {address.place} has {partitions} partitions; a log needs one, since only one"
                " has an order. Name another topic"
            )
        policy = read_topic_settings(admin, topic).get("cleanup.policy")
    except KafkaException as error:
        raise store_error(address.place, error.args[0]) from error
    if policy is None:
        _LOGGER.warning("the settings of the topic %s in %s may not be read by this user", topic, address.place)
    elif policy != "compact":
        raise StoreError(
            f"The topic {topic} of {address.place} has the cleanup.policy '{policy}', which deletes records; set"
            " it to 'compact'"
        )


def find_topic(admin: AdminClient, topic: str) -> int | None:
    """Return the number of partitions of a topic; None: there is no such topic. Raises `KafkaException`."""
    try:
        return len(_describe_topic(admin, topic).partitions)
    except KafkaException as error:
        if error.args[0].name() == "UNKNOWN_TOPIC_OR_PART":
            return None
        raise


def find_replicas(admin: AdminClient, topic: str) -> int:
    """Return the number of brokers that have the log's partition. Raises `KafkaException`."""
    return len(_describe_topic(admin, topic).partitions[PARTITION].replicas)


def _describe_topic(admin: AdminClient, topic: str) -> TopicDescription:
    futures = admin.describe_topics(TopicCollection([topic]), request_timeout=ANSWER_SECONDS)
    description: TopicDescription = futures[topic].result()
    return description


def read_topic_settings(admin: AdminClient, topic: str) -> dict[str, str]:
    """Return the settings of a topic; empty where this user may not read them. Raises `KafkaException`."""
    resource = ConfigResource(ResourceType.TOPIC, topic)
    try:
        entries = admin.describe_configs([resource], request_timeout=ANSWER_SECONDS)[resource].result()
    except KafkaException as error:
        if error.args[0].name() == "TOPIC_AUTHORIZATION_FAILED":
            return {}
        raise
    return {name: entry.value for name, entry in entries.items() if entry.value is not None}


def _make_topic(admin: AdminClient, address: TopicAddress, topic: str) -> None:
    new = NewTopic(topic, 1, address.replication_factor or -1, config=dict(TOPIC_SETTINGS))
    try:
        admin.create_topics([new], operation_timeout=ANSWER_SECONDS, request_timeout=ANSWER_SECONDS)[topic].result()
    except KafkaException as error:
        if error.args[0].name() != "TOPIC_ALREADY_EXISTS":  # another node was faster
            raise
    else:
        _LOGGER.info("made the topic %s in %s", topic, address.place)


def _await_topic(admin: AdminClient, topic: str) -> int | None:
    deadline = time.monotonic() + _SHOWN_WITHIN
    while (partitions := find_topic(admin, topic)) is None and time.monotonic() < deadline:
        time.sleep(0.05)
    return partitions
