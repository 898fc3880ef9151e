"""Kafka's client: its settings, sending one message, reading the end offset, fetching messages, and its error messages.

Its calls block, so they run in threads. Requests to the brokers while a long poll is open use another connection.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple, ParamSpec, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]  # its names are not exported

from stele.errors import InvalidRequest, RecordsTooLarge, StoreError, StoreTimeout
from stele.storage.kafka.url import TopicAddress

__all__ = [
    "ANSWER_SECONDS",
    "END_OF_TOPIC",
    "PARTITION",
    "TopicClient",
    "TopicMessage",
    "client_settings",
    "fetch_messages",
    "make_consumer",
    "store_error",
]

PARTITION: Final = 0
END_OF_TOPIC: Final = "_PARTITION_EOF"
"""Name of the error code for the end of a topic, which is no failure: no more messages at present."""
ANSWER_SECONDS: Final = 10.0
"""Seconds to wait for an answer of the brokers, and seconds to retry sending a message."""

_LATEST: Final = OffsetSpec.latest()  # type: ignore[no-untyped-call]
_MOST_RECEIVED: Final = 1_000_000_000
"""Highest size in bytes of an answer of the brokers that is accepted."""
_MOST_SENT: Final = 96 << 20
"""Highest size in bytes of a message that is sent. Brokers close connections with more (`socket.request.max.bytes`).

Below that the limit of the topic decides.
"""
_TOO_LARGE: Final = "MSG_SIZE_TOO_LARGE"

_WHY: Final[Mapping[str, str]] = {
    "_ALL_BROKERS_DOWN": "cannot be reached: no broker answers",
    "_TRANSPORT": "cannot be reached: no broker answers",
    "_RESOLVE": "cannot be reached: the address of the broker cannot be resolved",
    "_TIMED_OUT": "does not answer in time",
    "_MSG_TIMED_OUT": "does not answer in time",
    "REQUEST_TIMED_OUT": "does not answer in time",
    "_AUTHENTICATION": "does not accept user and password",
    "SASL_AUTHENTICATION_FAILED": "does not accept user and password",
    "_SSL": "cannot be reached over TLS: see the parameters ssl.ca.location and security.protocol",
    "TOPIC_AUTHORIZATION_FAILED": "may not be used by this user: see its ACLs for the topic",
    "CLUSTER_AUTHORIZATION_FAILED": "may not be used by this user: see its ACLs for the cluster",
    "UNKNOWN_TOPIC_OR_PART": "no longer exists: the topic was deleted",
    "_UNKNOWN_TOPIC": "no longer exists: the topic was deleted",
    "NOT_ENOUGH_REPLICAS": "takes no writes: fewer replicas are in sync than min.insync.replicas asks for",
    _TOO_LARGE: "takes no message of that size; nothing was written. Raise max.message.bytes of the topic",
    "POLICY_VIOLATION": "is not made: a policy of the brokers forbids it; make the topic yourself",
}

_NOT_SENT: Final = frozenset(
    {
        _TOO_LARGE,
        "TOPIC_AUTHORIZATION_FAILED",
        "CLUSTER_AUTHORIZATION_FAILED",
        "UNKNOWN_TOPIC_OR_PART",
        "NOT_ENOUGH_REPLICAS",
        "POLICY_VIOLATION",
        "_QUEUE_FULL",
    }
)
"""Errors after which a message is in no replica and will not be written later."""

_LEADER_CHANGES: Final = frozenset(
    {
        "FENCED_LEADER_EPOCH",
        "UNKNOWN_LEADER_EPOCH",
        "NOT_LEADER_FOR_PARTITION",
        "LEADER_NOT_AVAILABLE",
        "OFFSET_NOT_AVAILABLE",
        "_NOENT",  # the cached metadata have no leader
    }
)
"""Errors while a leader is elected, whether another broker becomes the leader or the same one again."""
_RETRY_SECONDS: Final = 0.05

_REFUSALS: Final = frozenset({"_AUTHENTICATION", "_SSL", "SASL_AUTHENTICATION_FAILED"})
"""Connection errors that a retry cannot fix. The client reports them by a callback; the request itself times out."""
_CONNECT_SECONDS: Final = 1.0

P = ParamSpec("P")
T = TypeVar("T")


class TopicMessage(NamedTuple):
    """A message, or in its place an error; the error at the end of the topic has an offset, too."""

    offset: int
    key: bytes | None
    value: bytes | None
    error: KafkaError | None

    @classmethod
    def read(cls, message: Message) -> TopicMessage:
        """Convert a message of the client library."""
        offset = message.offset()
        return cls(-1 if offset is None else offset, message.key(), message.value(), message.error())


def store_error(place: str, error: KafkaError) -> StoreError:
    """Return the `StoreError` for an error of the client; `RecordsTooLarge` where it is about the size of a message."""
    why = _WHY.get(error.name(), "cannot be used")
    kind = RecordsTooLarge if error.name() == _TOO_LARGE else StoreError
    return kind(f"The log {place} {why} ({error.name()}: {error.str()})")


def make_consumer(address: TopicAddress, *, poll_ms: int) -> Consumer:
    """Return a consumer without a subscription, to which the caller assigns partitions.

    poll_ms: milliseconds that brokers may delay an answer when there is no new message.
    """
    return Consumer(
        {
            **client_settings(address),
            "group.id": "stele",  # required by the client; no offset is committed
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "isolation.level": "read_uncommitted",
            "auto.offset.reset": "error",
            "check.crcs": True,
            "fetch.wait.max.ms": poll_ms,
            "receive.message.max.bytes": _MOST_RECEIVED,
            "fetch.max.bytes": 64 << 20,
        }
    )


def client_settings(address: TopicAddress) -> dict[str, str | int | float | bool]:
    """Return the settings that all clients of a topic share."""
    return {
        "client.id": "stele",
        **address.client_settings,
        "bootstrap.servers": address.brokers,
        "log_level": 0,
        "reconnect.backoff.max.ms": 1000,
        "allow.auto.create.topics": False,
    }


class TopicClient:
    """Sends to a topic, asks for its end and fetches single messages of it. Raises `StoreError`, `InvalidRequest`."""

    def __init__(self, address: TopicAddress) -> None:
        self.address = address
        self.place = address.place
        self._refusal: KafkaError | None = None
        try:
            self.admin = AdminClient(client_settings(address))
            self._producer = self._make_producer()
            self._fetcher = make_consumer(address, poll_ms=10)
        except KafkaException as error:
            raise InvalidRequest(
                f"The client of the log {self.place} refuses its settings: {error.args[0].str()}"
            ) from None
        self._sending = ThreadPoolExecutor(1, "stele-kafka-send")
        self._fetching = ThreadPoolExecutor(1, "stele-kafka-fetch")

    async def connect(self) -> None:
        """Find the leader now; otherwise the first message would wait half a second for it.

        A broker that refuses user, password or certificate is not asked again; its refusal becomes the error.
        """
        await self._run(self._sending, self._connect)

    def _connect(self) -> None:
        deadline = time.monotonic() + ANSWER_SECONDS
        while True:
            try:
                self._producer.list_topics(self.address.topic, _CONNECT_SECONDS)
                return
            except KafkaException:
                self._producer.poll(0)  # calls `_note_error`
                if self._refusal is not None:
                    raise KafkaException(self._refusal) from None
                if time.monotonic() > deadline:
                    raise

    def _note_error(self, error: KafkaError) -> None:
        if error.name() in _REFUSALS:
            self._refusal = error

    async def find_end(self, topic: str | None = None) -> int:
        """Return the offset after everything that was acknowledged before this call: the leader's high watermark.

        A produce request with acks=all is answered when the high watermark is past it, and a leader that has just been
        elected answers only when its own has caught up (KIP-207).
        """
        partition = TopicPartition(topic or self.address.topic, PARTITION)
        deadline = time.monotonic() + ANSWER_SECONDS
        while True:
            futures = self.admin.list_offsets({partition: _LATEST}, request_timeout=ANSWER_SECONDS)
            try:
                return int((await asyncio.wrap_future(futures[partition])).offset)
            except KafkaException as error:
                if error.args[0].name() not in _LEADER_CHANGES or time.monotonic() > deadline:
                    raise store_error(self.place, error.args[0]) from error
            await self._run(self._fetching, self.admin.list_topics, partition.topic, ANSWER_SECONDS)
            await asyncio.sleep(_RETRY_SECONDS)

    async def send(self, key: bytes, value: bytes | None, topic: str | None = None) -> int:
        """Write one message, wait until all replicas in sync acknowledge it, and return its offset.

        Raises `StoreTimeout` when it may have been written, or may be written later.
        """
        return await self._run(self._sending, self._send, topic or self.address.topic, key, value)

    async def fetch(self, offsets: Collection[int], topic: str | None = None) -> dict[int, TopicMessage]:
        """Return the messages at offsets, without those that compaction has removed."""
        return await self._run(self._fetching, self._fetch, topic or self.address.topic, sorted(offsets))

    async def close(self) -> None:
        """End the threads and connections."""
        for thread in (self._sending, self._fetching):
            thread.shutdown(wait=False)
        await asyncio.to_thread(self._fetcher.close)

    async def _run(self, thread: ThreadPoolExecutor, job: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await asyncio.wrap_future(thread.submit(job, *args, **kwargs))
        except KafkaException as error:
            raise store_error(self.place, error.args[0]) from error

    def _make_producer(self) -> Producer:
        return Producer(
            {
                **client_settings(self.address),
                "error_cb": self._note_error,
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": 0,
                "message.timeout.ms": int(ANSWER_SECONDS * 1000),
                "message.max.bytes": _MOST_SENT,
            }
        )

    def _send(self, topic: str, key: bytes, value: bytes | None) -> int:
        done: list[tuple[KafkaError | None, TopicMessage]] = []
        self._producer.produce(
            topic,
            value,
            key,
            PARTITION,
            on_delivery=lambda error, message: done.append((error, TopicMessage.read(message))),
        )
        deadline = time.monotonic() + 2 * ANSWER_SECONDS
        while not done and time.monotonic() < deadline:
            self._producer.poll(0.1)
        if done and done[0][0] is None:
            return done[0][1].offset
        # A failed message must neither delay the next one nor precede it in the producer's sequence.
        self._producer.purge()
        self._producer = self._make_producer()
        error = done[0][0] if done else None
        if error is not None and error.name() in _NOT_SENT:
            raise store_error(self.place, error)
        why = store_error(self.place, error) if error is not None else f"The log {self.place} does not answer in time"
        raise StoreTimeout(f"{why}; whether the records were written is not known")

    def _fetch(self, topic: str, offsets: list[int]) -> dict[int, TopicMessage]:
        return fetch_messages(self._fetcher, self.address, topic, offsets)


def fetch_messages(
    consumer: Consumer, address: TopicAddress, topic: str, offsets: list[int]
) -> dict[int, TopicMessage]:
    """Return the messages at ascending offsets, without those that compaction has removed. Raises `StoreTimeout`."""
    if not offsets:
        return {}
    messages: dict[int, TopicMessage] = {}
    wanted, last, position = set(offsets), offsets[-1], -1
    consumer.assign([TopicPartition(topic, PARTITION, offsets[0])])
    deadline = time.monotonic() + ANSWER_SECONDS
    try:
        while position <= last:
            message = consumer.poll(0.1)
            if message is None and time.monotonic() > deadline:
                raise StoreTimeout(f"The log {address.place} does not answer in time")
            for row in [message, *consumer.consume(1000, 0)] if message is not None else []:
                read = TopicMessage.read(row)
                if read.error is None:
                    position = read.offset + 1
                    if read.offset in wanted:
                        messages[read.offset] = read
                elif read.error.name() == END_OF_TOPIC:
                    position = read.offset
                deadline = time.monotonic() + ANSWER_SECONDS
        return messages
    finally:
        consumer.unassign()
