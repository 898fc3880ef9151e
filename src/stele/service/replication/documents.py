"""Replications that a server runs: documents in the log with their definitions, and how far each one is."""

from __future__ import annotations

import re
import time
from enum import StrEnum
from typing import Final
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from stele.core.access import REGISTRY_RESOURCE, Operation
from stele.core.state import State
from stele.errors import AlreadyExists, InvalidName, InvalidRequest, NotFound, TooLarge
from stele.protocol.replication import SettingsScope
from stele.service import collections
from stele.service.collections import Changes, Items
from stele.service.delivery.status import find_lease, forget_lease
from stele.service.registry import Registry
from stele.service.subject_patterns import Renaming

COLLECTION: Final = "replications"
STATUS: Final = "replications.status"
_LEASE: Final = "replication/"
HIDDEN: Final = "[hidden]"
"""Replaces a secret in answers."""
MOST_REPLICATIONS: Final = 100
MOST_CONFLICTS: Final = 100
"""Maximum number of conflicts that are kept for a replication."""
_VIA: Final = "replication"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z")
_MOST_PATTERNS: Final = 1000


class ReplicationDirection(StrEnum):
    """Direction in which versions are copied."""

    PULL = "pull"
    """From the other registry to this one."""
    PUSH = "push"
    """From this registry to the other one."""


class RegistryKind(StrEnum):
    """Product or API of the other registry, which determines how it is accessed."""

    STELE = "stele"
    CONFLUENT = "confluent"
    """Any registry with the Confluent API."""
    CNCF = "cncf"
    """A server of the CNCF Schema Registry API 0.2; only to pull from."""
    XREGISTRY = "xregistry"
    """A server of xRegistry 1.0 with the schema extension; only to pull from."""
    APICURIO = "apicurio"
    """An Apicurio registry, by its own API; only to pull from. `confluent` is for its Confluent API."""


PUSH_KINDS: Final = frozenset({RegistryKind.STELE, RegistryKind.CONFLUENT})
"""Kinds of registries that replicas can be pushed to."""


class RunState(StrEnum):
    """Whether a replication runs."""

    RUNNING = "running"
    PAUSED = "paused"


class Phase(StrEnum):
    """Activity of a replication."""

    STARTING = "starting"
    FOLLOWING = "following"
    """The target had everything that the source had at the last check."""
    FAILING = "failing"
    """The last attempt failed; there will be another one."""


class OtherRegistry(msgspec.Struct, frozen=True, omit_defaults=True):
    """The registry at the other end.

    Attributes:
        url: Its address, without credentials.
        kind: Its kind.
        user: User name, '' for none.
        password: Password of the user; answers hide it.
        token: Bearer token, '' for none; answers hide it.
        authority: URI that is the authority of its schemas; '' for the one that it reports itself, or its address.
    """

    url: str
    kind: RegistryKind = RegistryKind.STELE
    user: str = ""
    password: str = ""
    token: str = ""
    authority: str = ""


class Replication(msgspec.Struct, frozen=True):
    """Definition of a replication.

    Attributes:
        name: Its name: letters, digits, `.`, `_`, `-`.
        direction: Direction in which versions are copied.
        registry: The registry at the other end.
        subjects: Patterns of subjects: `orders-*`, `:.namespace:name`, `:*:name`; the names at the source.
        rename: Format of names of subjects at the target; `${subject}` is the name at the source.
        namespace: Format of names of namespaces at the target; `${namespace}` is the name at the source.
        poll_seconds: Interval in seconds at which a registry that does not report changes is polled.
        state: Whether it runs.
        settings: Whose settings are replicated.
    """

    name: str
    direction: ReplicationDirection
    registry: OtherRegistry
    subjects: tuple[str, ...] = (":*:",)
    rename: str = "${subject}"
    namespace: str = "${namespace}"
    poll_seconds: float = 1.0
    state: RunState = RunState.RUNNING
    settings: SettingsScope = SettingsScope.SUBJECTS

    def require_valid(self) -> None:
        """Raise `InvalidRequest` or `InvalidName` for an invalid definition."""
        if not _NAME.match(self.name):
            raise InvalidName(self.name[:120], "is not a name of a replication: use letters, digits, `.`, `_` and `-`")
        parts = urlsplit(self.registry.url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise InvalidRequest("the url of a registry must begin with http:// or https:// and have a host")
        if "@" in parts.netloc or parts.query or parts.fragment:
            raise InvalidRequest(
                "the url of a registry must not contain credentials: use the members user, password and token"
            )
        if not self.subjects or len(self.subjects) > _MOST_PATTERNS:
            raise InvalidRequest(f"subjects must have 1 to {_MOST_PATTERNS} patterns; `:*:` matches everything")
        if not 0.1 <= self.poll_seconds <= 86_400:
            raise InvalidRequest("poll_seconds must be between 0.1 and 86400")
        if self.direction is ReplicationDirection.PUSH and self.registry.kind not in PUSH_KINDS:
            raise InvalidRequest(f"a registry of kind {self.registry.kind} can only be a source")
        Renaming(self.rename, self.namespace).require_valid()

    def hide_secrets(self) -> Replication:
        """Return the replication as answers show it, without secrets."""
        registry = self.registry
        redacted_registry = replace(registry, password=registry.password and HIDDEN, token=registry.token and HIDDEN)
        return replace(self, registry=redacted_registry)


class StoredConflict(msgspec.Struct, frozen=True):
    """A version that cannot be replicated: its place at the target, a `ConflictCode`, and an explanation."""

    namespace: str
    subject: str
    version: int
    code: str
    why: str


class ReplicationStatus(msgspec.Struct, frozen=True, omit_defaults=True):
    """How far a replication is.

    Attributes:
        phase: Its activity.
        position: Position among the changes of the source; '' where it has none.
        registered: Total number of versions that were registered at the target.
        removed: Total number of versions that were deleted there.
        mapped: Total number of versions that got another schema id there.
        settings: Total number of levels whose settings were changed there.
        same: Versions that were already there at the last full comparison.
        failures: Failed attempts since the last success.
        errors: Total number of failed attempts.
        last_error: Kind of the last failure; '' for none.
        last_detail: Message of the last failure.
        level_at: When the target last had everything that the source had (milliseconds since 1970 UTC).
        changed_at: When something was last replicated.
        conflicts: The first conflicts.
        conflict_count: Number of all conflicts.
        began_at: When it first ran.
    """

    phase: Phase = Phase.STARTING
    position: str = ""
    registered: int = 0
    removed: int = 0
    mapped: int = 0
    settings: int = 0
    same: int = 0
    failures: int = 0
    errors: int = 0
    last_error: str = ""
    last_detail: str = ""
    level_at: int = 0
    changed_at: int = 0
    conflicts: tuple[StoredConflict, ...] = ()
    conflict_count: int = 0
    began_at: int = 0

    def measure_lag(self, now: float | None = None) -> float:
        """Return for how many seconds the target has lacked something that the source has; 0 while it follows."""
        if self.phase is Phase.FOLLOWING:
            return 0.0
        since = self.level_at or self.began_at
        return max((time.time() if now is None else now) - since / 1000, 0.0) if since else 0.0


class ReplicationOverview(msgspec.Struct, frozen=True):
    """A replication without its secrets, how far it is, its lag in seconds, and the node that runs it ('' for none)."""

    replication: Replication
    status: ReplicationStatus
    lag_seconds: float
    node: str = ""


_document = msgspec.json.Decoder(Replication)
_status = msgspec.json.Decoder(ReplicationStatus)


def decode_replication(text: bytes) -> Replication:
    """Return a stored replication."""
    return _document.decode(text)


def find_status(state: State, name: str) -> ReplicationStatus:
    """Return how far a replication is."""
    collection = state.collections.get(STATUS)
    text = None if collection is None else collection.items.get((name,))
    return ReplicationStatus() if text is None else _status.decode(text)


def list_statuses(state: State) -> dict[str, ReplicationStatus]:
    """Return how far each existing replication is that ever ran, by name."""
    collection = state.collections.get(STATUS)
    return {} if collection is None else {key[0]: _status.decode(text) for key, text in collection.items.items()}


def name_lease(name: str) -> str:
    """Return the name of the lease of a replication."""
    return f"{_LEASE}{name}"


def find_node(state: State, name: str) -> str:
    """Return the node that applies the changes of a replication; '' where none does."""
    lease = find_lease(state, name_lease(name))
    return "" if lease is None else lease.node


async def save_status(registry: Registry, name: str, status: ReplicationStatus) -> None:
    """Write how far a replication is, unless the replication was deleted."""

    def change(items: Items) -> tuple[Changes, None]:
        return {(name,): msgspec.json.encode(status)}, None

    if (name,) in collections.items_in(registry, registry.state, COLLECTION):
        await collections.edit_collection(registry, STATUS, change, via=_VIA)


# --- managing ---------------------------------------------------------------------------------------------------------


async def create_replication(registry: Registry, wanted: Replication) -> ReplicationOverview:
    """Add a replication, which starts at once unless it is paused.

    Raises:
        AlreadyExists: A replication of that name exists.
        InvalidName: The name is invalid.
        InvalidRequest: The definition is invalid.
        TooLarge: The registry has its maximum number of replications.
        Forbidden: The caller may not import into, or export from, the whole registry.
    """
    wanted.require_valid()
    right = Operation.IMPORT if wanted.direction is ReplicationDirection.PULL else Operation.EXPORT
    registry.access.require(right, REGISTRY_RESOURCE)

    def change(items: Items) -> tuple[Changes, None]:
        if (wanted.name,) in items:
            raise AlreadyExists(f"the replication '{wanted.name}' already exists: delete it first")
        if len(items) >= MOST_REPLICATIONS:
            raise TooLarge(f"a registry has at most {MOST_REPLICATIONS} replications")
        return {(wanted.name,): msgspec.json.encode(wanted)}, None

    await collections.edit_collection(registry, COLLECTION, change, via=_VIA)
    return _describe(registry.state, wanted)


async def list_replications(registry: Registry) -> list[ReplicationOverview]:
    """Return all replications, by name."""
    items = await collections.read_collection(registry, COLLECTION)
    return [_describe(registry.state, decode_replication(text)) for _, text in sorted(items.items())]


async def get_replication(registry: Registry, name: str) -> ReplicationOverview:
    """Return one replication. Raises `NotFound`."""
    return _describe(registry.state, _require(await collections.read_collection(registry, COLLECTION), name))


async def set_run_state(registry: Registry, name: str, state: RunState) -> ReplicationOverview:
    """Pause or resume a replication. Raises `NotFound`."""

    def change(items: Items) -> tuple[Changes, Replication]:
        changed = replace(_require(items, name), state=state)
        return {(name,): msgspec.json.encode(changed)}, changed

    return _describe(registry.state, await collections.edit_collection(registry, COLLECTION, change, via=_VIA))


async def delete_replication(registry: Registry, name: str) -> None:
    """Delete a replication. What it copied is kept. Raises `NotFound`."""

    def change(items: Items) -> tuple[Changes, None]:
        _require(items, name)
        return {(name,): None}, None

    def forget(items: Items) -> tuple[Changes, None]:
        return ({(name,): None} if (name,) in items else {}), None

    await collections.edit_collection(registry, COLLECTION, change, via=_VIA)
    await collections.edit_collection(registry, STATUS, forget, via=_VIA)
    await forget_lease(registry, name_lease(name))


def _require(items: Items, name: str) -> Replication:
    text = items.get((name,))
    if text is None:
        raise NotFound(f"There is no replication '{name}'.")
    return decode_replication(text)


def _describe(state: State, replication: Replication) -> ReplicationOverview:
    status = find_status(state, replication.name)
    node = find_node(state, replication.name) if replication.state is RunState.RUNNING else ""
    return ReplicationOverview(replication.hide_secrets(), status, round(status.measure_lag(), 3), node)
