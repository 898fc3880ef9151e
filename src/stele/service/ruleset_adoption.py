"""The versions of rulesets that decide in a registry, and how a registry adopts other versions."""

from __future__ import annotations

import asyncio

from stele.core.commands import AdoptRulesets
from stele.formats import rulesets
from stele.formats.registry import get_format
from stele.service.registry import Registry
from stele.service.rulesets import newest_versions


async def adopted_versions(registry: Registry) -> dict[tuple[str, str], int]:
    """Return the versions of rulesets that decide in a registry, by format and bare name.

    For a ruleset that is not listed, version 1 decides. A registry without any record has the versions with which it
    will start: the newest installed ones.
    """
    state = await registry.fresh_state()
    if state.seq > 0:
        return dict(state.rulesets)
    return {(fmt, name): version for fmt, name, version in await asyncio.to_thread(newest_versions)}


async def adopt_ruleset(registry: Registry, format_name: str, ruleset: str, *, via: str = "") -> None:
    """Adopt a version of a ruleset, which decides from now on. A bare name means its newest version.

    Raises `UnknownFormat`, `UnknownRuleset` for what is not installed here, `ReadOnly`.
    """
    fmt = get_format(format_name)
    name, version = rulesets.split_ruleset(rulesets.newest_ruleset(fmt, ruleset))
    assert version is not None
    await registry.execute(AdoptRulesets(((fmt.name, name, version),)), via=via)
