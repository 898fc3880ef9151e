"""Replications by one node: loaded and started when there is one."""

from __future__ import annotations

import asyncio
from typing import Final

import structlog

from stele.server.settings import ServerSettings
from stele.service.registry import Registry
from stele.service.replication.documents import COLLECTION

_LOOK_SECONDS: Final = 5.0
"""How often a server without replications looks for some, besides when the log has grown."""
_PAUSE_SECONDS: Final = 0.05
"""How long it leaves the log alone after a look, so that a look is not a cost of every write."""
_REQUEST_SECONDS: Final = 90.0
_IDLE_SECONDS: Final = 30.0
_ANSWER_BYTES: Final = 64 * 1024 * 1024
"""How long another registry may take for an answer, say nothing meanwhile, and how long the answer may be."""

_logger = structlog.get_logger("stele.replication")


async def run_replications(registry: Registry, settings: ServerSettings) -> None:
    """Keep registries in step until cancelled."""
    while COLLECTION not in registry.state.collections:
        await registry.wait_for_record(registry.state.seq + 1, _LOOK_SECONDS)
        await asyncio.sleep(_PAUSE_SECONDS)
    if not settings.public_url:
        # Its URI is the authority of its schemas everywhere: it cannot be left to whoever asks.
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
