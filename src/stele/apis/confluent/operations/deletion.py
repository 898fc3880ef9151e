"""Deleting versions: not those an association needs, and with a warning where records of them were seen.

The warning stands in a header, because the bodies of these answers are the API's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from stele.apis.confluent.associations import STRONG
from stele.apis.confluent.errors import NoActiveVersion, SubjectOwned, SubjectTaken
from stele.apis.confluent.names import qualify_subject
from stele.apis.confluent.operations.schemas import Operations
from stele.core import queries
from stele.core.commands import Command, DeletedVersions, DeleteMode, DeleteSubject, DeleteVersion
from stele.core.model import Binding, SubjectKey, Version
from stele.core.state import State
from stele.service.retry import retry_when_overtaken
from stele.service.usage import DeletionWarning

WARNING: Final = "Stele-Warning"
"""Header with ASCII sentences, at most `_LONGEST_WARNING` characters; absent where no census saw records."""
_LONGEST_WARNING: Final = 1000  # characters; proxies bear 4 KiB and more


async def delete_subject(
    operations: Operations, subject: SubjectKey, mode: DeleteMode
) -> tuple[tuple[int, ...], dict[str, str]]:
    """Delete all versions of a subject that no association needs.

    Returns:
        The numbers of the deleted versions, and the headers that warn of records seen with them.

    Raises:
        SubjectTaken: The subject has an association and an active version.
        SteleError: What the deletion raises.
    """

    def decide(state: State) -> Command:
        seen = queries.bindings_of(state, [subject])
        if _associations(seen) and queries.latest_version(state.find_subject(subject)) is not None:
            raise SubjectTaken(qualify_subject(subject))
        return DeleteSubject(subject, mode, seen)

    return await _delete(operations, subject, decide)


async def delete_version(
    operations: Operations, subject: SubjectKey, number: int | None, mode: DeleteMode
) -> tuple[tuple[int, ...], dict[str, str]]:
    """Delete one version, None for the latest; the last active one only where no association needs it.

    Returns:
        See `delete_subject`.

    Raises:
        SubjectOwned: A strong association needs the version.
        NoActiveVersion: A weak association needs it.
        SteleError: What the deletion raises.
    """

    def decide(state: State) -> Command:
        seen = queries.bindings_of(state, [subject])
        active = queries.list_versions(state.find_subject(subject))
        associations = _associations(seen)
        is_last = len(active) == 1 and number in (None, active[0].version_number)
        if associations and is_last and mode is DeleteMode.SOFT:
            is_owned = any(row.lifecycle == STRONG for row in associations)
            raise SubjectOwned(qualify_subject(subject)) if is_owned else NoActiveVersion(qualify_subject(subject))
        return DeleteVersion(subject, number, mode, seen)

    return await _delete(operations, subject, decide)


async def _delete(
    operations: Operations, subject: SubjectKey, decide: Callable[[State], Command]
) -> tuple[tuple[int, ...], dict[str, str]]:
    warnings = DeletionWarnings(await operations.registry.fresh_state(), subject)

    async def attempt(state: State) -> DeletedVersions:
        outcome = await operations.execute(decide(state))
        assert isinstance(outcome, DeletedVersions)
        return outcome

    outcome = await retry_when_overtaken(operations.registry, attempt)
    return outcome.version_numbers, warnings.headers(operations, outcome.version_numbers)


def _associations(bindings: Iterable[Binding]) -> list[Binding]:
    """The bindings that are associations: those of other dialects have no resource id, nobody could end them here."""
    return [row for row in bindings if row.resource_id]


class DeletionWarnings:
    """The versions a subject has before a deletion; made before it, and asked for the header afterwards."""

    def __init__(self, state: State, subject: SubjectKey) -> None:
        self._rows: list[Version] = queries.list_versions(state.find_subject(subject), queries.ACTIVE_OR_SOFT_DELETED)

    def headers(self, operations: Operations, deleted: Iterable[int]) -> dict[str, str]:
        """Return the header for the versions that were deleted; none where no census saw records of them."""
        numbers = set(deleted)
        rows = [row for row in self._rows if row.version_number in numbers]
        warnings = operations.usage.list_warnings(operations.registry.state, rows)
        return {WARNING: _join_warnings(warnings)} if warnings else {}


def _join_warnings(warnings: list[DeletionWarning]) -> str:
    """Join warnings by semicolons; those that would make the header too long are only counted."""
    joined = ""
    for position, warning in enumerate(warnings):
        more = ("; " if joined else "") + warning.message.encode("ascii", "backslashreplace").decode()
        if len(joined) + len(more) > _LONGEST_WARNING:
            rest = f"and {len(warnings) - position} more"
            return f"{joined}; {rest}" if joined else f"{more[: _LONGEST_WARNING - len(rest) - 5]}... {rest}"
        joined += more
    return joined
