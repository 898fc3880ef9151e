"""Reads the topic continuously, in its own thread, and decides which messages belong to the log."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from stele.errors import DamagedLog, StoreError, StoreTimeout
from stele.storage.kafka.client import ANSWER_SECONDS, END_OF_TOPIC, PARTITION, TopicMessage, make_consumer, store_error
from stele.storage.kafka.index import ClaimIndex, RecordPlace
from stele.storage.kafka.messages import Claim, Replacement, RestoredNote, read_key
from stele.storage.kafka.url import TopicAddress

__all__ = ["TopicFollower"]

_LOGGER = logging.getLogger(__name__)

_CACHE_BYTES: Final = 16 << 20
"""Size of the cache in bytes. It keeps the newest values, which are read most."""
_PAGE: Final = 1000
_POLL_MS: Final = 500
_WENT_BACK: Final = frozenset({"_AUTO_OFFSET_RESET", "OFFSET_OUT_OF_RANGE"})
_REFUSED: Final = frozenset(
    {
        "UNKNOWN_TOPIC_OR_PART",
        "_UNKNOWN_TOPIC",
        "_UNKNOWN_PARTITION",
        "TOPIC_AUTHORIZATION_FAILED",
    }
)


class TopicFollower:
    """One handle's view of the topic. The thread changes it and the event loop reads it, both under one lock."""

    def __init__(self, address: TopicAddress, find_end: Callable[[], Awaitable[int]]) -> None:
        """Set up a consumer. find_end asks the brokers for the end of the topic."""
        self._find_end = find_end
        self._address = address
        self.place = address.place
        self._index = ClaimIndex(self.place)
        self._lock = threading.Lock()
        self._loop = asyncio.get_running_loop()
        self._moved = asyncio.Event()
        self._cache: OrderedDict[int, bytes] = OrderedDict()
        self._cached_bytes = 0
        self._is_closing = False
        self.has_foreign_messages = False
        self.is_restored = False
        """Whether a message in the topic says that the log is a copy or was restored."""
        self.failure: StoreError | None = None
        """The error that prevents further reading, for now or for good; None when there is none."""
        self._is_broken = False
        self._consumer: Consumer = make_consumer(address, poll_ms=_POLL_MS)
        self._thread = threading.Thread(target=self._run, name="stele-kafka-follow", daemon=True)

    async def start(self) -> None:
        """Begin to read at the first offset of the topic. Raises `StoreError`."""
        try:
            # Without this the consumer looks for the leader only after half a second.
            await asyncio.to_thread(self._consumer.list_topics, self._address.topic, ANSWER_SECONDS)
        except KafkaException as error:
            raise store_error(self.place, error.args[0]) from error
        self._consumer.assign([TopicPartition(self._address.topic, PARTITION, OFFSET_BEGINNING)])
        self._thread.start()

    async def close(self) -> None:
        """Stop reading."""
        self._is_closing = True
        if self._thread.is_alive():
            await asyncio.to_thread(self._thread.join)
        await asyncio.to_thread(self._consumer.close)

    # --- what was read ----------------------------------------------------------------------------------------------

    @property
    def head(self) -> int:
        """Sequence number of the last record that was read."""
        with self._lock:
            return self._index.head

    def find_place(self, seq: int) -> RecordPlace:
        """Return where a record is. Raises `IndexError` when there is no such record."""
        with self._lock:
            return self._index.find_place(seq)

    def list_offsets(self, after: int, limit: int) -> list[int]:
        """Return the offsets of the messages of records after a sequence number, in their order."""
        with self._lock:
            return self._index.list_offsets(after, limit)

    def list_void(self) -> dict[int, bytes | None]:
        """Return the messages that are not part of the log and have no tombstone: offset → key, if known."""
        with self._lock:
            return dict(self._index.void)

    def forget_void(self, offset: int) -> None:
        """Note that a message has got its tombstone."""
        with self._lock:
            self._index.void.pop(offset, None)

    def find_cached(self, offset: int) -> bytes | None:
        """Return the value of a message from the cache; None when it is not cached."""
        with self._lock:
            return self._cache.get(offset)

    # --- waiting ----------------------------------------------------------------------------------------------------

    async def wait_for_offset(self, offset: int, seconds: float) -> None:
        """Wait until everything before an offset is decided. Raises `StoreError`, `StoreTimeout`."""
        while not self._has_decided(offset):
            await self._wait(partial(self._has_read, offset), seconds)
            await self._settle(seconds)

    def _has_read(self, offset: int) -> bool:
        return self._index.next_offset >= offset

    def _has_decided(self, offset: int) -> bool:
        with self._lock:
            return self._index.position >= offset

    async def _settle(self, seconds: float) -> None:
        """Decide the waiting messages where offsets are missing.

        Reads up to an end of the topic that was requested after the last missing offset was met.
        """
        while True:
            with self._lock:
                if not self._index.is_waiting:
                    return
                gaps = self._index.gaps
            end = await self._find_end()
            await self._wait(partial(self._has_read, end), seconds)
            with self._lock:
                if self._index.gaps == gaps:
                    self._index.reach_end(self._index.next_offset)

    async def wait_for_record(self, after: int, seconds: float) -> None:
        """Wait for a record after a sequence number, at most so many seconds. Raises `StoreError`."""
        try:
            await self._wait(lambda: self._index.head > after, seconds)
        except StoreTimeout:
            return

    async def wait_for_turn(self, node: str, seconds: float) -> None:
        """Wait for the nodes that lost before this one; skip a node that does nothing for so many seconds.

        Raises `StoreError`.
        """
        with self._lock:
            losers = self._index.losers
            own = losers.get(node)
            before = [(loser, lost) for loser, lost in losers.items() if own is None or lost < own]
        for loser, lost in before:
            try:
                await self._wait(partial(self._has_won_since, loser, lost), seconds)
            except StoreTimeout:
                with self._lock:
                    if losers.get(loser) == lost:
                        del losers[loser]

    def _has_won_since(self, loser: str, lost: int) -> bool:
        return self._index.losers.get(loser) != lost

    async def _wait(self, is_reached: Callable[[], bool], seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                while True:
                    moved = self._moved
                    with self._lock:
                        if is_reached():
                            return
                    if self.failure is not None:
                        raise self.failure
                    await moved.wait()
        except TimeoutError:
            raise StoreTimeout(
                f"The log {self.place} cannot be read up to its end within {seconds:g} seconds"
            ) from None

    def _notify(self) -> None:
        self._moved.set()
        self._moved = asyncio.Event()

    # --- in the thread ----------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._is_closing:
            try:
                message = self._consumer.poll(0.02)
                if message is None:
                    continue
                messages = [message, *self._consumer.consume(_PAGE, 0)]
                with self._lock:
                    for row in messages:
                        self._take_message(TopicMessage.read(row))
            except KafkaException as error:
                self.failure = store_error(self.place, error.args[0])
            except StoreError as error:
                self._is_broken = True
                self.failure = error
            try:
                self._loop.call_soon_threadsafe(self._notify)
            except RuntimeError:  # the loop has been closed meanwhile
                return
            if self._is_broken:
                return

    def _take_message(self, message: TopicMessage) -> None:
        offset, data, value, error = message
        if error is not None:
            self._take_error(error, offset)
            return
        self.failure = None
        key = read_key(data, self.place)
        if key is None or data is None:
            self.has_foreign_messages = True
            _LOGGER.warning("message %d in %s is of another program; it is left out", offset, self.place)
            self._index.skip_message(offset)
        elif isinstance(key, RestoredNote):
            self.is_restored = value is not None
            self._index.skip_message(offset)
        elif value is None:
            self._index.add_tombstone(offset, data)
        elif isinstance(key, Claim):
            self._index.add_claim(offset, key, data)
            self._keep_value(offset, value)
        elif isinstance(key, Replacement):
            self._index.add_replacement(offset, key, data)
            self._keep_value(offset, value)
        else:
            self._index.skip_message(offset)

    def _take_error(self, error: KafkaError, offset: int) -> None:
        name = error.name()
        if name == END_OF_TOPIC:
            self._index.reach_end(offset)
            self.failure = None
        elif name in _WENT_BACK:
            raise DamagedLog(
                f"The topic of {self.place} now ends before offset {self._index.position}, or was created"
                " again: records"
                " that were acknowledged are lost. Restore the newest backup, or start again to see what is left"
            )
        elif name in _REFUSED:
            self.failure = store_error(self.place, error)  # until the topic exists, or is allowed, again
        # All other errors are temporary: the client retries by itself.

    def _keep_value(self, offset: int, value: bytes) -> None:
        self._cache[offset] = value
        self._cached_bytes += len(value)
        while self._cached_bytes > _CACHE_BYTES:
            _, dropped = self._cache.popitem(last=False)
            self._cached_bytes -= len(dropped)
