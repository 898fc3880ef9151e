"""Access control of a server: the rules in its log and in the files that the settings name."""

from __future__ import annotations

import asyncio

from stele.apis.confluent import acls
from stele.apis.pravega.acl_file import parse_acl_file
from stele.server.settings import ServerSettings
from stele.service.access_rules import RegistryAccess, RuleFile, require_manager
from stele.service.registry import Registry

_LOOK_SECONDS = 1.0
"""Seconds between two checks of the files for changes."""


def make_access(registry: Registry, settings: ServerSettings) -> RegistryAccess:
    """Return the access control of a registry.

    Raises `InvalidRequest` for an invalid file of rules, and where no principal could manage access.
    """
    files = [RuleFile(settings.access_rules)] if settings.access_rules else []
    if settings.pravega_acl:
        files.append(RuleFile(settings.pravega_acl, parse_acl_file))
    access = RegistryAccess(
        registry,
        readers={acls.COLLECTION: acls.read_rules},
        files=files,
        default_allow=settings.access == "allow",
        super_users=frozenset(settings.super_users),
    )
    require_manager(access)
    return access


async def follow_files(access: RegistryAccess) -> None:
    """Read files with rules again whenever they change, until the task is cancelled."""
    while True:
        await asyncio.sleep(_LOOK_SECONDS)
        access.read_files()
