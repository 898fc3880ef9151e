"""Sends events to subscribers: at least once, in order for each subscription, from one node at a time.

Every node reads the log for every subscription. Where an event is wanted, the node that holds the lease sends it; the
others wait until the log says that it was sent. When it does not, and the lease stands still for
`TAKEOVER_SECONDS`, one of them takes the lease. Each subscription has a task of its own, so a slow sink keeps nobody
waiting; it reads the log a page at a time, so it costs no memory.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final, NamedTuple

import msgspec
import structlog

from stele.errors import ForbiddenAddress, SteleError
from stele.protocol.cncf import CloudEvent
from stele.service import collections
from stele.service.change_events import ChangeEvent, EventPosition, choose_events, parse_position, read_events
from stele.service.delivery import status as store
from stele.service.delivery.overview import COLLECTION
from stele.service.delivery.status import DeadEvent, DeliveryState, DeliveryStatus, Lease
from stele.service.delivery.targets import Attempt, DeliveryCode, DeliveryTarget, EventSink, SinkFactory
from stele.service.registry import Registry

TAKEOVER_SECONDS: Final = 6.0
"""A lease that stands still for so long, while there is something to send, is taken by another node."""
_RENEWAL_SECONDS: Final = 2.0
_PAGE: Final = 100
_BURST_SECONDS: Final = 1.0
"""How far it came is written so often at most while events go out."""
_SKIPPED_RECORDS: Final = 5_000
"""Records without a wanted event after which the position is written all the same."""
_FIRST_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 60.0
_MOST_FAILURES: Final = 12
"""Attempts that fail one after the other before a subscription is paused: about five minutes."""
_IDLE_SECONDS: Final = 30.0
_PAUSING: Final = frozenset({DeliveryCode.GONE, DeliveryCode.NO_CONSENT, DeliveryCode.FORBIDDEN_ADDRESS})
"""Codes after which nothing more is sent before somebody resumes the subscription."""

_logger = structlog.get_logger("stele.delivery")
_decoder = msgspec.json.Decoder(DeliveryTarget)


class _Running(NamedTuple):
    text: bytes
    task: asyncio.Task[None]


class Deliverer:
    """Sends the events of one registry from one node; `run` until it is cancelled.

    Args:
        registry: The node.
        sinks: Makes what events go to.
        source: Base URI of the registry, for subscriptions that name none.
    """

    def __init__(self, registry: Registry, sinks: SinkFactory, source: str) -> None:
        self._registry = registry
        self._sinks = sinks
        self._source = source or "/"
        self._running: dict[str, _Running] = {}
        self._lease = _LeaseHolder(registry)
        self._revision = -1

    async def run(self) -> None:
        """Deliver for as long as the server runs."""
        try:
            while True:
                with suppress(SteleError):
                    await self._follow_subscriptions()
                await self._registry.wait_for_record(self._registry.state.seq + 1, _IDLE_SECONDS)
        finally:
            tasks = [row.task for row in self._running.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            with suppress(SteleError):
                await self._lease.release()
            await self._sinks.close()

    async def _follow_subscriptions(self) -> None:
        """Start a task for each new subscription, a new one for each changed one, and end those of the others."""
        found = self._registry.state.collections.get(COLLECTION)
        if found is None or found.revision == self._revision:
            return
        self._revision = found.revision
        items = await collections.read_collection(self._registry, COLLECTION)
        wanted: Mapping[str, bytes] = {name: bytes(text) for (name,), text in items.items()}
        for name, row in list(self._running.items()):
            if wanted.get(name) != row.text:
                row.task.cancel()
                del self._running[name]
                if name not in wanted:
                    await store.forget_status(self._registry, name)
        for name, text in wanted.items():
            if name not in self._running:
                task = asyncio.create_task(self._run_subscription(_decoder.decode(text)))
                self._running[name] = _Running(text, task)

    async def _run_subscription(self, target: DeliveryTarget) -> None:
        while True:
            try:
                await _Delivery(self._registry, self._sinks, self._lease, target, target.source or self._source).run()
            except SteleError as error:  # the store does not answer, or the extra for the sink is missing
                _logger.warning("delivery stopped for a while", subscription=target.id, reason=str(error))
            await asyncio.sleep(_IDLE_SECONDS)


class _LeaseHolder:
    """This node's side of the lease."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._node = os.urandom(8).hex()
        self._renewed_at = 0.0
        self._seen: Lease | None = None
        self._seen_at = 0.0
        self._waiting = 0

    async def hold(self) -> bool:
        """Return whether this node sends, after renewing or taking the lease where that is due."""
        lease, now = store.find_lease(self._registry.state), time.monotonic()
        if lease is not None and lease.node == self._node:
            if now - self._renewed_at < _RENEWAL_SECONDS:
                return True
        elif lease is not None and lease.node:
            if lease != self._seen:
                self._seen, self._seen_at = lease, now
            if now - self._seen_at < TAKEOVER_SECONDS:
                return False
        is_held = await store.take_lease(self._registry, lease, self._node)
        if is_held:
            self._renewed_at = time.monotonic()
        return is_held

    async def release(self) -> None:
        """Let another node send at once, if it is this one that does."""
        lease = store.find_lease(self._registry.state)
        if lease is not None and lease.node == self._node:
            await store.take_lease(self._registry, lease, "")

    @contextmanager
    def wait_for_other(self) -> Iterator[None]:
        """Note that another node has something to send: the time the lease stands still counts from the first wait."""
        if not self._waiting:
            self._seen_at = time.monotonic()
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1


class _Delivery:
    """One subscription."""

    def __init__(
        self, registry: Registry, sinks: SinkFactory, lease: _LeaseHolder, target: DeliveryTarget, source: str
    ) -> None:
        self._registry = registry
        self._sinks = sinks
        self._lease = lease
        self._target = target
        self._source = source
        self._is_wanted: Callable[[ChangeEvent], bool] = choose_events(source, target.types or (), target.filters or ())
        self._sink: EventSink | None = None
        self._saved_at = 0.0

    async def run(self) -> None:
        """Deliver until cancelled. Raises `SteleError`."""
        try:
            position = await self._find_start()
            while True:
                page = await read_events(self._registry, position, _PAGE, is_fresh=False)
                wanted = [event for event in page.events if self._is_wanted(event)]
                if not wanted or await self._deliver(wanted):
                    position = await self._skip(page.next)
                else:
                    position = parse_position(self._find_status().position)
                if not wanted and position.seq > self._registry.state.seq:
                    await self._registry.wait_for_record(position.seq, _IDLE_SECONDS)
        finally:
            if self._sink is not None:
                await self._sink.close()

    async def _find_start(self) -> EventPosition:
        """Return where to begin; a subscription of an older release begins with what comes now."""
        if not self._target.begin and store.find_status(self._registry.state, self._target.id) is None:
            await self._save(DeliveryStatus(str(self._registry.state.seq)))
        return parse_position(self._find_status().position)

    def _find_status(self) -> DeliveryStatus:
        return store.find_status(self._registry.state, self._target.id) or DeliveryStatus(self._target.begin or "0")

    async def _skip(self, position: EventPosition) -> EventPosition:
        """Note that nothing is wanted before a position."""
        saved = parse_position(self._find_status().position)
        if position.seq - saved.seq > _SKIPPED_RECORDS and await self._lease.hold():
            await self._save(msgspec.structs.replace(self._find_status(), position=str(position)))
        return position

    async def _deliver(self, events: list[ChangeEvent]) -> bool:
        """Send events, or wait until another node has; False when the position is to be read again."""
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
        for event in events:
            if event.position > done:
                sent = await self._send_until_done(event, status)
                if sent is None:
                    return False
                status = sent
        await self._save(status)
        return True

    async def _send_until_done(self, event: ChangeEvent, status: DeliveryStatus) -> DeliveryStatus | None:
        """Send one event again and again until it is taken, or refused for good.

        None when the subscription was paused, or another node sends by now.
        """
        made = event.to_cloud_event(self._source)
        while True:
            attempt = await self._attempt(made)
            now = time.time_ns() // 1_000_000
            status = msgspec.structs.replace(status, last_code=attempt.code.value, last_status=attempt.status)
            match attempt.code:
                case DeliveryCode.DELIVERED:
                    return await self._finish(status, event, delivered=status.delivered + 1, last_delivery_at=now)
                case DeliveryCode.REFUSED:
                    dead = DeadEvent(made.id, made.subject, attempt.code.value, attempt.status, now)
                    return await self._finish(status.add_dead_event(dead), event, last_failure_at=now)
            status = msgspec.structs.replace(status, failures=status.failures + 1, last_failure_at=now)
            if attempt.code in _PAUSING or status.failures >= _MOST_FAILURES:
                _logger.warning("subscription paused", subscription=self._target.id, code=attempt.code.value)
                await self._save(msgspec.structs.replace(status, state=DeliveryState.PAUSED))
                return None
            if status.failures in {1, 4}:
                await self._save(status)
            await self._wait_for_retry(status.failures, attempt)
            if self._find_status().state is DeliveryState.PAUSED or not await self._lease.hold():
                return None

    async def _attempt(self, event: CloudEvent) -> Attempt:
        """Try once, renewing the lease meanwhile."""
        if self._sink is None:
            try:
                self._sink = self._sinks.make_sink(self._target)
            except ForbiddenAddress:
                return Attempt(DeliveryCode.FORBIDDEN_ADDRESS)
        sending = asyncio.ensure_future(self._sink.send(event))
        try:
            while not (await asyncio.wait({sending}, timeout=_RENEWAL_SECONDS))[0]:
                await self._lease.hold()
        except BaseException:
            sending.cancel()
            raise
        return sending.result()

    async def _finish(self, status: DeliveryStatus, event: ChangeEvent, **changes: int) -> DeliveryStatus:
        status = msgspec.structs.replace(status, position=str(event.position), failures=0, **changes)
        if time.monotonic() - self._saved_at > _BURST_SECONDS:
            return await self._save(status)
        return status

    async def _save(self, status: DeliveryStatus) -> DeliveryStatus:
        self._saved_at = time.monotonic()
        if status == self._find_status():
            return status
        return await store.save_status(self._registry, self._target.id, status)

    async def _wait_for_retry(self, failures: int, attempt: Attempt) -> None:
        """Wait twice as long after each failure, with a random part, and at least as long as the sink asks."""
        pause = min(_FIRST_PAUSE * 2 ** (failures - 1), _LONGEST_PAUSE) * random.uniform(0.8, 1.2)  # noqa: S311
        until = time.monotonic() + max(pause, min(attempt.retry_after, _LONGEST_PAUSE))
        while (left := until - time.monotonic()) > 0:
            await asyncio.sleep(min(left, _RENEWAL_SECONDS))
            if not await self._lease.hold():
                return

    async def _wait_until_resumed(self) -> None:
        while self._find_status().state is DeliveryState.PAUSED:
            await self._registry.wait_for_record(self._registry.state.seq + 1, _IDLE_SECONDS)
