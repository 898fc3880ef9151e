"""Delivery of changes by one node. Its modules are loaded when the registry gets its first subscription or exporter."""

from __future__ import annotations

import asyncio
import socket
from typing import Final
from urllib.parse import urlsplit

from stele.server.settings import ServerSettings
from stele.service.delivery.exporters import COLLECTION as EXPORTERS
from stele.service.delivery.overview import COLLECTION as SUBSCRIPTIONS
from stele.service.delivery.stats import DeliveryStats
from stele.service.registry import Registry

_LOOK_SECONDS: Final = 60.0
"""Seconds between two checks for the first subscription or exporter. A new record in the log also causes a check."""
_PAUSE_SECONDS: Final = 0.05
"""Seconds to pause after a check, so that not every write causes a check."""


async def deliver_changes(registry: Registry, settings: ServerSettings, stats: DeliveryStats) -> None:
    """Send changes to subscribers and exporters until cancelled; stats counts them."""
    while registry.state.collections.keys().isdisjoint({EXPORTERS, SUBSCRIPTIONS}):
        await registry.wait_for_record(registry.state.seq + 1, _LOOK_SECONDS)
        await asyncio.sleep(_PAUSE_SECONDS)
    from stele.apis.confluent.exporting import ExporterSource
    from stele.service.delivery.deliverer import Deliverer, FollowerSource
    from stele.service.delivery.sinks import SinkFactory
    from stele.service.delivery.subscriptions import SubscriptionSource
    from stele.service.outgoing import AddressRules, OutgoingClient

    origin = (urlsplit(settings.public_url).hostname or socket.gethostname()) if settings.webhook_consent else ""
    rules = AddressRules(settings.outgoing_networks)
    client = OutgoingClient(rules)
    sinks = SinkFactory(client, rules, origin, settings.event_brokers)
    subscriptions = SubscriptionSource(sinks, settings.public_url.rstrip("/"))
    sources: list[FollowerSource] = [subscriptions, ExporterSource(registry, client)]
    try:
        await Deliverer(registry, sources, stats).run()
    finally:
        await client.close()
