"""The log in a compacted topic of one partition: the first claim to a sequence number wins.

Source: docs/protocols/redpanda.md#one-log-many-writers.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final
from weakref import WeakKeyDictionary

import msgspec

from stele.core.ports import LogEntry
from stele.errors import DamagedLog, StoreError, StoreTimeout
from stele.storage.forks import count_forks
from stele.storage.kafka.client import TopicClient, TopicMessage
from stele.storage.kafka.follower import TopicFollower
from stele.storage.kafka.messages import (
    Claim,
    Replacement,
    RestoredNote,
    print_key,
    print_records,
    read_records,
)
from stele.storage.kafka.snapshots import cut_snapshot, read_snapshots
from stele.storage.kafka.topic import find_topic, name_snapshot_topic, prepare_topic
from stele.storage.kafka.url import TopicAddress, parse_url

__all__ = ["KafkaLog"]

_LOGGER = logging.getLogger(__name__)

_CATCH_UP_SECONDS: Final = 30.0
_OPEN_SECONDS: Final = 600.0
"""Timeout in seconds for the first reading of a topic, which may take minutes."""
_LONGEST_PAUSE: Final = 0.05
"""Seconds that other writers wait for a writer that has lost a claim to try again."""

_TURNS: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, asyncio.Lock]] = WeakKeyDictionary()


class KafkaLog:
    """A `Log` in a topic, made by `KafkaLog.open`. Belongs to one event loop of one process.

    Every handle is a node: it draws a random name, and the keys of its claims are never used again.
    """

    def __init__(self, address: TopicAddress) -> None:
        """Set up clients. Callers use `open`."""
        self.place = address.place
        self._address = address
        self._client = TopicClient(address)
        self._follower = TopicFollower(address, self._client.find_end)
        self._node = os.urandom(8).hex()
        self._attempts = 0
        self._has_snapshot_topic = False
        self._seen = -1
        self._closed = False
        self._forks = count_forks()
        self._withdrawals: set[asyncio.Task[None]] = set()
        self._asking: asyncio.Task[None] | None = None
        self._next_asking: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, url: str) -> KafkaLog:
        """Open the topic, creating it when missing, and read it once.

        Raises `InvalidRequest` for a malformed URL, `StoreError` when the topic cannot be used.
        """
        log = cls(parse_url(url))
        try:
            await log._client.connect()
            await asyncio.to_thread(prepare_topic, log._client.admin, log._address, log._address.topic)
            await asyncio.gather(log._client.connect(), log._follower.start())
            await log._follower.wait_for_offset(await log._client.find_end(), _OPEN_SECONDS)
            if log._follower.has_foreign_messages and log._follower.head == 0:
                raise StoreError(f"The topic of {log.place} has messages of another program; name another topic")
            await log._withdraw_void()
        except BaseException:
            await log.close()
            raise
        return log

    # --- writing ----------------------------------------------------------------------------------------------------

    async def append(self, expected: int, records: Sequence[bytes]) -> bool:
        """Claim expected+1 … with one message; return False when another node has claimed that before.

        Raises `StoreTimeout` when the message may have been written, or may be written later; reading the topic shows
        it.
        """
        self._require_open()
        if self._follower.head != expected or not records:
            await self._catch_up()
        if self._follower.head != expected:
            return False
        if not records:
            return True
        self._attempts += 1
        key = print_key(Claim(expected + 1, len(records), self._node, self._attempts))
        try:
            offset = await self._client.send(key, print_records(records))
        except StoreTimeout:
            if (won := await self._find_outcome(expected, key)) is None:
                raise
            return won
        await self._follower.wait_for_offset(offset + 1, _CATCH_UP_SECONDS)
        if self._follower.find_place(expected + 1).origin != offset:
            self._withdraw_later(offset, key)
            return False
        if self._follower.is_restored:
            await self._client.send(print_key(RestoredNote()), None)
        return True

    async def _find_outcome(self, expected: int, key: bytes) -> bool | None:
        """Return whether a claim of unknown outcome won; None: neither it nor another claim is there yet."""
        await self._catch_up()
        if self._follower.head == expected:
            return None
        place = self._follower.find_place(expected + 1)
        message = (await self._client.fetch([place.offset])).get(place.offset)
        return message is not None and message.key == key

    async def erase(self, seq: int, record: bytes) -> None:
        """Replace the message that contains a record, and write tombstones for what it replaces.

        The old bytes are in the topic until Kafka compacts it, at the latest after `max.compaction.lag.ms`.
        Raises `StoreError` when there is no such record.
        """
        self._require_open()
        while True:
            await self._catch_up()
            try:
                place = self._follower.find_place(seq)
            except IndexError:
                raise StoreError(f"The log {self.place} has no record {seq} to erase") from None
            records = (await self._read_messages([place.offset]))[place.offset]
            if records[seq - place.seq] == record:
                break
            records[seq - place.seq] = record
            self._attempts += 1
            key = print_key(
                Replacement(place.seq, len(records), place.origin, place.version + 1, self._node, self._attempts)
            )
            offset = await self._client.send(key, print_records(records))
            await self._follower.wait_for_offset(offset + 1, _CATCH_UP_SECONDS)
        await self._withdraw_void()

    async def _withdraw_void(self) -> None:
        """Write tombstones for messages that are not part of the log, so that compaction removes their texts, too."""
        void = self._follower.list_void()
        unknown = await self._client.fetch([offset for offset, key in void.items() if key is None])
        for offset, key in void.items():
            message_key = key if key is not None else _key_of(unknown.get(offset))
            if message_key is not None:
                await self._withdraw(offset, message_key)
            else:
                self._follower.forget_void(offset)

    def _withdraw_later(self, offset: int, key: bytes) -> None:
        """Write a tombstone for a message in the background, while the writer that lost tries again."""
        task = asyncio.create_task(self._withdraw(offset, key))
        self._withdrawals.add(task)
        task.add_done_callback(self._end_withdrawal)

    def _end_withdrawal(self, task: asyncio.Task[None]) -> None:
        self._withdrawals.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _LOGGER.warning("a void message stays in %s until a node opens it: %s", self.place, error)

    async def _withdraw(self, offset: int, key: bytes) -> None:
        await self._client.send(key, None)
        self._follower.forget_void(offset)

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Return a context manager that lets one writer at a time in, within this process.

        Among processes, nodes that lost a claim come first, in the order in which they lost. That needs no extra
        messages, since every node sees which claims lost. Other nodes wait only a moment for a node that does not
        try again.
        """
        self._require_open()
        return self._hold_turn()

    @asynccontextmanager
    async def _hold_turn(self) -> AsyncIterator[None]:
        turns = _TURNS.setdefault(asyncio.get_running_loop(), {})
        async with turns.setdefault(self.place, asyncio.Lock()):
            await self._follower.wait_for_turn(self._node, _LONGEST_PAUSE)
            yield

    # --- reading ----------------------------------------------------------------------------------------------------

    async def tail(self, after: int, limit: int) -> Sequence[LogEntry]:
        """Return at most limit entries with seq > after, in order and without gaps.

        Raises `DamagedLog` when records are missing or damaged, `StoreError` when a message was compacted meanwhile.
        """
        self._require_open()
        after, limit = max(after, 0), max(limit, 0)
        if after + limit > self._follower.head:
            await self._catch_up()
        entries: list[LogEntry] = []
        if limit and after < self._follower.head:
            offsets = self._follower.list_offsets(after, limit)
            messages = await self._read_messages(offsets)
            seq = self._follower.find_place(after + 1).seq
            for offset in offsets:
                entries += [LogEntry(i, record) for i, record in enumerate(messages[offset], seq)]
                seq += len(messages[offset])
        return [entry for entry in entries if entry.seq > after][:limit]

    async def head(self) -> int:
        """Return the sequence number of the last record.

        It includes every append that finished before the call.
        """
        self._require_open()
        await self._catch_up()
        return self._follower.head

    @property
    def notices_at_once(self) -> bool:
        """False: the consumer sees a record a moment after it was acknowledged."""
        return False

    def has_changed(self) -> bool:
        """Return whether the consumer has read records since the last call.

        True on the first call and after appends of this handle, too.
        """
        self._require_open()
        previous_head, self._seen = self._seen, self._follower.head
        return previous_head != self._seen

    async def wait(self, after: int, timeout: float) -> None:  # noqa: ASYNC109 - part of the driver's contract
        """Return once the consumer has read a record past `after`, or after timeout seconds."""
        self._require_open()
        await self._follower.wait_for_record(after, timeout)

    async def _catch_up(self) -> None:
        """Read up to the current end of the topic. Calls that wait at the same time share one request to the brokers.

        An end that was requested before the call is too old for it. So a call joins the next request, not the running
        one.
        """
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._read_to_end())
            await asyncio.shield(self._asking)
            return
        if self._next_asking is None or self._next_asking.done():
            self._next_asking = asyncio.create_task(self._ask_after(self._asking))
        await asyncio.shield(self._next_asking)

    async def _ask_after(self, before: asyncio.Task[None]) -> None:
        await asyncio.wait([before])
        self._asking, self._next_asking = self._next_asking, None
        await self._read_to_end()

    async def _read_to_end(self) -> None:
        await self._follower.wait_for_offset(await self._client.find_end(), _CATCH_UP_SECONDS)

    async def _read_messages(self, offsets: Sequence[int]) -> dict[int, list[bytes]]:
        """Return the records in messages, by offset."""
        values = {offset: self._follower.find_cached(offset) for offset in offsets}
        missing = [offset for offset, value in values.items() if value is None]
        fetched = await self._client.fetch(missing)
        for offset in missing:
            message = fetched.get(offset)
            value = message.value if message is not None else None
            if value is None:
                raise StoreError(f"The message {offset} of the log {self.place} was compacted meanwhile: try again")
            values[offset] = value
        try:
            return {offset: read_records(value) for offset, value in values.items() if value is not None}
        except msgspec.MsgspecError:
            raise DamagedLog(f"A message of the log {self.place} among {offsets[:3]} … is damaged") from None

    # --- snapshots --------------------------------------------------------------------------------------------------

    async def save_snapshot(self, seq: int, data: bytes) -> None:
        """Write the snapshot into a second topic beside that of the log, and tombstones for older snapshots."""
        self._require_open()
        topic = name_snapshot_topic(self._address.topic)
        if not self._has_snapshot_topic:
            await asyncio.to_thread(prepare_topic, self._client.admin, self._address, topic)
            self._has_snapshot_topic = True
        end = await self._client.find_end(topic)
        older = await asyncio.to_thread(read_snapshots, self._address, topic, end)
        for snapshot in older:
            snapshot.pieces.clear()  # its keys are enough for the tombstones
        if older and older[-1].seq > seq:
            return
        self._attempts += 1
        for key, value in cut_snapshot(seq, data, self._node, self._attempts):
            await self._client.send(key, value, topic)
        for snapshot in older:
            for key in snapshot.keys:
                await self._client.send(key, None, topic)

    async def load_snapshot(self) -> tuple[int, bytes] | None:
        """Return the newest snapshot as (seq, data), or None."""
        self._require_open()
        topic = name_snapshot_topic(self._address.topic)
        if await asyncio.to_thread(find_topic, self._client.admin, topic) is None:
            return None
        snapshots = await asyncio.to_thread(read_snapshots, self._address, topic, await self._client.find_end(topic))
        if not snapshots:
            return None
        data = b"".join(snapshots[-1].pieces)
        snapshots[-1].pieces.clear()  # the call in a thread keeps what it has returned until garbage is collected
        return snapshots[-1].seq, data

    # --- state of the log -------------------------------------------------------------------------------------------

    async def require_writable(self) -> None:
        """Raise the `StoreError` that the consumer has met, if any."""
        self._require_open()
        if self._follower.failure is not None:
            raise self._follower.failure

    def may_lack_records(self) -> bool:
        """Return whether the topic contains the note that it was restored."""
        return self._follower.is_restored

    async def expect_lost_records(self) -> None:
        """Write the note into the topic that it was restored. The next append withdraws it."""
        self._require_open()
        offset = await self._client.send(print_key(RestoredNote()), b"restored")
        await self._follower.wait_for_offset(offset + 1, _CATCH_UP_SECONDS)

    async def close(self) -> None:
        """End threads and connections. It can be called twice."""
        if self._closed:
            return
        self._closed = True
        for task in (self._asking, self._next_asking, *self._withdrawals):
            if task is not None:
                task.cancel()
        await self._follower.close()
        await self._client.close()

    def _require_open(self) -> None:
        if self._closed:
            raise StoreError(f"The log {self.place} is closed")
        if self._forks != count_forks():
            raise StoreError(f"The log {self.place} was opened before a fork: open it again in the new process")


def _key_of(message: TopicMessage | None) -> bytes | None:
    return None if message is None else message.key
