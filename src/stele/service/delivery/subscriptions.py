"""Subscriptions as followers of the log, each with its wanted events and its sink."""

from __future__ import annotations

from typing import Final

import msgspec

from stele.errors import ForbiddenAddress
from stele.protocol.cncf import Subscription
from stele.service.access import make_caller
from stele.service.change_events import ChangeEvent, choose_events
from stele.service.delivery.overview import COLLECTION
from stele.service.delivery.sinks import SinkFactory
from stele.service.delivery.status import SUBSCRIPTIONS
from stele.service.delivery.targets import Attempt, DeliveryCode, EventSink

_decoder: Final = msgspec.json.Decoder(Subscription)


class SubscriptionSource:
    """Creates the followers of subscriptions.

    Args:
        sinks: Creates the sinks to which their events are sent.
        source: Base URI of the registry, for subscriptions that name none.
    """

    collection = COLLECTION
    status_collection = SUBSCRIPTIONS

    def __init__(self, sinks: SinkFactory, source: str) -> None:
        self._sinks = sinks
        self._source = source or "/"

    def make_follower(self, text: bytes) -> SubscriptionFollower:
        """Return the follower of a stored subscription."""
        subscription = _decoder.decode(text)
        return SubscriptionFollower(subscription, self._sinks, subscription.source or self._source)


class SubscriptionFollower:
    """Sends the events that one subscription wants."""

    def __init__(self, subscription: Subscription, sinks: SinkFactory, source: str) -> None:
        self.name = subscription.id
        self.begin = subscription.begin or ""
        self.caller = make_caller(subscription.owner, "delivery")
        self.protocol = subscription.protocol
        self.is_wanted = choose_events(source, subscription.types or (), subscription.filters or ())
        self._subscription = subscription
        self._sinks = sinks
        self._source = source
        self._sink: EventSink | None = None

    async def attempt(self, event: ChangeEvent) -> Attempt:
        """Try to deliver an event once. Raises `NotInstalled`."""
        if self._sink is None:
            try:
                self._sink = self._sinks.make_sink(self._subscription)
            except ForbiddenAddress:
                return Attempt(DeliveryCode.FORBIDDEN_ADDRESS)
        return await self._sink.send(event.to_cloud_event(self._source))

    async def close(self) -> None:
        """Release connections."""
        if self._sink is not None:
            await self._sink.close()
