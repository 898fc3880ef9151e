"""Replications of a server: a thread for each one that is running, on every node; one node at a time applies changes.

Every node notices changes. Where there is something to do, the node with the lease does it; the others compare again
until nothing is left, and take the lease when it stands still. Doing a thing twice does nothing, so a late node does no
harm.
"""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import suppress
from typing import Final

import httpx
import structlog
from msgspec.structs import replace

from stele.client import Bearer, Retry, SchemaRegistryClient
from stele.core.model import SubjectKey
from stele.core.state import State
from stele.errors import SteleError
from stele.protocol.replication import SubjectName
from stele.replicate.apicurio_source import ApicurioSource
from stele.replicate.cncf_source import CncfSource
from stele.replicate.confluent_source import ConfluentSource
from stele.replicate.confluent_target import ConfluentTarget
from stele.replicate.foreign_api import ForeignApi
from stele.replicate.local_registry import CollectionMemory, LocalApi
from stele.replicate.loop_bridge import BridgedTransport, LoopBridge, Stopped
from stele.replicate.plan import ReplicationConflict
from stele.replicate.registries import ReplicaSource, ReplicaTarget
from stele.replicate.replicator import ReplicationOutcome, Replicator, Scope
from stele.replicate.stele_registry import HttpApi, SteleRegistry
from stele.replicate.xregistry_source import XRegistrySource
from stele.service import collections
from stele.service.delivery.lease import RENEWAL_SECONDS, LeaseHolder
from stele.service.outgoing import OutgoingClient
from stele.service.registry import Registry, current_millis
from stele.service.replication import documents
from stele.service.replication.documents import (
    COLLECTION,
    MOST_CONFLICTS,
    OtherRegistry,
    Phase,
    RegistryKind,
    Replication,
    ReplicationDirection,
    ReplicationStatus,
    RunState,
    StoredConflict,
)
from stele.service.subject_patterns import Renaming

LEASE: Final = "replications"
"""Name of the lease of the node that applies changes."""
_SAVE_SECONDS: Final = 1.0
"""How often the status is written at most while changes come."""
_FIRST_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 30.0
_IDLE_SECONDS: Final = 5.0
"""How often a node looks for changed documents, besides after each record: a test may have emptied the log."""
_ONE_TRY: Final = Retry(rounds=1)

_logger = structlog.get_logger("stele.replication")


class ReplicationManager:
    """Runs the replications of one node until it is cancelled.

    Args:
        registry: The node.
        base: Base URI of the registry: its authority.
        client: Sends requests to other registries, with long answers and long waits.
    """

    def __init__(self, registry: Registry, base: str, client: OutgoingClient) -> None:
        self._registry = registry
        self._base = base
        self._client = client
        self._lease = LeaseHolder(registry, LEASE)
        self._workers: dict[str, tuple[bytes, _Worker]] = {}
        self._seen: tuple[State | None, int] = (None, 0)

    async def run(self) -> None:
        """Run what the documents say, for as long as the server does."""
        try:
            while True:
                with suppress(SteleError):
                    await self._follow_documents()
                await self._registry.wait_for_record(self._registry.state.seq + 1, _IDLE_SECONDS)
        finally:
            for _, worker in self._workers.values():
                worker.stop()
            with suppress(SteleError):
                await self._lease.release()

    async def _follow_documents(self) -> None:
        """Start a worker for each new replication, another one for each changed one, and stop the others."""
        state = self._registry.state
        found = state.collections.get(COLLECTION)
        seen = (state, 0 if found is None else found.revision)
        if seen == self._seen:
            return
        items = await collections.read_collection(self._registry, COLLECTION)
        texts = {name: bytes(text) for (name,), text in items.items()}
        for name, (text, worker) in list(self._workers.items()):
            if texts.get(name) != text:
                worker.stop()
                del self._workers[name]
        for name, text in texts.items():
            replication = documents.decode_replication(text)
            if name not in self._workers and replication.state is RunState.RUNNING:
                bridge = LoopBridge(asyncio.get_running_loop())
                worker = _Worker(self._registry, self._base, replication, self._lease, bridge, self._client)
                self._workers[name] = (text, worker)
                worker.start()
        self._seen = seen


class _Worker:
    """One replication at work, in a thread of its own."""

    def __init__(
        self,
        registry: Registry,
        base: str,
        replication: Replication,
        lease: LeaseHolder,
        bridge: LoopBridge,
        client: OutgoingClient,
    ) -> None:
        self._registry = registry
        self._base = base
        self._replication = replication
        self._lease = lease
        self._bridge = bridge
        self._client = client
        self._thread = threading.Thread(target=self._run, name=f"stele-replicate-{replication.name}", daemon=True)
        self._status = documents.find_status(registry.state, replication.name)
        self._saved = self._status
        self._saved_at = 0.0
        self._claimed_at = 0.0
        self._conflicts: dict[tuple[str, str, int], StoredConflict] = {}

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End soon; whatever is under way is given up."""
        self._bridge.stop()

    def _run(self) -> None:
        with suppress(Stopped):
            while True:
                try:
                    self._follow()
                except Stopped:
                    raise
                except SteleError as error:
                    self._note_failure(type(error).__name__, str(error))
                except Exception as error:
                    # A defect must not end a replication for good: it is logged, shown, and tried again.
                    _logger.error("replication failed", replication=self._replication.name, exc_info=error)
                    self._note_failure("internal_error", type(error).__name__)
                self._bridge.sleep(min(_FIRST_PAUSE * 2 ** min(self._status.failures - 1, 10), _LONGEST_PAUSE))

    def _follow(self) -> None:
        replication = self._replication
        source, target = self._open_ends()
        try:
            renaming = Renaming(replication.rename, replication.namespace)
            replicator = Replicator(source, target, Scope(replication.subjects, renaming), self._renew)
            replicator.follow(self, self._status.position)
        finally:
            source.close()
            target.close()

    def _open_ends(self) -> tuple[ReplicaSource, ReplicaTarget]:
        local = SteleRegistry(LocalApi(self._registry, self._base, self._bridge), "this registry")
        if self._replication.direction is ReplicationDirection.PULL:
            return self._open_source(), local
        return local, self._open_target()

    def _open_source(self) -> ReplicaSource:
        other, pause = self._replication.registry, self._replication.poll_seconds
        match other.kind:
            case RegistryKind.CONFLUENT:
                api = ForeignApi(self._open_http(other), other.url)
                return ConfluentSource(self._open_client(other), api, other.url, other.authority or other.url, pause)
            case RegistryKind.CNCF:
                return CncfSource(self._open_http(other), other.url, other.authority, pause)
            case RegistryKind.XREGISTRY:
                return XRegistrySource(self._open_http(other), other.url, other.authority, pause)
            case RegistryKind.APICURIO:
                return ApicurioSource(self._open_http(other), other.url, other.authority, pause)
        return SteleRegistry(HttpApi(self._open_client(other)), other.url)

    def _open_target(self) -> ReplicaTarget:
        other = self._replication.registry
        if other.kind is RegistryKind.CONFLUENT:
            memory = CollectionMemory(self._registry, self._replication.name, self._bridge)
            return ConfluentTarget(self._open_client(other), other.url, other.authority or other.url, memory)
        return SteleRegistry(HttpApi(self._open_client(other)), other.url)

    def _open_http(self, other: OtherRegistry) -> httpx.Client:
        return httpx.Client(transport=BridgedTransport(self._bridge, self._client), auth=_make_auth(other))

    def _open_client(self, other: OtherRegistry) -> SchemaRegistryClient:
        transport = BridgedTransport(self._bridge, self._client)
        return SchemaRegistryClient(
            other.url, auth=_make_auth(other), transport=transport, retry=_ONE_TRY, cache_size=0
        )

    # --- as the observer of the replicator ------------------------------------------------------------------------

    def claim(self) -> bool:
        """Return whether this node is the one that applies changes."""
        self._claimed_at = time.monotonic()
        return self._bridge.run(self._lease.hold())

    def _renew(self, verb: str, done: int, total: int | None) -> None:
        if time.monotonic() - self._claimed_at > RENEWAL_SECONDS / 2:
            self.claim()

    def sleep(self, seconds: float) -> None:
        """Wait. Raises `Stopped`."""
        self._bridge.sleep(seconds)

    def note_pass(self, outcome: ReplicationOutcome, subjects: frozenset[SubjectName] | None) -> None:
        """Take note that target and source are level."""
        before = self._status
        self._keep_conflicts(outcome, subjects)
        rows = tuple(self._conflicts.values())
        now = current_millis()
        is_change = bool(outcome.registered or outcome.removed)
        self._status = replace(
            before,
            phase=Phase.FOLLOWING,
            position=outcome.position,
            registered=before.registered + outcome.registered,
            removed=before.removed + outcome.removed,
            mapped=before.mapped + outcome.mapped,
            same=outcome.same if subjects is None else before.same,
            failures=0,
            last_error="",
            last_detail="",
            level_at=now,
            changed_at=now if is_change else before.changed_at,
            conflicts=rows[:MOST_CONFLICTS],
            conflict_count=len(rows),
        )
        self._save(is_urgent=False)

    def _keep_conflicts(self, outcome: ReplicationOutcome, subjects: frozenset[SubjectName] | None) -> None:
        """Forget conflicts about what was compared again, and note those there are now."""
        if subjects is None:
            self._conflicts.clear()
        else:
            renaming = Renaming(self._replication.rename, self._replication.namespace)
            places = {tuple(renaming.rename_subject(SubjectKey(*place))) for place in subjects}
            self._conflicts = {key: row for key, row in self._conflicts.items() if key[:2] not in places}
        self._conflicts |= {_key_of(row): _store(row) for row in outcome.conflicts}

    def note_waiting(self, position: str) -> None:
        """Take note that there is nothing to do."""
        now = current_millis()
        self._status = replace(self._status, phase=Phase.FOLLOWING, position=position, level_at=now, failures=0)
        self._save(is_urgent=False)

    def _note_failure(self, kind: str, detail: str) -> None:
        before = self._status
        self._status = replace(
            before,
            phase=Phase.FAILING,
            failures=before.failures + 1,
            errors=before.errors + 1,
            last_error=kind,
            last_detail=detail[:500],
        )
        if before.phase is not Phase.FAILING:
            _logger.warning("replication fails", replication=self._replication.name, kind=kind, reason=detail[:500])
        self._save(is_urgent=before.phase is not Phase.FAILING)

    def _save(self, *, is_urgent: bool) -> None:
        """Write the status where it says something new, from the node that applies changes, and not too often."""
        if _without_times(self._status) == _without_times(self._saved):
            return
        if not is_urgent and time.monotonic() - self._saved_at < _SAVE_SECONDS:
            return
        with suppress(SteleError):
            if self.claim():
                self._bridge.run(documents.save_status(self._registry, self._replication.name, self._status))
            self._saved, self._saved_at = self._status, time.monotonic()


def _without_times(status: ReplicationStatus) -> ReplicationStatus:
    """Return what is worth a record of the log; a position alone is not."""
    return replace(
        status, position="", level_at=0, failures=0, errors=0 if status.phase is Phase.FAILING else status.errors
    )


def _make_auth(other: OtherRegistry) -> httpx.Auth | tuple[str, str] | None:
    if other.token:
        return Bearer(other.token)
    return (other.user, other.password) if other.user else None


def _key_of(row: ReplicationConflict) -> tuple[str, str, int]:
    return row.namespace, row.subject, row.version


def _store(row: ReplicationConflict) -> StoredConflict:
    return StoredConflict(row.namespace, row.subject, row.version, row.code.value, row.why)
