"""Recorded censuses as stored in the log."""

from __future__ import annotations

import msgspec

from stele.service.registry import Registry
from stele.service.usage import COLLECTION, CensusRecord, Usage, VersionUsage
from stele.storage.memory import MemoryLog


async def test_stored_censuses_keep_their_words() -> None:
    """The log names namespaces `space` in censuses, so that old censuses can be read for ever."""
    registry = await Registry.open(MemoryLog())
    usage = VersionUsage("orders", 1, 7, 3, namespace="team")
    try:
        await Usage(registry).record_census("topic orders", CensusRecord(5, seen=(usage,)))
        (document,) = registry.state.collections[COLLECTION].items.values()
        (row,) = msgspec.json.decode(document)["seen"]
        assert (row["space"], "namespace" in row) == ("team", False)
        assert (await Usage(registry).get_place("topic orders")).seen == (usage,)
    finally:
        await registry.close()
