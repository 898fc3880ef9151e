"""Imports what a target lacks of a source, through the IMPORT mode of its API.

Contexts to write are put into IMPORT mode, which excludes all other writers. Then versions are registered, and deleted
ones deleted at once. Then follow reserved ids, keys, associations and exporters, settings, and at the end the modes of
the source. Every step can be repeated, and the remaining work is read from the target. So after a failure the same call
continues. Stele imports many versions at once, with their times; other registries import one after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from stele.client import SchemaRegistryClient
from stele.client.request import Effect, Request, build_path, encode_body, ignore_body, json_decoder
from stele.errors import AlreadySoftDeleted, Conflict, Invalid, NotFound, Refused, SteleError
from stele.migrate.compare import Comparison, Difference, DifferenceKind, compare_dumps
from stele.migrate.extras import Item, MigratedAssociation, MigratedDek, MigratedExporter, MigratedKek, RegistryExtras
from stele.migrate.model import (
    DEFAULT_LEVEL,
    REGISTRY_LEVEL,
    Dump,
    DumpVersion,
    context_level,
    context_of,
    is_context,
    level_rank,
    placeholder_version,
)
from stele.migrate.progress import Progress, report_nothing
from stele.migrate.registry_reader import config_path, read_registry, subject_path
from stele.protocol.confluent import Config, ImportRefusal, ImportResponse, RegisterSchemaRequest

IMPORT = "IMPORT"
CHUNK = 500
"""Highest number of versions in one request."""
_CHUNK_BYTES = 4 * 1024 * 1024
"""Highest number of bytes of their texts, unless a single text is longer."""


class Refusal(msgspec.Struct, frozen=True):
    """A version or level that the target refused, and its message."""

    name: str
    version: int | None
    why: str


class ImportConflict(Conflict):
    """Raised when source and target have different data under one number or id.

    Nothing was changed; `comparison` has the differences.
    """

    def __init__(self, comparison: Comparison) -> None:
        first = comparison.conflicts[0]
        super().__init__(
            f"{len(comparison.conflicts)} versions contradict what the target has, the first of them "
            f"{first.name} version {first.version}, id {first.id} ({first.kind}: {first.why}); nothing was changed"
        )
        self.comparison = comparison


class ImportInterrupted(SteleError):
    """Raised when an import ended early.

    The target is left in IMPORT mode, closed to other writers. Running the same import again continues it.
    """

    def __init__(self, levels: Iterable[str], why: SteleError) -> None:
        names = ", ".join(level or "the default context" for level in levels) or "nothing"
        super().__init__(f"{why}. Stopped half-way; left in IMPORT mode: {names}. Run the same import again to go on")
        self.why = why


def plan_import(
    source: Dump, client: SchemaRegistryClient, *, modes: bool = True, progress: Progress = report_nothing
) -> Comparison:
    """Return what an import would do, or, after one, the remaining differences. Only reads."""
    return compare_dumps(source, read_registry(client, progress, levels=source.levels()), modes=modes)


def apply_import(
    source: Dump, client: SchemaRegistryClient, *, modes: bool = True, progress: Progress = report_nothing
) -> list[Refusal]:
    """Import everything that the target lacks, and return what the target refuses.

    A refusal does not stop the import.
    Raises `ImportConflict` before anything is written, and `ImportInterrupted` when the target stops answering.
    """
    there = read_registry(client, progress, levels=source.levels())
    comparison = compare_dumps(source, there, modes=modes)
    if comparison.conflicts:
        raise ImportConflict(comparison)
    wanted = source if modes else msgspec.structs.replace(source, modes={})
    work = _Import(wanted, there, comparison, client, progress)
    try:
        work.run_import()
    except SteleError as error:
        raise ImportInterrupted(work.importing, error) from error
    return work.refusals


_imported = json_decoder(ImportResponse)


class VersionWriter:
    """Writes versions with their numbers and ids into subjects that are in IMPORT mode.

    Args:
        client: Sends requests to the target.
    """

    def __init__(self, client: SchemaRegistryClient) -> None:
        self._client = client
        self._bulk = True

    def write_versions(self, rows: list[DumpVersion]) -> list[Refusal]:
        """Register versions, and delete those that are deleted in the source.

        This is done one by one if the target has no bulk import.
        Returns what the target refuses. Raises `SteleError` where it does not answer.
        """
        refused = self.send_bulk_import({"versions": rows}) if self._bulk else None
        if refused is None:
            self._bulk = False
            steps = (self.send_requests(row.subject, row.version, _version_requests(row)) for row in rows)
            return [refusal for step in steps for refusal in step]
        return [Refusal(row.name, row.number, row.message) for row in refused]

    def delete_version(self, subject: str, version: int) -> list[Refusal]:
        """Delete a version permanently. A version that is deleted already is no refusal."""
        requests = [_deletion_request(subject, version), _deletion_request(subject, version, query="permanent=true")]
        return self.send_requests(subject, version, requests)

    def send_bulk_import(self, body: dict[str, Any]) -> list[ImportRefusal] | None:
        """Return what the target refuses of a bulk import; None when it has no such route."""
        request = Request("POST", "/subjects:import", _imported, body=encode_body(body), effect=Effect.WRITE)
        try:
            return self._client.send(request).refused
        except NotFound:
            return None
        except SteleError as error:
            if getattr(error, "status", None) == 405:
                return None
            raise

    def send_requests(self, name: str, version: int | None, requests: Iterable[Request[Any]]) -> list[Refusal]:
        """Send requests until the target refuses one, and return the refusal."""
        try:
            for request in requests:
                self._send_request(request)
        except (NotFound, Invalid, Conflict, Refused) as error:
            return [Refusal(name, version, str(error))]
        return []

    def _send_request(self, request: Request[Any]) -> None:
        try:
            self._client.send(request)
        except (NotFound, AlreadySoftDeleted):
            if request.method != "DELETE":  # The version may be deleted already.
                raise


class _Import:
    """One run of an import."""

    def __init__(
        self, source: Dump, there: Dump, comparison: Comparison, client: SchemaRegistryClient, progress: Progress
    ) -> None:
        self._source = source
        self._there = there
        self._comparison = comparison
        self._client = client
        self._progress = progress
        self._versions = {row.key: row for row in source.versions}
        self._filling = sorted(
            {row.name for row in comparison.of_kinds(DifferenceKind.REGISTER, DifferenceKind.DELETE)}
        )
        lacking = {(row.why.partition(":")[0], row.name) for row in comparison.of_kinds(DifferenceKind.BESIDE)}
        self._items = [row for row in source.extras.items() if (row.key[0], " ".join(row.key[1:])) in lacking]
        self._aliased = [name for name in self._filling if name in there.configs and there.configs[name].alias]
        self._configuring = self._levels_to_configure()
        self._writer = VersionWriter(client)
        self._done = 0
        self._steps = sum(row.kind not in (DifferenceKind.EXTRA, DifferenceKind.TIME) for row in comparison.differences)
        self.importing: list[str] = []
        self.refusals: list[Refusal] = []

    def run_import(self) -> None:
        """Run all steps in their order."""
        self._open_levels()
        for rows in _split_chunks(self._versions[row.name, row.version or 0] for row in self._differing_versions()):
            self.refusals += self._writer.write_versions(rows)
            self._count_steps(len(rows))
        for row in self._comparison.of_kinds(DifferenceKind.RESERVE):
            self._send_step(row.name, None, _reserve_id_requests(row.name, row.id or 1))
        for start in range(0, len(self._items), CHUNK):
            self._import_extras(self._items[start : start + CHUNK])
        self._write_settings()

    def _differing_versions(self) -> Iterator[Difference]:
        return self._comparison.of_kinds(DifferenceKind.REGISTER, DifferenceKind.DELETE)

    # --- many at once -------------------------------------------------------------------------------------------------

    def _import_extras(self, items: list[Item]) -> None:
        body = RegistryExtras(
            tuple(row for row in items if isinstance(row, MigratedKek)),
            tuple(row for row in items if isinstance(row, MigratedDek)),
            tuple(row for row in items if isinstance(row, MigratedAssociation)),
            tuple(row for row in items if isinstance(row, MigratedExporter)),
        )
        refused = self._writer.send_bulk_import(msgspec.structs.asdict(body))
        if refused is None:
            why = "the target accepts keys, associations and exporters only from their users"
            self.refusals += [Refusal(" ".join(row.key), None, why) for row in items]
        else:
            self.refusals += [Refusal(f"{row.kind} {row.name}", row.number or None, row.message) for row in refused]
        self._count_steps(len(items))

    def _count_steps(self, steps: int) -> None:
        self._done += steps
        self._progress("import", self._done, max(self._steps, self._done))

    # --- modes before and after ---------------------------------------------------------------------------------------

    def _open_levels(self) -> None:
        """Put all contexts and subjects to write into IMPORT mode, and remove aliases that would redirect writes."""
        subjects = {*self._filling, *(row.level for row in self._items)}
        contexts = {context_of(subject) for subject in subjects}
        contexts |= {row.name for row in self._comparison.of_kinds(DifferenceKind.RESERVE)}
        levels = [context_level(context) for context in sorted(contexts)]
        levels += [subject for subject in sorted(subjects) if subject in self._there.modes]
        levels += [level for level in self._configuring if self._is_closed(level)]
        if levels and self._there.modes.get(DEFAULT_LEVEL) == "READONLY_OVERRIDE":
            levels.insert(0, DEFAULT_LEVEL)
        for level in dict.fromkeys(levels):
            self._client.set_mode(IMPORT, level or None, force=True)
            self.importing.append(level)
        for subject in self._aliased:
            self._client.send(_config_change(subject, {"alias": None}))

    def _is_closed(self, level: str) -> bool:
        """Return whether the current modes would refuse a change of a level's settings."""
        places = (level, context_level(context_of(level)), REGISTRY_LEVEL)
        return any(self._there.modes.get(place, "READWRITE") not in {"READWRITE", IMPORT} for place in places)

    def _levels_to_configure(self) -> list[str]:
        """Return the levels whose settings differ; all levels if a context differs, since lower ones inherit."""
        differing = {row.name for row in self._comparison.of_kinds(DifferenceKind.CONFIG)} | set(self._aliased)
        if any(is_context(level) for level in differing):
            differing |= set(self._source.configs)
        return sorted(differing, key=level_rank)

    def _write_settings(self) -> None:
        """Write settings, then modes, as in the source.

        The modes of lower levels come first, since the mode of a higher one may forbid changing them.
        """
        for level in self._configuring:
            self._send_step(level, None, [self._config_request(level)])
        ending = {*self.importing, *(row.name for row in self._comparison.of_kinds(DifferenceKind.MODE))}
        for level in sorted(ending, key=level_rank, reverse=True):
            self._send_step(level, None, [self._mode_request(level)])
        self.importing = []

    def _config_request(self, level: str) -> Request[Any]:
        own = self._source.configs.get(level)
        if own is None:
            return Request("DELETE", config_path(level), ignore_body, effect=Effect.WRITE, subject=level)
        return _config_change(level, _config_body(own))

    def _mode_request(self, level: str) -> Request[Any]:
        body = encode_body({"mode": self._source.modes.get(level)})
        route = build_path("mode", level) if level else "/mode"
        return Request("PUT", route, ignore_body, "force=true", body, effect=Effect.WRITE, subject=level)

    # --- steps --------------------------------------------------------------------------------------------------------

    def _send_step(self, name: str, version: int | None, requests: Iterable[Request[Any]]) -> None:
        """Send requests. A refusal of the target ends this step only."""
        self.refusals += self._writer.send_requests(name, version, requests)
        self._count_steps(1)


def _split_chunks(rows: Iterable[DumpVersion]) -> Iterator[list[DumpVersion]]:
    chunk: list[DumpVersion] = []
    size = 0
    for row in rows:
        if chunk and (len(chunk) == CHUNK or size + len(row.schema) > _CHUNK_BYTES):
            yield chunk
            chunk, size = [], 0
        chunk.append(row)
        size += len(row.schema)
    if chunk:
        yield chunk


def _version_requests(row: DumpVersion) -> Iterator[Request[Any]]:
    """Yield the requests that register a version, and delete it if it is deleted in the source.

    The versions that refer to it come later. In IMPORT mode an existing version is not registered again.
    """
    yield _registration_request(row)
    if row.deleted:
        yield _deletion_request(row.subject, row.version)


def _reserve_id_requests(context: str, schema_id: int) -> Iterator[Request[Any]]:
    """Yield the requests that reserve an id in a context, by a version that is deleted at once."""
    row = placeholder_version(context, schema_id)
    yield _registration_request(row)
    yield _deletion_request(row.subject, 1)
    yield _deletion_request(row.subject, 1, query="permanent=true")


def _config_change(level: str, update: dict[str, Any]) -> Request[Any]:
    return Request("PUT", config_path(level), ignore_body, body=encode_body(update), effect=Effect.WRITE, subject=level)


def _registration_request(row: DumpVersion) -> Request[Any]:
    body = RegisterSchemaRequest(
        row.schema,
        row.schema_type,
        list(row.references),
        row.metadata,
        row.rule_set,
        version=row.version,
        id=row.id,
    )
    route = build_path("subjects", subject_path(row.subject), "versions")
    return Request("POST", route, ignore_body, body=encode_body(body), effect=Effect.WRITE, subject=row.subject)


def _deletion_request(subject: str, version: int, query: str = "") -> Request[Any]:
    # Deleting a version by its number can be repeated: the second response is that it does not exist.
    route = build_path("subjects", subject_path(subject), "versions", version)
    return Request("DELETE", route, ignore_body, query, effect=Effect.WRITE, subject=subject, version=str(version))


def _config_body(own: Config) -> dict[str, Any]:
    """Return the body that replaces all settings of a level."""
    members: dict[str, Any] = dict.fromkeys(Config.__struct_encode_fields__)
    members |= msgspec.to_builtins(own)
    members["compatibility"] = members.pop("compatibilityLevel")
    if own.stele_compatibility is None:
        del members["steleCompatibility"]  # the level expresses the policy
    return members
