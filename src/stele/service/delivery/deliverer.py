"""Sends changes of the registry to followers: at least once, in order for each follower, from one node at a time.

Every node reads the log for every follower: subscriptions and exporters. The node that holds the lease sends each
wanted event. The other nodes wait until the log says that it was sent. If that does not happen and the lease is not
renewed for a while, another node takes the lease. Each follower has a task of its own, so a slow one delays no other.
The task reads the log page by page, so it needs little memory.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, NamedTuple, Protocol

import msgspec
import structlog

from stele.errors import SteleError
from stele.service import collections
from stele.service.access import CALLER, Caller
from stele.service.change_events import ChangeEvent, EventPosition, can_see_change, parse_position, read_events
from stele.service.delivery import status as store
from stele.service.delivery.lease import RENEWAL_SECONDS, LeaseHolder
from stele.service.delivery.stats import DeliveryStats, name_kind
from stele.service.delivery.status import DeadEvent, DeliveryState, DeliveryStatus
from stele.service.delivery.targets import Attempt, DeliveryCode
from stele.service.registry import Registry

_PAGE: Final = 100
_BURST_SECONDS: Final = 1.0
"""Minimum interval in seconds between two writes of a follower's position while events are sent."""
_SKIPPED_RECORDS: Final = 5_000
"""Number of records without a wanted event after which the position is written anyway."""
_FIRST_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 60.0
_MOST_FAILURES: Final = 12
"""Failed attempts in a row after which a follower is paused: about five minutes."""
_IDLE_SECONDS: Final = 30.0
_RETRIED: Final = frozenset({DeliveryCode.NOT_TAKEN, DeliveryCode.NO_ANSWER, DeliveryCode.UNAUTHENTICATED})
"""Codes after which the event is tried again. After other codes of a failed attempt the follower is paused."""

_logger = structlog.get_logger("stele.delivery")


class Follower(Protocol):
    """A receiver of events.

    name      key of its status
    begin     position after which its events begin; '' is the end of the log
    caller    caller for whom it follows: events that this caller may not see when they are sent are not sent
    protocol  protocol by which events are sent, for metrics
    """

    name: str
    begin: str
    caller: Caller
    protocol: str

    def is_wanted(self, event: ChangeEvent) -> bool:
        """Return whether it gets an event."""
        ...

    async def attempt(self, event: ChangeEvent) -> Attempt:
        """Try to deliver an event once."""
        ...

    async def close(self) -> None:
        """Release connections."""
        ...


class FollowerSource(Protocol):
    """A collection whose documents define followers.

    collection         name of the collection of the documents
    status_collection  name of the collection of the followers' statuses
    """

    collection: str
    status_collection: str

    def make_follower(self, text: bytes) -> Follower | None:
        """Return the follower that a document defines; None for an inactive one."""
        ...


class _Running(NamedTuple):
    text: bytes
    name: str
    task: asyncio.Task[None]


class Deliverer:
    """Sends the events of one registry from one node; `run` goes on until it is cancelled.

    Args:
        registry: The node.
        sources: Collections that define followers.
        stats: Counts attempts and their results.
    """

    def __init__(
        self, registry: Registry, sources: Sequence[FollowerSource], stats: DeliveryStats | None = None
    ) -> None:
        self._registry = registry
        self._sources = sources
        self._stats = DeliveryStats() if stats is None else stats
        self._running: dict[tuple[str, ...], _Running] = {}
        self._lease = LeaseHolder(registry)
        self._revisions: dict[str, int] = {}

    async def run(self) -> None:
        """Deliver for as long as the server runs."""
        try:
            while True:
                for source in self._sources:
                    with suppress(SteleError):
                        await self._follow_source(source)
                await self._registry.wait_for_record(self._registry.state.seq + 1, _IDLE_SECONDS)
        finally:
            tasks = [row.task for row in self._running.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            with suppress(SteleError):
                await self._lease.release()

    async def _follow_source(self, source: FollowerSource) -> None:
        """Start a task for each new follower, restart it for each changed one, and cancel the tasks of removed ones."""
        collection = self._registry.state.collections.get(source.collection)
        if collection is None or collection.revision == self._revisions.get(source.collection):
            return
        items = await collections.read_collection(self._registry, source.collection)
        wanted = {(source.collection, *key): bytes(text) for key, text in items.items()}
        for place, row in list(self._running.items()):
            if place[0] == source.collection and wanted.get(place) != row.text:
                row.task.cancel()
                del self._running[place]
                if place not in wanted:
                    await store.forget_status(self._registry, source.status_collection, row.name)
        for place, text in wanted.items():
            follower = source.make_follower(text) if place not in self._running else None
            if follower is not None:
                task = asyncio.create_task(self._run_follower(source, follower))
                self._running[place] = _Running(text, follower.name, task)
        self._revisions[source.collection] = collection.revision

    async def _run_follower(self, source: FollowerSource, follower: Follower) -> None:
        try:
            while True:
                try:
                    await _Delivery(self._registry, source, self._lease, follower, self._stats).run()
                except SteleError as error:  # the store does not answer, or a package is missing
                    _logger.warning("delivery stopped for a while", follower=follower.name, reason=str(error))
                await asyncio.sleep(_IDLE_SECONDS)
        finally:
            self._stats.forget_follower(name_kind(source.status_collection), follower.name)
            await follower.close()


class _Delivery:
    """Delivery of the log's events to one follower."""

    def __init__(
        self,
        registry: Registry,
        source: FollowerSource,
        lease: LeaseHolder,
        follower: Follower,
        stats: DeliveryStats,
    ) -> None:
        self._registry = registry
        self._kind = name_kind(source.status_collection)
        self._stats = stats
        self._collection = source.status_collection
        self._lease = lease
        self._follower = follower
        self._saved_at = 0.0

    async def run(self) -> None:
        """Deliver until cancelled. Raises `SteleError`."""
        position = await self._find_start()
        while True:
            page = await read_events(self._registry, position, _PAGE, is_fresh=False)
            wanted = [event for event in page.events if self._follower.is_wanted(event) and self._may_see(event)]
            self._note_waiting(wanted)
            if not wanted or await self._deliver(wanted):
                position = await self._skip(page.next)
            else:
                position = parse_position(self._find_status().position)
            if not wanted and position.seq > self._registry.state.seq:
                await self._registry.wait_for_record(position.seq, _IDLE_SECONDS)

    def _may_see(self, event: ChangeEvent) -> bool:
        """Return whether the follower's caller may see an event, by the rules in force now."""
        asking = CALLER.set(self._follower.caller)
        try:
            return can_see_change(self._registry.access, event.change)
        finally:
            CALLER.reset(asking)

    def _note_waiting(self, events: Sequence[ChangeEvent]) -> None:
        """Record since when the follower waits: since the first of the events, or not at all without events."""
        self._stats.note_waiting(self._kind, self._follower.name, events[0].at if events else None)

    async def _find_start(self) -> EventPosition:
        """Return where to begin. A follower without a given position begins at the present end of the log."""
        if not self._follower.begin and self._read_status() is None:
            await self._save(DeliveryStatus(str(self._registry.state.seq)))
        return parse_position(self._find_status().position)

    def _read_status(self) -> DeliveryStatus | None:
        return store.find_status(self._registry.state, self._collection, self._follower.name)

    def _find_status(self) -> DeliveryStatus:
        return self._read_status() or DeliveryStatus(self._follower.begin or "0")

    async def _skip(self, position: EventPosition) -> EventPosition:
        """Advance over records without a wanted event, and return the position. It is saved only now and then."""
        saved = parse_position(self._find_status().position)
        if position.seq - saved.seq > _SKIPPED_RECORDS and await self._lease.hold():
            await self._save(msgspec.structs.replace(self._find_status(), position=str(position)))
        return position

    async def _deliver(self, events: list[ChangeEvent]) -> bool:
        """Send events, or wait until another node has sent them. Return False if the position must be read again."""
        if self._find_status().state is DeliveryState.PAUSED:
            await self._wait_until_resumed()
            return False
        with self._lease.wait_for_other():
            while not await self._lease.hold():
                await self._registry.wait_for_record(self._registry.state.seq + 1, 1.0)
                status = self._find_status()
                if status.state is DeliveryState.PAUSED:
                    return False
                if parse_position(status.position) >= events[-1].position:
                    return True
        status = self._find_status()
        done = parse_position(status.position)
        for index, event in enumerate(events):
            if event.position <= done:
                continue
            self._note_waiting(events[index:])
            if not await self._lease.hold():
                return False
            if self._find_status().state is DeliveryState.PAUSED:
                await self._save(status)
                return False
            sent = await self._send_until_done(event, status)
            if sent is None:
                return False
            status = sent
        await self._save(status)
        return True

    async def _send_until_done(self, event: ChangeEvent, status: DeliveryStatus) -> DeliveryStatus | None:
        """Send one event repeatedly until the sink accepts it or refuses it for good.

        Return None if the follower was paused, or another node sends now.
        """
        while True:
            if not self._may_see(event):  # the caller lost a right since
                return await self._finish(status, event)
            attempt = await self._attempt(event)
            now = time.time_ns() // 1_000_000
            self._stats.count_attempt(self._follower.protocol, attempt.code, (now - event.at) / 1000)
            status = msgspec.structs.replace(
                status, last_code=attempt.code.value, last_status=attempt.status, last_detail=attempt.detail
            )
            if attempt.code is DeliveryCode.DELIVERED:
                return await self._finish(status, event, delivered=status.delivered + 1, last_delivery_at=now)
            if attempt.code is DeliveryCode.REFUSED:
                subject = event.to_cloud_event("/").subject
                dead = DeadEvent(str(event.position), subject, attempt.code.value, attempt.status, now)
                return await self._finish(status.add_dead_event(dead), event, last_failure_at=now)
            status = msgspec.structs.replace(status, failures=status.failures + 1, last_failure_at=now)
            if attempt.code not in _RETRIED or status.failures >= _MOST_FAILURES:
                _logger.warning("delivery paused", follower=self._follower.name, code=attempt.code.value)
                await self._save(msgspec.structs.replace(status, state=DeliveryState.PAUSED))
                return None
            if status.failures in {1, 4}:
                await self._save(status)
            await self._wait_for_retry(status.failures, attempt)
            if self._find_status().state is DeliveryState.PAUSED or not await self._lease.hold():
                return None

    async def _attempt(self, event: ChangeEvent) -> Attempt:
        """Try once with the rights of the follower's caller, and renew the lease meanwhile."""
        asking = CALLER.set(self._follower.caller)
        try:
            sending = asyncio.ensure_future(self._follower.attempt(event))
        finally:
            CALLER.reset(asking)
        try:
            while not (await asyncio.wait({sending}, timeout=RENEWAL_SECONDS))[0]:
                await self._lease.hold()
        except BaseException:
            sending.cancel()
            raise
        failure = sending.exception()
        if failure is None:
            return sending.result()
        if isinstance(failure, SteleError):
            raise failure
        # A defect of a client must not end the delivery for ever. No traceback: its variables hold credentials.
        _logger.error("an attempt failed", follower=self._follower.name, error=type(failure).__name__)
        return Attempt(DeliveryCode.NO_ANSWER, detail=type(failure).__name__)

    async def _finish(self, status: DeliveryStatus, event: ChangeEvent, **changes: int) -> DeliveryStatus:
        status = msgspec.structs.replace(status, position=str(event.position), failures=0, **changes)
        if time.monotonic() - self._saved_at > _BURST_SECONDS:
            return await self._save(status)
        return status

    async def _save(self, status: DeliveryStatus) -> DeliveryStatus:
        self._saved_at = time.monotonic()
        if status == self._find_status():
            return status
        return await store.save_status(self._registry, self._collection, self._follower.name, status)

    async def _wait_for_retry(self, failures: int, attempt: Attempt) -> None:
        """Wait twice as long after each failure, with random jitter, and at least as long as the sink requests."""
        pause = min(_FIRST_PAUSE * 2 ** (failures - 1), _LONGEST_PAUSE) * random.uniform(0.8, 1.2)  # noqa: S311
        until = time.monotonic() + max(pause, min(attempt.retry_after, _LONGEST_PAUSE))
        while (left := until - time.monotonic()) > 0:
            await asyncio.sleep(min(left, RENEWAL_SECONDS))
            if not await self._lease.hold():
                return

    async def _wait_until_resumed(self) -> None:
        while self._find_status().state is DeliveryState.PAUSED:
            await self._registry.wait_for_record(self._registry.state.seq + 1, _IDLE_SECONDS)
