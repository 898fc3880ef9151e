"""Deletion of versions. With its last version, the incarnation of a subject ends."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from stele.core import queries
from stele.core.commands import Command, DeleteMode, DeleteSubject, DeleteVersion, Outcome
from stele.core.model import Version
from stele.core.state import State
from stele.service.registry import Registry
from stele.service.retry import retry_when_overtaken


async def delete_version_or_incarnation(
    registry: Registry, execute: Callable[[Command], Awaitable[Outcome]], find_version: Callable[[State], Version]
) -> Version:
    """Soft-delete one version; with the last active one the incarnation of its subject ends.

    Args:
        registry: Registry that holds the version.
        execute: Executes a command in the caller's name.
        find_version: Finds the version in a state; called again when another writer was faster.

    Returns:
        The version as it was before.

    Raises:
        InUse: Another schema refers to the version.
        SteleError: What `find_version` raises.
    """

    async def delete(state: State) -> Version:
        version = find_version(state)
        key, number = version.subject.key, version.version_number
        if queries.list_versions(version.subject) == [version]:
            await execute(DeleteSubject(key, DeleteMode.END_INCARNATION, expected_latest=number))
        else:
            await execute(DeleteVersion(key, number, DeleteMode.SOFT))
        return version

    return await retry_when_overtaken(registry, delete)
