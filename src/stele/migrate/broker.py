"""Reads a `_schemas` topic from a broker, from its one partition to the end, and fills an empty topic.

Needs confluent-kafka (`pip install 'stele-registry[kafka]'`), which is imported at the first use.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from stele.errors import InvalidRequest, NotInstalled, StoreError, StoreTimeout
from stele.migrate.progress import Progress, report_nothing
from stele.migrate.topic_records import Record

TOPIC = "_schemas"
_SECONDS = 30.0
"""Timeout in seconds of one request to the broker."""


def read_topic(
    bootstrap: str,
    topic: str = TOPIC,
    *,
    settings: Mapping[str, str] | None = None,
    progress: Progress = report_nothing,
) -> Iterator[Record]:
    """Return the records of the topic up to its end at the time of the call.

    settings are librdkafka's own (security.protocol, sasl.username …). Raises `NotInstalled`, `StoreError`,
    `StoreTimeout`, `InvalidRequest` for a topic with several partitions.
    """
    kafka = _import_kafka()
    own = {"bootstrap.servers": bootstrap, "group.id": "stele-import", "enable.auto.commit": False}
    consumer = kafka.Consumer({**own, "enable.partition.eof": True, **(settings or {})})
    try:
        _require_one_partition(kafka, consumer, topic)
        first, end = _end_offsets(kafka, consumer, topic)
        consumer.assign([kafka.TopicPartition(topic, 0, first)])
        yield from _read_until(kafka, consumer, first, end, progress)
    finally:
        consumer.close()


def write_topic(
    bootstrap: str, records: Sequence[Record], topic: str = TOPIC, *, settings: Mapping[str, str] | None = None
) -> None:
    """Fill an empty topic. A missing topic is created, compacted and with one partition.

    Raises `InvalidRequest` when it has records already: new records would contradict them, and Redpanda's records have
    to be at their own offsets.
    """
    kafka = _import_kafka()
    own: dict[str, Any] = {"bootstrap.servers": bootstrap, **(settings or {})}
    _create_topic(own, topic)
    consumer = kafka.Consumer({**own, "group.id": "stele-export", "enable.auto.commit": False})
    try:
        _require_one_partition(kafka, consumer, topic)
        if _end_offsets(kafka, consumer, topic)[1] > 0:
            raise InvalidRequest(f"topic {topic} has records already; export to a new one")
    finally:
        consumer.close()
    _produce_records(kafka, own, topic, records)


def has_topic(bootstrap: str, topic: str = TOPIC, *, settings: Mapping[str, str] | None = None) -> bool:
    """Return whether a broker has a topic. Raises `NotInstalled`, `StoreError`."""
    _import_kafka()
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    try:
        return (
            topic
            in AdminClient({"bootstrap.servers": bootstrap, **(settings or {})}).list_topics(timeout=_SECONDS).topics
        )
    except KafkaException as error:
        raise StoreError(f"the broker does not answer: {error}") from None


def append_to_topic(
    bootstrap: str, records: Sequence[Record], topic: str = TOPIC, *, settings: Mapping[str, str] | None = None
) -> None:
    """Add records at the end of a topic. A missing topic is created, compacted and with one partition.

    Raises `StoreError`.
    """
    kafka = _import_kafka()
    own: dict[str, Any] = {"bootstrap.servers": bootstrap, **(settings or {})}
    _create_topic(own, topic)
    _produce_records(kafka, own, topic, records)


def _produce_records(kafka: Any, settings: dict[str, Any], topic: str, records: Sequence[Record]) -> None:
    failed: list[str] = []

    def record_delivery(error: Any, message: Any) -> None:
        if error is not None:
            failed.append(str(error))

    producer = kafka.Producer({**settings, "enable.idempotence": True, "linger.ms": 5})
    for record in records:
        while True:
            try:
                # Time 0 is "now" to librdkafka.
                producer.produce(
                    topic, record.value, record.key, partition=0, on_delivery=record_delivery, timestamp=record.ts or 0
                )
                break
            except BufferError:
                producer.poll(1.0)
        producer.poll(0)
    if producer.flush(_SECONDS) or failed:
        why = failed[0] if failed else "no answer"
        raise StoreError(f"topic {topic} was not written completely: {why}; remove it before trying again")


def _create_topic(settings: dict[str, Any], topic: str) -> None:
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # not told by its types

    admin = AdminClient(settings)
    try:
        if topic in admin.list_topics(timeout=_SECONDS).topics:
            return
        wanted = NewTopic(topic, num_partitions=1, replication_factor=-1, config={"cleanup.policy": "compact"})
        admin.create_topics([wanted], request_timeout=_SECONDS)[topic].result()
    except KafkaException as error:
        raise StoreError(f"topic {topic} cannot be created: {error}") from None


def _require_one_partition(kafka: Any, consumer: Any, topic: str) -> None:
    try:
        metadata = consumer.list_topics(topic, timeout=_SECONDS).topics[topic]
    except kafka.KafkaException as error:
        raise StoreError(f"the broker does not answer: {error}") from None
    if metadata.error is not None:
        raise StoreError(f"topic {topic}: {metadata.error}")
    if len(metadata.partitions) != 1:
        raise InvalidRequest(
            f"topic {topic} has {len(metadata.partitions)} partitions; the topic of a registry has one"
        )


def _end_offsets(kafka: Any, consumer: Any, topic: str) -> tuple[int, int]:
    """Return the first existing offset, and the offset of the next record."""
    try:
        first, end = consumer.get_watermark_offsets(kafka.TopicPartition(topic, 0), timeout=_SECONDS)
    except kafka.KafkaException as error:
        raise StoreError(f"the ends of topic {topic} are unknown: {error}") from None
    return int(first), int(end)


def _read_until(kafka: Any, consumer: Any, first: int, end: int, progress: Progress) -> Iterator[Record]:
    next_offset = first
    while next_offset < end:
        message = consumer.poll(_SECONDS)
        if message is None:
            raise StoreTimeout(f"the broker sent no record after offset {next_offset} within {_SECONDS:g} s")
        error = message.error()
        if error is not None and error.code() == kafka.KafkaError._PARTITION_EOF:  # noqa: SLF001 - its public name
            return
        if error is not None:
            raise StoreError(f"the topic cannot be read: {error}")
        next_offset = message.offset() + 1
        progress("records", next_offset, end)
        if next_offset <= end:
            kind, ts = message.timestamp()
            timestamp = ts if kind != kafka.TIMESTAMP_NOT_AVAILABLE and ts >= 0 else None
            yield Record(message.key(), message.value(), message.offset(), f"offset {message.offset()}", timestamp)


def _import_kafka() -> Any:
    try:
        import confluent_kafka
    except ImportError:
        raise NotInstalled("confluent-kafka", "kafka") from None
    return confluent_kafka
