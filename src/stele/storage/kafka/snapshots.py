"""State snapshots, in their own topic: followers of the log need not read them.

A snapshot is cut into parts. It counts once the message with the number of its parts is written. Then older snapshots
get their tombstones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from stele.errors import StoreTimeout
from stele.storage.kafka.client import ANSWER_SECONDS, END_OF_TOPIC, PARTITION, TopicMessage, make_consumer
from stele.storage.kafka.messages import SnapshotEnd, SnapshotPart, print_key, read_key
from stele.storage.kafka.url import TopicAddress

__all__ = ["StoredSnapshot", "cut_snapshot", "find_whole", "read_snapshots"]

PART_BYTES: Final = 512 << 10
"""Size in bytes of one message: less than the default limit of brokers."""


class StoredSnapshot(NamedTuple):
    """A complete snapshot. keys: keys of its messages; pieces: values of its parts, kept for the newest one only."""

    seq: int
    pieces: list[bytes]
    keys: tuple[bytes, ...]


def cut_snapshot(seq: int, data: bytes, node: str, attempt: int) -> list[tuple[bytes, bytes]]:
    """Return the messages of a snapshot, as (key, value), in their order."""
    pieces = [data[i : i + PART_BYTES] for i in range(0, len(data), PART_BYTES)]
    messages = [(print_key(SnapshotPart(seq, i, node, attempt)), piece) for i, piece in enumerate(pieces)]
    return [*messages, (print_key(SnapshotEnd(seq, len(pieces), node, attempt)), b"whole")]


def read_snapshots(address: TopicAddress, topic: str, end: int) -> list[StoredSnapshot]:
    """Return all complete snapshots before an offset that have no tombstones, oldest first. Raises `StoreTimeout`."""
    if end == 0:
        return []
    consumer = make_consumer(address, poll_ms=10)
    try:
        consumer.list_topics(topic, ANSWER_SECONDS)  # or it looks for the leader only after half a second
        consumer.assign([TopicPartition(topic, PARTITION, OFFSET_BEGINNING)])
        return find_whole(_read(consumer, address.place, end), address.place)
    finally:
        consumer.close()


def find_whole(messages: Iterable[TopicMessage], place: str) -> list[StoredSnapshot]:
    """Return the complete snapshots without tombstones among the messages of a topic, oldest first."""
    parts: dict[tuple[str, int], dict[int, tuple[bytes, bytes]]] = {}
    whole: dict[bytes, StoredSnapshot] = {}
    for message in messages:
        _take_message(message, place, parts, whole)
    return sorted(whole.values(), key=lambda snapshot: snapshot.seq)


def _read(consumer: Consumer, place: str, end: int) -> Iterator[TopicMessage]:
    position = idle = 0
    while position < end:
        messages = consumer.consume(100, 0.1)
        idle = 0 if messages else idle + 1
        if idle > ANSWER_SECONDS * 10:
            raise StoreTimeout(f"The snapshots of the log {place} cannot be read in time")
        for message in map(TopicMessage.read, messages):
            if message.error is None:
                position = message.offset + 1
                yield message
            elif message.error.name() == END_OF_TOPIC:
                position = message.offset


def _take_message(
    message: TopicMessage,
    place: str,
    parts: dict[tuple[str, int], dict[int, tuple[bytes, bytes]]],
    complete: dict[bytes, StoredSnapshot],
) -> None:
    data, value = message.key, message.value
    key = read_key(data, place)
    if data is None:
        return
    if value is None:
        complete.pop(data, None)
    elif isinstance(key, SnapshotPart):
        parts.setdefault((key.node, key.attempt), {})[key.part] = data, value
    elif isinstance(key, SnapshotEnd):
        attempt_parts = parts.pop((key.node, key.attempt), {})
        if len(attempt_parts) == key.parts:
            rows = [attempt_parts[i] for i in range(key.parts)]
            complete[data] = StoredSnapshot(key.seq, [value for _, value in rows], (data, *(part for part, _ in rows)))
            newest = max(snapshot.seq for snapshot in complete.values())
            for snapshot in complete.values():
                if snapshot.seq < newest:
                    snapshot.pieces.clear()
