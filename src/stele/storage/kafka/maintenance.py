"""The topic of a log when no registry has it open, and copies of one that is in use."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec
from confluent_kafka import OFFSET_BEGINNING, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from stele.errors import InvalidRequest, StoreTimeout
from stele.storage.drivers import StoreCondition, StoredRecord
from stele.storage.kafka.client import (
    ANSWER_SECONDS,
    END_OF_TOPIC,
    PARTITION,
    TopicMessage,
    client_settings,
    fetch_messages,
    make_consumer,
    store_error,
)
from stele.storage.kafka.index import MISSING, ClaimIndex
from stele.storage.kafka.messages import MAGIC, Claim, Replacement, read_key, read_records
from stele.storage.kafka.topic import find_replicas, find_topic, read_topic_settings
from stele.storage.kafka.url import TopicAddress, parse_url
from stele.storage.sqlite.maintenance import write_database

__all__ = ["TopicFiles", "inspect_topic"]

_PAGE: Final = 1000
"""Messages fetched at once."""


class TopicFiles:
    """`StoreFiles` of a topic. Raises `InvalidRequest` when there is none, `StoreError` when it cannot be read."""

    is_chained: Final = True

    def __init__(self, url: str) -> None:
        self._address = parse_url(url)
        self.place = self._address.place
        try:
            if find_topic(AdminClient(client_settings(self._address)), self._address.topic) is None:
                raise InvalidRequest(f"there is no store {self.place}")
        except KafkaException as error:
            raise store_error(self.place, error.args[0]) from error

    def read_stored(self, until: int) -> Iterator[StoredRecord]:
        """Yield every place from 1 to the last record, at least to `until`.

        The topic is read twice: first to find the message of each record, then to fetch the messages.
        """
        index = self._read_index()
        with closing(make_consumer(self._address, poll_ms=10)) as consumer:
            rest = iter(index.list_offsets(0, index.head))
            seq = 1
            while page := list(islice(rest, _PAGE)):
                wanted = sorted({offset for offset in page if offset != MISSING})
                messages = fetch_messages(consumer, self._address, self._address.topic, wanted)
                for offset in page:
                    for stored in _read_values(messages.get(offset), index.count_records(seq)):
                        yield StoredRecord(seq, stored)
                        seq += 1
        yield from (StoredRecord(place, None) for place in range(seq, until + 1))

    def write_anew(self, records: Iterable[bytes]) -> str:
        """Raise `InvalidRequest`: a topic cannot be renamed."""
        raise InvalidRequest(
            "a topic cannot be moved aside: make a copy with 'stele backup', repair the copy, and copy it into a new"
            " topic with 'stele log copy'"
        )

    def write_copy(self, file: Path) -> None:
        """Copy the records into a SQLite file."""
        write_database(file, self.read_stored(0))

    def _read_index(self) -> ClaimIndex:
        index = ClaimIndex(self.place, is_lenient=True)
        with closing(make_consumer(self._address, poll_ms=10)) as consumer:
            consumer.list_topics(self._address.topic, ANSWER_SECONDS)
            consumer.assign([TopicPartition(self._address.topic, PARTITION, OFFSET_BEGINNING)])
            deadline = time.monotonic() + ANSWER_SECONDS
            while True:
                for message in map(TopicMessage.read, consumer.consume(_PAGE, 0.05)):
                    deadline = time.monotonic() + ANSWER_SECONDS
                    if message.error is None:
                        _take_message(index, message, self.place)
                    elif message.error.name() == END_OF_TOPIC:
                        index.reach_end(message.offset)
                        return index
                if time.monotonic() > deadline:
                    raise StoreTimeout(f"The log {self.place} does not answer in time")


def _take_message(index: ClaimIndex, message: TopicMessage, place: str) -> None:
    key = read_key(message.key, place)
    if message.value is not None and message.key is not None and isinstance(key, Claim):
        index.add_claim(message.offset, key, message.key)
    elif message.value is not None and message.key is not None and isinstance(key, Replacement):
        index.add_replacement(message.offset, key, message.key)
    else:
        index.skip_message(message.offset)


def _read_values(message: TopicMessage | None, count: int) -> list[bytes] | list[None]:
    """Return the records of a message, or as many times None when it is missing."""
    if message is not None and message.value is not None:
        try:
            records = read_records(message.value)
        except msgspec.MsgspecError:
            return [None] * count
        if len(records) == count:
            return records
    return [None] * count


def inspect_topic(url: str) -> StoreCondition:
    """Return the condition of the store of a URL. Raises `InvalidRequest` for a malformed URL, `StoreError`."""
    address = parse_url(url)
    admin = AdminClient(client_settings(address))
    try:
        exists = find_topic(admin, address.topic) is not None
        doubts = tuple(_find_doubts(admin, address)) if exists else ()
    except KafkaException as error:
        raise store_error(address.place, error.args[0]) from error
    return StoreCondition(
        place=address.place,
        exists=exists,
        is_writable=True,
        layout=MAGIC if exists else None,
        newest_layout=MAGIC,
        size_bytes=0,
        doubts=doubts,
    )


def _find_doubts(admin: AdminClient, address: TopicAddress) -> Iterator[str]:
    settings = read_topic_settings(admin, address.topic)
    replicas = find_replicas(admin, address.topic)
    if settings.get("cleanup.policy", "compact") != "compact":
        yield f"cleanup.policy is {settings['cleanup.policy']}: Kafka deletes records"
    if replicas == 1:
        yield "the topic has one replica: its records are lost with that broker"
    elif settings.get("min.insync.replicas") == "1":
        yield "min.insync.replicas is 1: a record that only one broker has counts as written"
    if settings.get("unclean.leader.election.enable") == "true":
        yield "unclean.leader.election.enable is true: a broker that lacks records may become the leader"
