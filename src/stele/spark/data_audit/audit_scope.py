"""The registry's data on the schema ids that are in the records. They are loaded on the driver."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import msgspec
import pyarrow as pa

from stele.client import ResolvedSchema, SchemaSnapshot, endpoints
from stele.client.names import qualify_subject, split_subject
from stele.errors import DataError, Invalid, NotFound, SubjectNotFound
from stele.spark.data_audit.data_stats import AuditContext
from stele.spark.data_audit.subject_evolution import SubjectEvolution, load_evolutions, miss_evolutions
from stele.spark.engines import get_engine
from stele.spark.registry import PATIENCE, RegistryLike, as_picklable, get_client, retry_unavailable
from stele.spark.wires import WireLike, get_wire

SubjectLike: TypeAlias = "str | Sequence[str]"
"""A subject, or several subjects whose records are mixed; '' or an empty list if the subject is unknown."""


class VersionLocation(msgspec.Struct, frozen=True):
    """A subject and version under which a schema is registered. Its text is `orders-value v3`."""

    subject: str
    version: int

    def __str__(self) -> str:
        return f"{self.subject} v{self.version}"


class AuditedVersion(msgspec.Struct, frozen=True):
    """A version of an audited subject.

    hidden       it was soft-deleted: its schema can still be read
    referred_by  ids of schemas that refer to it
    """

    subject: str
    version: int
    schema: ResolvedSchema
    hidden: bool = False
    newest: bool = False
    referred_by: tuple[int, ...] = ()

    @property
    def location(self) -> VersionLocation:
        """Its subject and version number."""
        return VersionLocation(self.subject, self.version)


@dataclass(frozen=True, slots=True)
class AuditScope:
    """The context of an audit, and the versions of its subjects, oldest first."""

    context: AuditContext
    versions: tuple[AuditedVersion, ...]

    def find_schema(self, name: str) -> tuple[ResolvedSchema | None, str]:
        """Return the schema of an id and '', or None and the reason why there is none."""
        frame = self.context
        key: Any = int(name) if pa.types.is_integer(frame.wire.id_type) else name
        try:
            resolved = frame.wire.resolve_id(key, frame.make_lookup())
        except (DataError, Invalid) as error:
            return None, f"{frame.wire.id_label} {name} cannot be read: {error}"
        return (resolved.schema, "") if resolved else (None, f"unknown {frame.wire.id_label} {name}")

    def matching_versions(self, schema: ResolvedSchema) -> list[AuditedVersion]:
        """Return the audited versions that have this schema."""
        return [version for version in self.versions if _is_same_schema(version.schema, schema)]

    def find_locations(self, schema: ResolvedSchema) -> list[VersionLocation]:
        """Return the audited versions that have this schema, or if there are none, its locations in other subjects."""
        return [version.location for version in self.matching_versions(schema)] or self._find_other_locations(schema)

    def load_evolutions(self) -> tuple[SubjectEvolution, ...]:
        """Return the histories of the audited subjects, as far as the registry has them."""
        registry = self.context.registry
        subjects = [version.subject for version in self.versions]
        if isinstance(registry, SchemaSnapshot):
            return miss_evolutions(subjects, "a snapshot holds no history")
        client = get_client(registry)
        return load_evolutions(
            lambda request: retry_unavailable(partial(client.send, request), self.context.patience), subjects
        )

    def _find_other_locations(self, schema: ResolvedSchema) -> list[VersionLocation]:
        registry = self.context.registry
        if isinstance(registry, SchemaSnapshot) or not schema.id:
            return [VersionLocation(schema.subject, schema.version)] if schema.subject else []
        context = split_subject(self.context.subject).context
        request = endpoints.versions_of_id(schema.id, subject=qualify_subject("", context) or None, deleted=True)
        with suppress(NotFound):
            places = retry_unavailable(lambda: get_client(registry).send(request), self.context.patience)
            return [VersionLocation(place.subject, place.version) for place in places]
        return []


def load_scope(
    registry: RegistryLike,
    subject: SubjectLike,
    *,
    wire: WireLike = "confluent",
    message: str = "",
    patience: float = PATIENCE,
    engine: str = "auto",
) -> AuditScope:
    """Load the subjects' versions, including deleted ones, and the ids of schemas that refer to them.

    Raises `SubjectNotFound`, `RegistryUnreachable`, `Invalid` for subjects of several contexts or an unknown wire or
    engine.
    """
    get_engine(engine)
    registry = as_picklable(registry)
    names = [subject] if isinstance(subject, str) else list(subject)
    names = [name for name in names if name]
    if len({split_subject(name).context for name in names}) > 1:
        raise Invalid("the subjects are in several contexts, where the same id names different schemas")
    versions = [version for name in names for version in _load_versions(registry, name, patience)]
    snapshot = SchemaSnapshot(tuple(version.schema for version in versions))
    if isinstance(registry, SchemaSnapshot):
        snapshot = registry
    frame = AuditContext(registry, get_wire(wire), names[0] if names else "", snapshot, message, patience, engine)
    return AuditScope(frame, tuple(versions))


def _load_versions(registry: RegistryLike, subject: str, patience: float) -> Iterable[AuditedVersion]:
    if isinstance(registry, SchemaSnapshot):
        mine = sorted((schema for schema in registry.schemas if schema.subject == subject), key=lambda it: it.version)
        if not mine:
            raise SubjectNotFound(subject)
        return [AuditedVersion(subject, it.version, it, newest=it is mine[-1]) for it in mine]
    return retry_unavailable(lambda: _fetch_versions(registry, subject), patience)


def _fetch_versions(registry: Any, subject: str) -> list[AuditedVersion]:
    client = get_client(registry)
    context = split_subject(subject).context
    numbers: list[int] = client.send(endpoints.versions(subject, deleted=True))
    live: list[int] = []
    with suppress(NotFound):  # all versions are deleted
        live = client.send(endpoints.versions(subject))
    versions = []
    for number in numbers:
        registered = client.send(endpoints.version(subject, number, deleted=True))
        schema = client.resolve(registered.id, context=context)
        named = msgspec.structs.replace(schema, id=registered.id, subject=subject, version=number, guid=registered.guid)
        referring: list[int] = []
        with suppress(NotFound):  # this registry has no such endpoint
            referring = client.send(endpoints.referenced_by(subject, number))
        hidden = number not in live
        newest = number == max(live, default=0)
        versions.append(AuditedVersion(subject, number, named, hidden, newest, tuple(referring)))
    return versions


def _is_same_schema(one: ResolvedSchema, other: ResolvedSchema) -> bool:
    if one.id and other.id:
        return (one.context, one.id) == (other.context, other.id)
    if one.guid and other.guid:
        return one.guid == other.guid
    return (one.schema_type, one.text, one.references) == (other.schema_type, other.text, other.references)
