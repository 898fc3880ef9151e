"""The registry of this process as one end of a replication, and the memory for targets of other makes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from stele.protocol.replication import ImportAnswer, ReadAnswer, ReadRequest, ReplicaImportRequest
from stele.replicate.dump_target import Carried
from stele.replicate.loop_bridge import LoopBridge
from stele.replicate.stele_registry import EventsRead
from stele.service import collections
from stele.service.change_events import parse_position, wait_for_events
from stele.service.collections import Changes, Items
from stele.service.registry import Registry
from stele.service.replication.importing import import_versions
from stele.service.replication.reading import read_versions

CARRIED: Final = "replications.carried"
"""Collection of what replications wrote to registries of other makes: by replication and uid."""
_VIA: Final = "replication"


class LocalApi:
    """The calls that replication needs, made in the event loop of the registry.

    Args:
        registry: The registry.
        base: Its base URI.
        bridge: Runs coroutines in its event loop.
    """

    def __init__(self, registry: Registry, base: str, bridge: LoopBridge) -> None:
        self._registry = registry
        self._base = base.rstrip("/")
        self._bridge = bridge

    def read_versions(self, request: ReadRequest) -> ReadAnswer:
        """Return versions with all their attributes."""
        return self._bridge.run(read_versions(self._registry, self._base, request))

    def import_versions(self, request: ReplicaImportRequest) -> ImportAnswer:
        """Import versions as replicas."""
        return self._bridge.run(import_versions(self._registry, request))

    def wait_for_events(self, after: str, seconds: float) -> EventsRead:
        """Return the changes after a position; if there are none, wait for one."""
        page = self._bridge.run(wait_for_events(self._registry, parse_position(after), seconds))
        return EventsRead([event.to_cloud_event(self._base) for event in page.events], str(page.next))

    def close(self) -> None:
        """Do nothing: there are no connections."""


class CollectionMemory:
    """Stores what a replication wrote to its target, as documents in the log.

    Args:
        registry: The registry with the documents.
        name: Name of the replication.
        bridge: Runs coroutines in the event loop of the registry.
    """

    def __init__(self, registry: Registry, name: str, bridge: LoopBridge) -> None:
        self._registry = registry
        self._name = name
        self._bridge = bridge
        self._texts: dict[str, bytes] = {}
        self._rows: dict[str, Carried] = {}

    def load(self) -> dict[str, Carried]:
        """Return all entries. Those that have not changed since the last call are not decoded again."""
        items = self._bridge.run(collections.read_collection(self._registry, CARRIED))
        texts = {uid: text for (name, uid), text in items.items() if name == self._name}
        changed = {uid: text for uid, text in texts.items() if self._texts.get(uid) != text}
        self._rows = {uid: row for uid, row in self._rows.items() if uid in texts}
        self._rows |= {uid: msgspec.json.decode(text, type=Carried) for uid, text in changed.items()}
        self._texts = texts
        return dict(self._rows)

    def save(self, changes: Mapping[str, Carried]) -> None:
        """Add or replace some entries."""
        documents: dict[tuple[str, ...], bytes | None] = {
            (self._name, uid): msgspec.json.encode(row) for uid, row in changes.items()
        }

        def change(items: Items) -> tuple[Changes, None]:
            return documents, None

        self._bridge.run(collections.edit_collection(self._registry, CARRIED, change, via=_VIA))
