"""Progress of each follower of the log, and the node that sends: documents in the log, so that any node can continue.

The node that sends writes the progress after each burst of events. Nothing is written while nothing happens.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

from stele.core.state import State
from stele.service import collections
from stele.service.change_events import parse_position
from stele.service.collections import Changes, Items
from stele.service.registry import Registry

SUBSCRIPTIONS: Final = "subscriptions.status"
EXPORTERS: Final = "exporters.status"
"""Collections of statuses."""
LEASE_COLLECTION: Final = "subscriptions.lease"
DELIVERY_LEASE: Final = "lease"
"""Name of the lease of the node that sends events."""
_VIA: Final = "delivery"
_MOST_DEAD_LETTERS: Final = 100
"""Dead letters that are kept of a follower, the newest ones."""


class DeliveryState(StrEnum):
    """Whether events are sent."""

    ACTIVE = "active"
    PAUSED = "paused"
    """Nothing is sent until the follower is resumed."""


class DeadEvent(msgspec.Struct, frozen=True):
    """An event that a sink refused for good.

    Holds id and subject of the event, the reason, and the time (milliseconds since 1970).
    """

    id: str
    subject: str
    code: str
    status: int
    at: int


class DeliveryStatus(msgspec.Struct, frozen=True, omit_defaults=True):
    """How far a follower is: a subscription, or an exporter.

    position          position after the last processed event
    state             whether events are sent
    delivered         total number of events that the sink accepted
    failures          failed attempts since the last success
    last_code         result of the last attempt, a `DeliveryCode`
    last_status       its HTTP status; 0 where there was none
    last_detail       short text of the receiver's answer
    last_delivery_at  when the sink last accepted an event (milliseconds since 1970 UTC)
    last_failure_at   when an attempt last failed
    dead_events       the newest events that the sink refused for good
    dead              total number of these
    """

    position: str
    state: DeliveryState = DeliveryState.ACTIVE
    delivered: int = 0
    failures: int = 0
    last_code: str = ""
    last_status: int = 0
    last_detail: str = ""
    last_delivery_at: int = 0
    last_failure_at: int = 0
    dead_events: tuple[DeadEvent, ...] = ()
    dead: int = 0

    def add_dead_event(self, event: DeadEvent) -> DeliveryStatus:
        """Return the status with one more event that was refused for good."""
        dead_events = (*self.dead_events, event)[-_MOST_DEAD_LETTERS:]
        return msgspec.structs.replace(self, dead_events=dead_events, dead=self.dead + 1)


class Lease(msgspec.Struct, frozen=True):
    """The node that does a piece of work, '' for none.

    turn rises with each renewal. If it does not rise, the node has stopped.
    """

    node: str
    turn: int


_status_decoder = msgspec.json.Decoder(DeliveryStatus)
_lease_decoder = msgspec.json.Decoder(Lease)


def find_status(state: State, collection: str, name: str) -> DeliveryStatus | None:
    """Return how far a follower is; None if nothing was written yet."""
    documents = state.collections.get(collection)
    text = None if documents is None else documents.items.get((name,))
    return None if text is None else _status_decoder.decode(text)


def find_lease(state: State, name: str = DELIVERY_LEASE) -> Lease | None:
    """Return a lease; None if no node ever took it."""
    collection = state.collections.get(LEASE_COLLECTION)
    text = None if collection is None else collection.items.get((name,))
    return None if text is None else _lease_decoder.decode(text)


def list_leases(state: State) -> dict[str, Lease]:
    """Return all leases by their names."""
    collection = state.collections.get(LEASE_COLLECTION)
    return {} if collection is None else {key[0]: _lease_decoder.decode(text) for key, text in collection.items.items()}


async def save_status(registry: Registry, collection: str, name: str, status: DeliveryStatus) -> DeliveryStatus:
    """Write how far a follower is, and return the status that is stored then.

    A stored pause is kept. A stored position further on is kept, too, because another node has sent events since.
    """

    def change(items: Items) -> tuple[Changes, DeliveryStatus]:
        text = items.get((name,))
        before = None if text is None else _status_decoder.decode(text)
        if before is not None and parse_position(before.position) > parse_position(status.position):
            return {}, before
        wanted = status
        if before is not None and before.state is DeliveryState.PAUSED:
            wanted = msgspec.structs.replace(status, state=DeliveryState.PAUSED)
        return {(name,): msgspec.json.encode(wanted)}, wanted

    return await collections.edit_collection(registry, collection, change, via=_VIA)


async def set_state(
    registry: Registry, collection: str, name: str, status: DeliveryStatus, state: DeliveryState
) -> None:
    """Pause or resume a follower, and reset its failures. `status` is its status if none is stored yet."""

    def change(items: Items) -> tuple[Changes, None]:
        text = items.get((name,))
        before = status if text is None else _status_decoder.decode(text)
        wanted = msgspec.structs.replace(before, state=state, failures=0)
        return {(name,): msgspec.json.encode(wanted)}, None

    await collections.edit_collection(registry, collection, change, via=_VIA)


async def forget_status(registry: Registry, collection: str, name: str) -> None:
    """Remove the status of a deleted follower."""

    def change(items: Items) -> tuple[Changes, None]:
        return ({(name,): None} if (name,) in items else {}), None

    await collections.edit_collection(registry, collection, change, via=_VIA)


async def take_lease(registry: Registry, known_lease: Lease | None, node: str, name: str = DELIVERY_LEASE) -> bool:
    """Take or renew a lease for a node. Return False if the stored lease differs from `known_lease`."""

    def change(items: Items) -> tuple[Changes, bool]:
        text = items.get((name,))
        if (None if text is None else _lease_decoder.decode(text)) != known_lease:
            return {}, False
        return {(name,): msgspec.json.encode(Lease(node, 1 if known_lease is None else known_lease.turn + 1))}, True

    return await collections.edit_collection(registry, LEASE_COLLECTION, change, via=_VIA)


async def forget_lease(registry: Registry, name: str) -> None:
    """Remove the lease of work that no longer exists."""

    def change(items: Items) -> tuple[Changes, None]:
        return ({(name,): None} if (name,) in items else {}), None

    await collections.edit_collection(registry, LEASE_COLLECTION, change, via=_VIA)
