"""How far each follower of the log is, and which node sends: documents in the log, so that any node can go on.

The node that sends writes how far it came after each burst of events. Nothing is written while nothing happens.
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
    """Whether events go out."""

    ACTIVE = "active"
    PAUSED = "paused"
    """Nothing is sent until somebody resumes it."""


class DeadEvent(msgspec.Struct, frozen=True):
    """An event that a sink will never take: id and subject of the event, why, and when (milliseconds since 1970)."""

    id: str
    subject: str
    code: str
    status: int
    at: int


class DeliveryStatus(msgspec.Struct, frozen=True, omit_defaults=True):
    """How far a follower is: a subscription, or an exporter.

    position          behind the last event that is done with
    state             whether events go out
    delivered         events the sink took, in all
    failures          attempts that failed since the last event was taken
    last_code         what became of the last attempt, a `DeliveryCode`
    last_status       its status of HTTP; 0 where there was none
    last_detail       what the far side said, in short
    last_delivery_at  when the sink last took an event (milliseconds since 1970 UTC)
    last_failure_at   when an attempt last failed
    dead_events       the newest events that the sink will never take
    dead              how many there were in all
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
        """Return the status with one more event that was not taken."""
        dead_events = (*self.dead_events, event)[-_MOST_DEAD_LETTERS:]
        return msgspec.structs.replace(self, dead_events=dead_events, dead=self.dead + 1)


class Lease(msgspec.Struct, frozen=True):
    """Which node does a piece of work, '' for none. turn rises meanwhile; one that stands still: the node is gone."""

    node: str
    turn: int


_status_decoder = msgspec.json.Decoder(DeliveryStatus)
_lease_decoder = msgspec.json.Decoder(Lease)


def find_status(state: State, collection: str, name: str) -> DeliveryStatus | None:
    """Return how far a follower is; None where nothing was sent yet."""
    documents = state.collections.get(collection)
    text = None if documents is None else documents.items.get((name,))
    return None if text is None else _status_decoder.decode(text)


def find_lease(state: State, name: str = DELIVERY_LEASE) -> Lease | None:
    """Return which node does something; None where none ever did."""
    collection = state.collections.get(LEASE_COLLECTION)
    text = None if collection is None else collection.items.get((name,))
    return None if text is None else _lease_decoder.decode(text)


def list_leases(state: State) -> dict[str, Lease]:
    """Return all leases by their names."""
    collection = state.collections.get(LEASE_COLLECTION)
    return {} if collection is None else {key[0]: _lease_decoder.decode(text) for key, text in collection.items.items()}


async def save_status(registry: Registry, collection: str, name: str, status: DeliveryStatus) -> DeliveryStatus:
    """Write how far a follower is, and return what is there then.

    A pause meanwhile stays, and so does a position further on: another node has sent since.
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
    """Pause or resume a follower; status is what it has where nothing was written yet."""

    def change(items: Items) -> tuple[Changes, None]:
        text = items.get((name,))
        before = status if text is None else _status_decoder.decode(text)
        wanted = msgspec.structs.replace(before, state=state, failures=0)
        return {(name,): msgspec.json.encode(wanted)}, None

    await collections.edit_collection(registry, collection, change, via=_VIA)


async def forget_status(registry: Registry, collection: str, name: str) -> None:
    """Remove what is known of a follower that is gone."""

    def change(items: Items) -> tuple[Changes, None]:
        return ({(name,): None} if (name,) in items else {}), None

    await collections.edit_collection(registry, collection, change, via=_VIA)


async def take_lease(registry: Registry, known_lease: Lease | None, node: str, name: str = DELIVERY_LEASE) -> bool:
    """Make a node the one that acts, or go on being it; False when the lease is not the one that was seen."""

    def change(items: Items) -> tuple[Changes, bool]:
        text = items.get((name,))
        if (None if text is None else _lease_decoder.decode(text)) != known_lease:
            return {}, False
        return {(name,): msgspec.json.encode(Lease(node, 1 if known_lease is None else known_lease.turn + 1))}, True

    return await collections.edit_collection(registry, LEASE_COLLECTION, change, via=_VIA)


async def forget_lease(registry: Registry, name: str) -> None:
    """Remove the lease of work that nobody does any more."""

    def change(items: Items) -> tuple[Changes, None]:
        return ({(name,): None} if (name,) in items else {}), None

    await collections.edit_collection(registry, LEASE_COLLECTION, change, via=_VIA)
