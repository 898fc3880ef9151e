"""The references from and to a subject, and all subjects of a namespace with their references.

Behind `GET /api/neighbours/{subject}` and `GET /api/atlas`; `stele.pictures` draws the answers. They hold only subjects
that the caller may read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from stele.core import queries
from stele.core.access import Operation, subject_resource
from stele.core.model import Subject, SubjectKey, Version, VersionState
from stele.core.state import State
from stele.core.traversal import find_version
from stele.protocol.history import (
    MOST_DEPTH,
    MOST_NEIGHBOURS,
    MOST_SUBJECTS,
    NamespaceAtlas,
    Neighbourhood,
    SubjectNode,
    SubjectReference,
)
from stele.service.registry import Registry

CanRead = Callable[[SubjectKey], bool]


async def get_neighbourhood(
    registry: Registry, key: SubjectKey, version_number: int | None = None, *, depth: int = 1
) -> Neighbourhood:
    """Return a subject with the subjects that it refers to and those that refer to it.

    The first are references of one version of it; the second are references to any of its active versions.

    Args:
        registry: The node.
        key: The subject in the middle.
        version_number: The version in the middle; None: the newest active one.
        depth: How many references are followed in each direction, from 1 to `MOST_DEPTH`.

    Raises:
        SteleError: `SubjectNotFound`, `VersionNotFound`, `Forbidden`, `Unauthenticated`.
    """
    registry.access.require(Operation.READ, subject_resource(key))
    state = await registry.fresh_state()
    states = queries.ACTIVE_ONLY if version_number is None else queries.ACTIVE_OR_SOFT_DELETED
    center = queries.get_version(state, key, version_number, states)
    surroundings = _Surroundings(registry, center)
    depth = min(depth, MOST_DEPTH)
    for distance in range(1, depth + 1):
        surroundings.add_used(-distance)
        await surroundings.add_users(distance)
    nodes = sorted(surroundings.nodes.values(), key=lambda node: (node.distance != 0, node.distance, node.name))
    known = set(surroundings.nodes)
    return Neighbourhood(
        center=surroundings.nodes[key],
        nodes=tuple(nodes),
        references=tuple(
            sorted(
                (row for row in surroundings.references.values() if {row.user, row.used} <= known),
                key=lambda row: (row.user, row.used),
            )
        ),
        depth=depth,
        omitted=len(surroundings.omitted),
    )


async def get_atlas(
    registry: Registry, namespace: str, *, after: str = "", limit: int = MOST_SUBJECTS
) -> NamespaceAtlas:
    """Return the subjects of a namespace that have an active version, and the references of their newest versions.

    Args:
        registry: The node.
        namespace: '' for the default one. One that does not exist has no subjects.
        after: Name of the subject after which to continue; '' begins with the first one.
        limit: Maximum number of subjects.
    """
    state = await registry.fresh_state()
    place = state.find_namespace(namespace)
    can_read = registry.access.make_filter(Operation.READ)
    names = sorted(place.subjects) if place is not None else []
    versions: dict[tuple[str, str], Version] = {}
    omitted = 0
    async for name in registry.time_slices.iterate(name for name in names if name > after or not after):
        key = SubjectKey(namespace, name)
        newest = queries.latest_version(registry.state.find_subject(key))
        if newest is None or not can_read(key):
            continue
        if len(versions) < min(limit, MOST_SUBJECTS):
            versions[key] = newest
        else:
            omitted += 1
    nodes = tuple(_make_node(version.subject, version, 0) for version in versions.values())
    references = [
        _make_reference(registry.state, version, used)
        for version in versions.values()
        for used, _ in _list_used(registry.state, version)
        if used.subject.key in versions
    ]
    return NamespaceAtlas(namespace, nodes, tuple(references), omitted)


class _Use(NamedTuple):
    """A version that is referred to, and the version that refers to it."""

    used: Version
    user: Version


class _Surroundings:
    """Collects subjects around one, ring by ring."""

    def __init__(self, registry: Registry, center: Version) -> None:
        self._registry = registry
        self._can_read: CanRead = registry.access.make_filter(Operation.READ)
        self.nodes: dict[tuple[str, str], SubjectNode] = {center.subject.key: _make_node(center.subject, center, 0)}
        self.references: dict[tuple[tuple[str, str], tuple[str, str]], SubjectReference] = {}
        self.omitted: set[SubjectKey] = set()
        self._used_ring = [center]
        self._user_ring = [center.subject]

    def add_used(self, distance: int) -> None:
        """Add the subjects to which the versions of the last ring refer."""
        ring: dict[SubjectKey, Version] = {}
        for user in self._used_ring:
            for used, _ in _list_used(self._registry.state, user):
                if self._add(used.subject, used, distance):
                    ring[used.subject.key] = used
                self._connect(_Use(used, user))
        self._used_ring = list(ring.values())

    async def add_users(self, distance: int) -> None:
        """Add the subjects that refer to a subject of the last ring, each with its newest version that does."""
        ring: dict[SubjectKey, Subject] = {}
        for used in self._user_ring:
            newest: dict[SubjectKey, _Use] = {}
            state = self._registry.state
            rows = (
                _Use(version, user)
                for version in queries.list_versions(used)
                for user in queries.list_referrers(state, used.key, version.version_number)
            )
            async for use in self._registry.time_slices.iterate(rows):
                known = newest.get(use.user.subject.key)
                if known is None or _recency(use) > _recency(known):
                    newest[use.user.subject.key] = use
            for key, use in sorted(newest.items()):
                if self._add(use.user.subject, use.user, distance):
                    ring[key] = use.user.subject
                self._connect(use)
        self._user_ring = list(ring.values())

    def _add(self, subject: Subject, version: Version, distance: int) -> bool:
        """Add a subject, and return whether it is new."""
        key = subject.key
        if key in self.nodes or not self._can_read(key):
            return False
        if len(self.nodes) >= MOST_NEIGHBOURS:
            self.omitted.add(key)
            return False
        self.nodes[key] = _make_node(subject, version, distance)
        return True

    def _connect(self, use: _Use) -> None:
        reference = _make_reference(self._registry.state, use.user, use.used)
        self.references.setdefault((reference.user, reference.used), reference)


def _recency(use: _Use) -> tuple[int, int]:
    return use.user.version_number, use.used.version_number


def _list_used(state: State, user: Version) -> list[_Use]:
    """Return the versions that a version refers to. Each subject occurs once, with the newest of these versions."""
    versions: dict[SubjectKey, Version] = {}
    for reference in user.schema.attachments.references:
        subject = state.find_subject(reference.key)
        used = None if subject is None else find_version(subject, reference.version_number)
        if used is None:
            continue
        known = versions.get(reference.key)
        if known is None or used.version_number > known.version_number:
            versions[reference.key] = used
    return [_Use(used, user) for used in versions.values()]


def _make_node(subject: Subject, version: Version, distance: int) -> SubjectNode:
    newest = queries.latest_version(subject)
    return SubjectNode(
        namespace=subject.key.namespace,
        subject=subject.key.name,
        version=version.version_number,
        latest=newest.version_number if newest is not None else 0,
        versions=sum(row.state is VersionState.ACTIVE for row in subject.versions),
        format=version.kind.custom_format or version.kind.format,
        distance=distance,
    )


def _make_reference(state: State, user: Version, used: Version) -> SubjectReference:
    newest = queries.latest_version(used.subject)
    newest_user = queries.latest_version(user.subject)
    refers_still = newest_user is None or any(
        use.used.subject is used.subject for use in _list_used(state, newest_user)
    )
    return SubjectReference(
        user=user.subject.key,
        user_version=user.version_number,
        used=used.subject.key,
        used_version=used.version_number,
        stale=newest is not None and used.version_number < newest.version_number,
        past=not refers_still,
    )
