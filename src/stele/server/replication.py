"""Replications by one node. Its modules are loaded when the registry gets its first replication."""

from __future__ import annotations

import asyncio
from typing import Final

import structlog

from stele.server.settings import ServerSettings
from stele.service.registry import Registry
from stele.service.replication.documents import COLLECTION

_LOOK_SECONDS: Final = 5.0
"""Seconds between two checks for the first replication. A new record in the log also causes a check."""
_PAUSE_SECONDS: Final = 0.05
"""Seconds to pause after a check, so that not every write causes a check."""
_REQUEST_SECONDS: Final = 90.0
_IDLE_SECONDS: Final = 30.0
_ANSWER_BYTES: Final = 64 * 1024 * 1024
"""Limits for a response of another registry: total seconds, seconds without data, and bytes."""

_logger = structlog.get_logger("stele.replication")


async def run_replications(registry: Registry, settings: ServerSettings) -> None:
    """Replicate registries until cancelled."""
    while COLLECTION not in registry.state.collections:
        await registry.wait_for_record(registry.state.seq + 1, _LOOK_SECONDS)
        await asyncio.sleep(_PAUSE_SECONDS)
    if not settings.public_url:
        # The URI of this registry is the authority of its schemas everywhere, so it must not depend on the request.
        _logger.error("replications do not run", reason="the setting public_url is empty", setting="public_url")
        return
    from stele.replicate.worker import ReplicationManager
    from stele.service.outgoing import AddressRules, OutgoingClient

    rules = AddressRules(settings.outgoing_networks)
    client = OutgoingClient(rules, seconds=_REQUEST_SECONDS, idle_seconds=_IDLE_SECONDS, answer_bytes=_ANSWER_BYTES)
    try:
        await ReplicationManager(registry, settings.public_url, client).run()
    finally:
        await client.close()
