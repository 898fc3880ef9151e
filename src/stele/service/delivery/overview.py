"""The delivery of events as shown to users: how far each subscription is, and which error stops it."""

from __future__ import annotations

from typing import Final

import msgspec

from stele.core.access import Owner
from stele.core.state import State
from stele.errors import NotFound
from stele.service import collections
from stele.service.change_events import parse_position
from stele.service.delivery.status import SUBSCRIPTIONS as STATUS
from stele.service.delivery.status import DeadEvent, DeliveryState, DeliveryStatus, find_status, set_state
from stele.service.registry import Registry

COLLECTION: Final = "subscriptions"
"""Name of the collection of subscriptions."""


class SubscriptionOverview(msgspec.Struct, frozen=True):
    """How far one subscription is.

    id                its id in the CNCF API
    owner             caller that wrote it last, '' if anonymous. It gets the events that the owner may read
    protocol          protocol by which events are sent
    state             `active`, or `paused` until it is resumed
    position          position after the last processed event
    waiting_records   records of the log after that position; any of them may hold events for it
    delivered         number of events that the sink accepted
    failures          failed attempts since the last success
    last_code         result of the last attempt; '' before the first
    last_status       its HTTP status
    last_detail       short text of the sink's answer
    last_delivery_at  when the sink last accepted an event (milliseconds since 1970 UTC); 0: never
    last_failure_at   when an attempt last failed
    dead              number of events that the sink refused for good; dead_events are the newest of them
    """

    id: str
    owner: str
    protocol: str
    state: DeliveryState
    position: str
    waiting_records: int
    delivered: int
    failures: int
    last_code: str
    last_status: int
    last_detail: str
    last_delivery_at: int
    last_failure_at: int
    dead: int
    dead_events: tuple[DeadEvent, ...]


class _Outline(msgspec.Struct):
    protocol: str = ""
    begin: str = "0"
    owner: Owner = Owner()


async def list_overviews(registry: Registry) -> list[SubscriptionOverview]:
    """Return how far each subscription is, by id."""
    state = await registry.fresh_state()
    subscriptions = collections.items_in(registry, state, COLLECTION)
    return [_describe(state, name, text) for (name,), text in sorted(subscriptions.items())]


async def change_state(registry: Registry, name: str, wanted: DeliveryState) -> SubscriptionOverview:
    """Pause or resume a subscription. Raises `NotFound`."""
    state = await registry.fresh_state()
    text = collections.items_in(registry, state, COLLECTION).get((name,))
    if text is None:
        raise NotFound(f"There is no subscription '{name}'.")
    begin = msgspec.json.decode(text, type=_Outline).begin
    await set_state(registry, STATUS, name, find_status(state, STATUS, name) or DeliveryStatus(begin), wanted)
    return _describe(registry.state, name, text)


def _describe(state: State, name: str, text: bytes) -> SubscriptionOverview:
    outline = msgspec.json.decode(text, type=_Outline)
    status = find_status(state, STATUS, name) or DeliveryStatus(outline.begin)
    rest = {key: value for key, value in msgspec.structs.asdict(status).items() if key != "position"}
    position = parse_position(status.position)
    done = position.seq if position.part >= 0 else position.seq - 1
    return SubscriptionOverview(
        name,
        outline.owner.name,
        outline.protocol,
        position=status.position,
        waiting_records=max(state.seq - done, 0),
        **rest,
    )
