"""Import of the versions of a plan. Their subjects are in IMPORT mode meanwhile.

The result is read from the registry at the end: a version does not count as written only because no error was reported.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from stele.apis.http.requests import time_limit
from stele.core import queries
from stele.core.access import Operation, Resource, subject_resource
from stele.core.commands import SetMode
from stele.core.model import Mode, SettingsLevel, SubjectKey
from stele.errors import InvalidName, SteleError
from stele.protocol.confluent import ImportedVersion
from stele.service.policies import parse_level_name
from stele.ui.pages import PageRequest
from stele.ui.work.register import VIA

if TYPE_CHECKING:
    from stele.migrate.model import DumpVersion

_AT_ONCE: Final = 200
"""Number of versions that are sent together."""
_SHARE_OF_LIMIT: Final = 0.7
"""Share of the time limit of a request during which versions are sent."""
_RIGHTS: Final = (Operation.REGISTER, Operation.IMPORT, Operation.CHANGE_POLICY, Operation.FORCE)
"""Rights that the caller needs on a subject. IMPORT mode changes its policy, and is forced because it has versions."""


class ImportRun(NamedTuple):
    """What an import did.

    refused  message of the registry about a refused version, by subject and number
    stopped  why the import ended before the last version; '' if it did not
    open     subjects that are still in IMPORT mode, because setting the mode back failed
    """

    refused: Mapping[tuple[str, int], str]
    stopped: str
    open: Sequence[str]


def parse_subject(name: str) -> SubjectKey:
    """Return the subject of a version in a dump. Raises `InvalidName`."""
    level = parse_level_name(name)
    if level.namespace is None or level.subject is None:
        raise InvalidName(name, "names no subject")
    return SubjectKey(level.namespace, level.subject)


def _list_rights(rows: Sequence[DumpVersion]) -> Iterator[tuple[Operation, Resource]]:
    """Yield the rights that an import needs, subject by subject. Raises `InvalidName`."""
    deleting = {row.subject for row in rows if row.deleted}
    for name in dict.fromkeys(row.subject for row in rows):
        resource = subject_resource(parse_subject(name))
        yield from ((right, resource) for right in _RIGHTS)
        if name in deleting:
            yield Operation.DELETE, resource


def find_refusal(page: PageRequest, rows: Sequence[DumpVersion]) -> str:
    """Return why the caller may not import some of these versions; '' if the caller may import all.

    Raises `InvalidName`.
    """
    refusals = (page.find_refusal(right, resource) for right, resource in _list_rights(rows))
    return next(filter(None, refusals), "")


def require_rights(page: PageRequest, rows: Sequence[DumpVersion]) -> None:
    """Raise `Forbidden` or `Unauthenticated` unless the caller may import all of these versions.

    Raises `InvalidName` as well.
    """
    if not page.registry.access.is_open:
        for right, resource in _list_rights(rows):
            page.registry.access.require(right, resource)


async def import_versions(page: PageRequest, rows: Sequence[DumpVersion]) -> ImportRun:
    """Write versions with their numbers and ids, each after those it refers to, as `POST /subjects:import` does.

    Subjects in READWRITE mode are in IMPORT mode meanwhile. A subject that takes no registrations keeps its mode, and
    its versions are refused. A cancelled import sets the modes back, too.
    """
    clock = asyncio.get_running_loop().time
    deadline = clock() + time_limit(page.request) * _SHARE_OF_LIMIT
    refused: dict[tuple[str, int], str] = {}
    before: dict[SettingsLevel, Mode | None] = {}
    left: list[str] = []
    stopped = ""
    try:
        for start in range(0, len(rows), _AT_ONCE):
            part = rows[start : start + _AT_ONCE]
            if clock() > deadline:
                stopped = "The time for one request is over."
                break
            await _open_subjects(page, part, before)
            answer = await page.options.import_versions(page.registry, [_make_row(row) for row in part])
            refused |= {(row.name, row.number): row.message for row in answer}
    except SteleError as error:
        stopped = str(error)
    finally:
        left = await asyncio.shield(_close_subjects(page, before))
    return ImportRun(refused, stopped, left)


def _make_row(row: DumpVersion) -> ImportedVersion:
    return ImportedVersion(
        row.subject,
        row.version,
        row.id,
        row.schema,
        row.schema_type,
        list(row.references),
        row.metadata,
        row.rule_set,
        row.deleted,
        row.ts,
    )


async def _open_subjects(
    page: PageRequest, rows: Sequence[DumpVersion], before: dict[SettingsLevel, Mode | None]
) -> None:
    """Set subjects from READWRITE to IMPORT mode, and add the modes of their own to `before`. Raises `SteleError`."""
    state = await page.registry.fresh_state()
    levels = {SettingsLevel(*parse_subject(row.subject)) for row in rows} - before.keys()
    closed = sorted(level for level in levels if queries.mode_for(state, level) is Mode.READWRITE)
    before |= {level: state.mode_at(level) for level in closed}
    changes = (page.registry.execute(SetMode(level, Mode.IMPORT, force=True), via=VIA) for level in closed)
    for result in await asyncio.gather(*changes, return_exceptions=True):  # All changes have ended before one raises.
        if isinstance(result, BaseException):
            raise result


async def _close_subjects(page: PageRequest, before: Mapping[SettingsLevel, Mode | None]) -> list[str]:
    """Set the modes back; return the subjects where that failed."""
    results = await asyncio.gather(
        *(page.registry.execute(SetMode(level, mode), via=VIA) for level, mode in before.items()),
        return_exceptions=True,
    )
    state = page.registry.state
    return [
        f":.{level.namespace}:{level.subject}" if level.namespace else str(level.subject)
        for level, result in zip(before, results, strict=True)
        if isinstance(result, BaseException) and state.mode_at(level) is Mode.IMPORT
    ]
