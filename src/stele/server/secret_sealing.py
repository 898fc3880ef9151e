"""Seals the secrets of a store, for commands that run without a registry."""

from __future__ import annotations

from collections.abc import Sequence

from stele.service.log_sealing import SealedLog, seal_log
from stele.service.registry import Registry
from stele.service.secrets import Secrets, parse_source
from stele.service.times import current_millis
from stele.storage import maintenance, open_log

__all__ = ["SealedLog", "seal_store"]


async def seal_store(store: str, sources: Sequence[str], *, rotate: bool) -> SealedLog:
    """Seal the secrets in a store: see `log_sealing.seal_log`. Raises `InvalidRequest` when there is no such store."""
    secrets = Secrets([parse_source("secrets_key", text) for text in sources])
    maintenance.open_files(store)  # opening its log would make one
    registry = await Registry.open(await open_log(store))
    registry.secrets = secrets
    try:
        return await seal_log(registry, rotate=rotate, now=current_millis())
    finally:
        await registry.close()
