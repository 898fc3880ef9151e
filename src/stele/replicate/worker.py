"""Replications of a server: a thread for each running one, on every node. One node at a time applies changes.

Every node detects changes. Each replication has its own lease, so several nodes share the work. If there are changes,
the node with the lease applies them. The others compare again until nothing is left, and take the lease if there is no
progress. A node that fails releases the lease, since another node may reach a registry that it cannot reach.
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
from stele.errors import Conflict, SteleError
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
from stele.service.registry import Registry
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
from stele.service.times import current_millis

_SAVE_SECONDS: Final = 1.0
"""Shortest time in seconds between two writes of the status while changes arrive."""
_FIRST_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 30.0
_IDLE_SECONDS: Final = 5.0
"""Seconds between two checks for changed documents, besides after each record: a test may have emptied the log."""
_NEW_WAIT_SECONDS: Final = 3.0
"""Seconds without a request for the lease after which a node restarts its waiting time.

It had nothing to do meanwhile.
"""
_ONE_TRY: Final = Retry(rounds=1)
_COUNTS: Final = ("registered", "removed", "mapped", "settings")
"""The counts that a status and an outcome have in common."""

_logger = structlog.get_logger("stele.replication")


class LeaseLost(Conflict):
    """Raised when another node has taken the lease during the work."""


class ReplicationManager:
    """Runs the replications of one node until it is cancelled.

    Args:
        registry: Registry of the node.
        base: Base URI of the registry: its authority.
        client: Sends requests to other registries; it allows long responses and long waits.
    """

    def __init__(self, registry: Registry, base: str, client: OutgoingClient) -> None:
        self._registry = registry
        self._base = base
        self._client = client
        self._workers: dict[str, tuple[bytes, _Worker]] = {}
        self._seen: tuple[State | None, int] = (None, 0)

    async def run(self) -> None:
        """Run the replications in the documents until cancelled."""
        try:
            while True:
                with suppress(SteleError):
                    await self._follow_documents()
                await self._registry.wait_for_record(self._registry.state.seq + 1, _IDLE_SECONDS)
        finally:
            workers = [worker for _, worker in self._workers.values()]
            for worker in workers:
                worker.stop()
            await asyncio.gather(*(worker.end() for worker in workers), return_exceptions=True)

    async def _follow_documents(self) -> None:
        """Start a worker for each new replication, restart those of changed ones, and stop the others."""
        state = self._registry.state
        collection = state.collections.get(COLLECTION)
        revision = (state, 0 if collection is None else collection.revision)
        if revision == self._seen:
            return
        items = await collections.read_collection(self._registry, COLLECTION)
        texts = {name: bytes(text) for (name,), text in items.items()}
        for name, (text, worker) in list(self._workers.items()):
            if texts.get(name) != text:
                worker.stop()
                await worker.end()
                del self._workers[name]
        for name, text in texts.items():
            replication = documents.decode_replication(text)
            if name not in self._workers and replication.state is RunState.RUNNING:
                bridge = LoopBridge(asyncio.get_running_loop())
                worker = _Worker(self._registry, self._base, replication, bridge, self._client)
                self._workers[name] = (text, worker)
                worker.start()
        self._seen = revision


class _Worker:
    """Runs one replication in its own thread."""

    def __init__(
        self,
        registry: Registry,
        base: str,
        replication: Replication,
        bridge: LoopBridge,
        client: OutgoingClient,
    ) -> None:
        self._registry = registry
        self._base = base
        self._replication = replication
        self._lease = LeaseHolder(registry, documents.name_lease(replication.name), registry.node_name)
        self._renewal: asyncio.Task[None] | None = None
        self._is_applying = False
        self._bridge = bridge
        self._client = client
        self._thread = threading.Thread(target=self._run, name=f"stele-replicate-{replication.name}", daemon=True)
        self._status = _note_begin(documents.find_status(registry.state, replication.name))
        self._saved = self._status
        self._unsaved_errors = 0
        self._saved_at = 0.0
        self._asked_at = 0.0
        self._conflicts: dict[tuple[str, str, int], StoredConflict] = {}

    def start(self) -> None:
        """Start; call this in the event loop of the registry."""
        self._renewal = asyncio.create_task(self._renew_lease())
        self._thread.start()

    def stop(self) -> None:
        """Stop soon. Running calls are cancelled."""
        self._bridge.stop()
        if self._renewal is not None:
            self._renewal.cancel()

    async def end(self) -> None:
        """Release the lease, so that another node can continue at once. Call this after `stop`."""
        with suppress(SteleError):
            await self._lease.release()

    async def _renew_lease(self) -> None:
        """Renew the lease while changes are applied: one request to a target may take longer than other nodes wait."""
        while True:
            await asyncio.sleep(RENEWAL_SECONDS / 2)
            with suppress(SteleError):
                if self._is_applying:
                    await self._lease.hold(takes_over=False)

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
                    # An unexpected error must not end a replication. It is logged and shown, and the work is tried
                    # again.
                    _logger.error("replication failed", replication=self._replication.name, exc_info=error)
                    self._note_failure("internal_error", type(error).__name__)
                self._is_applying = False
                if self._lease.is_held():
                    self._bridge.run(self.end())
                self._bridge.sleep(min(_FIRST_PAUSE * 2 ** min(self._status.failures - 1, 10), _LONGEST_PAUSE))

    def _follow(self) -> None:
        replication = self._replication
        source, target = self._open_ends()
        try:
            renaming = Renaming(replication.rename, replication.namespace)
            scope = Scope(replication.subjects, renaming, replication.settings)
            replicator = Replicator(source, target, scope, self._require_lease)
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
        """Return whether this node applies the changes, until `note_pass`."""
        self._is_applying = self._take_lease(takes_over=True)
        return self._is_applying

    def _take_lease(self, *, takes_over: bool) -> bool:
        now = time.monotonic()
        if now - self._asked_at > _NEW_WAIT_SECONDS:
            self._lease.begin_to_wait()
        self._asked_at = now
        was_held = self._lease.is_held()
        if not self._bridge.run(self._lease.hold(takes_over=takes_over)):
            return False
        if not was_held:
            self._adopt_counts()
        return True

    def _adopt_counts(self) -> None:
        """Continue with the counts of other nodes."""
        stored = documents.find_status(self._registry.state, self._replication.name)
        counts = (*_COUNTS, "changed_at")
        errors = stored.errors + self._unsaved_errors
        began_at = stored.began_at or self._status.began_at
        counters = {name: getattr(stored, name) for name in counts}
        self._status = replace(self._status, errors=errors, began_at=began_at, **counters)

    def _require_lease(self, verb: str, done: int, total: int | None) -> None:
        if not self._take_lease(takes_over=False):
            raise LeaseLost("another node has taken over the work")

    def sleep(self, seconds: float) -> None:
        """Wait. Raises `Stopped`."""
        self._bridge.sleep(seconds)

    def note_part(self, outcome: ReplicationOutcome) -> None:
        """Add the counts of what was applied, so that they are kept if the rest fails."""
        counts = {name: getattr(self._status, name) + getattr(outcome, name) for name in _COUNTS}
        self._status = replace(self._status, **counts)

    def note_pass(self, outcome: ReplicationOutcome, subjects: frozenset[SubjectName] | None) -> None:
        """Record that target and source are equal."""
        self._is_applying = False
        before = self._status
        self._keep_conflicts(outcome, subjects)
        rows = tuple(self._conflicts.values())
        now = current_millis()
        is_change = bool(outcome.registered or outcome.removed or outcome.settings)
        self._status = replace(
            before,
            phase=Phase.FOLLOWING,
            position=outcome.position,
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
        """Replace the conflicts of the subjects that were compared again."""
        if subjects is None:
            self._conflicts.clear()
        else:
            renaming = Renaming(self._replication.rename, self._replication.namespace)
            places = {tuple(renaming.rename_subject(SubjectKey(*place))) for place in subjects}
            self._conflicts = {key: row for key, row in self._conflicts.items() if key[:2] not in places}
        self._conflicts |= {_key_of(row): _store(row) for row in outcome.conflicts}

    def note_waiting(self, position: str) -> None:
        """Record that there is nothing to apply at present."""
        now = current_millis()
        self._status = replace(self._status, phase=Phase.FOLLOWING, position=position, level_at=now, failures=0)
        self._save(is_urgent=False)

    def _note_failure(self, kind: str, detail: str) -> None:
        before = self._status
        self._unsaved_errors += 1
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
        """Write the status if it has changed, from the node that applies changes, and not too often.

        The status of a working node has priority. A failure is written once. A success is written until the stored
        status shows it.
        """
        stored = documents.find_status(self._registry.state, self._replication.name)
        is_failing = self._status.phase is Phase.FAILING
        if _without_times(self._status) == _without_times(self._saved if is_failing else stored):
            return
        if not is_urgent and time.monotonic() - self._saved_at < _SAVE_SECONDS:
            return
        with suppress(SteleError):
            if self._take_lease(takes_over=is_failing or stored.phase is not Phase.FOLLOWING):
                self._bridge.run(documents.save_status(self._registry, self._replication.name, self._status))
                self._saved = self._status
                self._unsaved_errors = 0
            self._saved_at = time.monotonic()


def _note_begin(status: ReplicationStatus) -> ReplicationStatus:
    """Return the status with the start time now, unless it has one already."""
    return status if status.began_at else replace(status, began_at=current_millis())


def _without_times(status: ReplicationStatus) -> ReplicationStatus:
    """Return the parts of a status whose change is worth a record in the log. A new position alone is not."""
    return replace(
        status,
        position="",
        level_at=0,
        began_at=0,
        failures=0,
        errors=0 if status.phase is Phase.FAILING else status.errors,
    )


def _make_auth(other: OtherRegistry) -> httpx.Auth | tuple[str, str] | None:
    if other.token:
        return Bearer(other.token)
    return (other.user, other.password) if other.user else None


def _key_of(row: ReplicationConflict) -> tuple[str, str, int]:
    return row.namespace, row.subject, row.version


def _store(row: ReplicationConflict) -> StoredConflict:
    return StoredConflict(row.namespace, row.subject, row.version, row.code.value, row.why)
