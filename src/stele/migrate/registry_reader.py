"""Reads a live registry over HTTP: Stele, Confluent, Redpanda, Karapace, Apicurio's Confluent API.

What a make does not support is read in another way or left out. `/schemas` is fast; reading versions one by one always
works. Nothing is written to the source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar
from uuid import uuid4

import msgspec

from stele.client import SchemaRegistryClient
from stele.client.names import split_subject
from stele.client.request import ParamValue, Request, build_path, build_query, encode_body, json_decoder
from stele.core.metadata import Metadata
from stele.errors import InvalidRequest, NotFound, SteleError, TooLarge
from stele.migrate import extras_reader, model
from stele.migrate.dependency_order import sort_by_dependency
from stele.migrate.model import DEFAULT_CONTEXT, DEFAULT_LEVEL, Dump, DumpVersion
from stele.migrate.pages import PAGE, read_pages
from stele.migrate.progress import Progress, report_nothing
from stele.protocol.confluent import Config, LevelConfig, LevelConfigsRequest, RuleSet, SchemaReference

T = TypeVar("T")
A = TypeVar("A")

MAX_VERSIONS = 20_000_000
"""Highest number of versions that a registry may list. Reading stops with `TooLarge` beyond it."""
_AT_ONCE = 4
"""Highest number of concurrent requests."""
_EVERYWHERE = ":*:"


class ShownVersion(msgspec.Struct, frozen=True, rename="camel"):
    """A version in the responses of registries. Members that other makes and releases add are ignored."""

    subject: str = ""
    version: int = 0
    id: int = 0
    schema: str = ""
    schema_type: str | None = None
    references: list[SchemaReference] | None = None
    metadata: Metadata | None = None
    rule_set: RuleSet | None = None
    max_id: int | None = None
    ts: int | None = None
    aliases: list[str] | None = None
    deleted: bool | None = None

    def to_version(self, *, deleted: bool) -> DumpVersion:
        """Return the version in its normal form."""
        return model.normalize_version(
            self.subject,
            self.version,
            self.id,
            self.schema,
            schema_type=self.schema_type,
            references=self.references,
            metadata=self.metadata,
            rule_set=self.rule_set,
            deleted=deleted,
            ts=self.ts,
        )


_shown = json_decoder(ShownVersion)
_list = json_decoder(list[ShownVersion])
_config = json_decoder(Config)
_settings = json_decoder(list[LevelConfig])


def read_registry(
    client: SchemaRegistryClient, progress: Progress = report_nothing, *, levels: Iterable[str] = ()
) -> Dump:
    """Return all data of a registry.

    No list contains subjects with settings but without a version or an alias; `levels` names those to read in addition.
    The registry should not be written meanwhile; the mode READONLY prevents it. Raises `ResponseError`,
    `RegistryUnreachable`.
    """
    client.forget()
    contexts = _read_contexts(client)
    versions, aliases, unshown = _read_versions(client, progress)
    contexts = sorted({*contexts, *(row.context for row in versions)})
    dump = Dump(sort_by_dependency(versions), contexts=tuple(contexts), max_ids=_read_max_ids(client, versions))
    all_levels = sorted({*dump.levels(), *aliases, *levels}, key=model.level_rank)
    configs, modes = _read_settings(client, all_levels, progress)
    extras, notes = extras_reader.read_extras(client, contexts, progress)
    return msgspec.structs.replace(dump, configs=configs, modes=modes, extras=extras, notes=(*unshown, *notes))


def subject_path(subject: str) -> str:
    """Return a subject as it is written in a path. A subject without a name is written with its context."""
    return subject or ":.:"


def config_path(level: str) -> str:
    """Return the path of a level's settings."""
    return build_path("config", level) if level else "/config"


def read_versions(client: SchemaRegistryClient, progress: Progress = report_nothing) -> list[DumpVersion]:
    """Return all versions of a registry, unsorted, and nothing else. Raises the errors of `read_registry`."""
    client.forget()
    return _read_versions(client, progress)[0]


def read_subject_versions(client: SchemaRegistryClient, subjects: Iterable[str]) -> list[DumpVersion]:
    """Return the versions of some subjects, deleted ones too. Raises the errors of `read_registry`."""
    client.forget()
    return _read_one_by_one(client, sorted(set(subjects)), report_nothing)[0]


# --- versions -------------------------------------------------------------------------------------------------------


def _read_contexts(client: SchemaRegistryClient) -> list[str]:
    # Apicurio writes contexts as prefixes of subjects, `:.:`.
    return [name.strip(":") for name in _unless_missing(client.contexts, [DEFAULT_CONTEXT])]


def _read_versions(client: SchemaRegistryClient, progress: Progress) -> tuple[list[DumpVersion], set[str], list[str]]:
    """Return all versions, the subjects that are aliases, and notes on versions that are listed but not returned."""
    listed = _unless_missing(lambda: _list_versions(client, deleted=True, progress=progress), None)
    if listed is None:
        versions, notes = _read_one_by_one(client, _list_subjects(client), progress)
        return versions, set(), notes
    # The second list is not needed if the first one shows for each version whether it is deleted.
    says_it = all(row.deleted is not None for row in listed)
    rows = listed if says_it else _list_versions(client, deleted=False, progress=progress)
    live = {(row.subject, row.version) for row in rows if not row.deleted}
    versions = [row.to_version(deleted=(row.subject, row.version) not in live) for row in listed]
    unlisted = sorted(set(_list_subjects(client)) - {row.subject for row in versions})
    aliases = {alias for row in listed for alias in row.aliases or ()}
    rest, notes = _read_one_by_one(client, unlisted, progress)
    return versions + rest, aliases, notes


def _list_subjects(client: SchemaRegistryClient) -> list[str]:
    return client.subjects(deleted=True)


def _list_versions(client: SchemaRegistryClient, *, deleted: bool, progress: Progress) -> list[ShownVersion]:
    """Return the versions of all pages of `/schemas`."""

    def ask_page(offset: int) -> list[ShownVersion]:
        parameters: dict[str, ParamValue] = {
            "subjectPrefix": _EVERYWHERE,
            "aliases": True,
            "deleted": deleted,
            "offset": offset,
            "limit": PAGE,
        }
        page = client.send(Request("GET", "/schemas", _list, build_query(parameters)))
        if any(not row.version for row in page):
            raise NotFound("a list of schemas without their subjects and numbers")  # Apicurio 3.3
        return page

    versions: list[ShownVersion] = []
    for rows in read_pages(ask_page, lambda row: (row.subject, row.version)):
        versions += rows
        progress("listed", len(versions), None)
        if len(versions) > MAX_VERSIONS:
            raise TooLarge(f"the registry lists more than {MAX_VERSIONS} versions")
    return versions


def _read_one_by_one(
    client: SchemaRegistryClient, subjects: list[str], progress: Progress
) -> tuple[list[DumpVersion], list[str]]:
    def numbers(subject: str, *, deleted: bool) -> list[int]:
        named = subject_path(subject)
        return _unless_missing(lambda: client.versions(named, deleted=deleted), [])

    def of_subject(subject: str) -> list[DumpVersion | str]:
        live = set(numbers(subject, deleted=False))
        return [
            _read_version(client, subject, number)
            if number in live
            else _unless_missing(
                lambda: _read_version(client, subject, number, deleted=True),  # noqa: B023 - called at once
                f"{subject} version {number} is listed as deleted but cannot be read: it is not imported",
            )
            for number in numbers(subject, deleted=True)
        ]

    results = [row for rows in _map_in_pool(of_subject, subjects, "read", progress) for row in rows]
    return [row for row in results if isinstance(row, DumpVersion)], [row for row in results if isinstance(row, str)]


def _read_version(client: SchemaRegistryClient, subject: str, number: int, *, deleted: bool = False) -> DumpVersion:
    route = build_path("subjects", subject_path(subject), "versions", number)
    version = client.send(
        Request("GET", route, _shown, build_query({"deleted": True}), subject=subject, version=str(number))
    )
    if split_subject(version.subject or subject) != split_subject(subject):
        raise InvalidRequest(f"{subject} is an alias of {version.subject}: remove the alias to read its own versions")
    return msgspec.structs.replace(version, subject=subject, version=number).to_version(deleted=deleted)


def _read_max_ids(client: SchemaRegistryClient, versions: Iterable[DumpVersion]) -> dict[str, int]:
    """Return the highest id that each context ever assigned.

    A context is left out if the server does not return its highest id, or if a version still has that id.
    """
    highest: dict[str, int] = {}
    for row in versions:
        highest[row.context] = max(row.id, highest.get(row.context, 0))
    max_ids: dict[str, int] = {}
    for context, schema_id in highest.items():
        parameters = build_query({"subject": model.context_level(context) or None, "fetchMaxId": True})
        route = build_path("schemas", "ids", schema_id)
        max_id = _unless_missing(lambda: client.send(Request("GET", route, _shown, parameters)).max_id, None)  # noqa: B023 - called at once
        if max_id is not None and max_id > schema_id:
            max_ids[context] = max_id
    return max_ids


# --- settings -------------------------------------------------------------------------------------------------------


def _read_settings(
    client: SchemaRegistryClient, levels: list[str], progress: Progress
) -> tuple[dict[str, Config], dict[str, str]]:
    """Return settings and modes by level. Values that even an unused level returns are defaults, and are left out."""
    probed_levels = [f"stele-probe-{uuid4().hex}", *levels]
    settings = _unless_missing(lambda: _read_settings_at_once(client, probed_levels, progress), None)
    if settings is None:
        settings = _map_in_pool(
            lambda level: (_own_config(client, level), _own_mode(client, level)),
            probed_levels,
            "read settings of",
            progress,
        )
    config_of_all, mode_of_all = settings[0]
    settings_by_level = dict(zip(levels, settings[1:], strict=True))
    configs = {level: own for level, (own, _) in settings_by_level.items() if own is not None}
    modes = {level: own for level, (_, own) in settings_by_level.items() if own is not None}
    if modes.get(DEFAULT_LEVEL) == "READWRITE":
        del modes[DEFAULT_LEVEL]  # the value that is returned when no mode is set
    return (
        {level: own for level, own in configs.items() if level == DEFAULT_LEVEL or own != config_of_all},
        {level: own for level, own in modes.items() if level == DEFAULT_LEVEL or own != mode_of_all},
    )


def _read_settings_at_once(
    client: SchemaRegistryClient, levels: list[str], progress: Progress
) -> list[tuple[Config | None, str | None]]:
    """Return the settings and the mode of each level, many per request. Only Stele supports this."""
    settings: list[tuple[Config | None, str | None]] = []
    for start in range(0, len(levels), PAGE):
        body = encode_body(LevelConfigsRequest(levels[start : start + PAGE]))
        rows = client.send(Request("POST", "/config:batchGet", _settings, body=body))
        if [row.level for row in rows] != levels[start : start + PAGE]:
            raise NotFound("settings of the levels that were asked for")
        settings += [(model.normalize_config(row.config) if row.config else None, row.mode or None) for row in rows]
        progress("read settings of", len(settings), len(levels))
    return settings


def _own_config(client: SchemaRegistryClient, level: str) -> Config | None:
    config = _unless_missing(lambda: client.send(Request("GET", config_path(level), _config, subject=level)), None)
    return model.normalize_config(config) if config is not None else None


def _own_mode(client: SchemaRegistryClient, level: str) -> str | None:
    return _unless_missing(lambda: client.mode(level or None), None) or None


# --- shared ---------------------------------------------------------------------------------------------------------


def _unless_missing(ask: Callable[[], T], otherwise: A) -> T | A:
    """Return the result of `ask`, or `otherwise` when the server has no such object or no such route."""
    try:
        return ask()
    except NotFound:
        return otherwise
    except SteleError as error:
        if getattr(error, "status", None) == 405:  # a route with other methods
            return otherwise
        raise


def _map_in_pool(work: Callable[[A], T], items: list[A], verb: str, progress: Progress) -> list[T]:
    """Return the results in the order of the items, computed by a few threads."""
    results: list[T] = []
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for result in pool.map(work, items):
            results.append(result)
            progress(verb, len(results), len(items))
    return results
