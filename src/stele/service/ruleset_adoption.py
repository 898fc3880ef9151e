"""Which versions of rulesets decide in a registry, and how a registry takes over others."""

from __future__ import annotations

import asyncio

from stele.core.commands import AdoptRulesets
from stele.formats import rulesets
from stele.formats.registry import get_format
from stele.service.registry import Registry
from stele.service.rulesets import newest_versions


async def adopted_versions(registry: Registry) -> dict[tuple[str, str], int]:
    """Versions of rulesets by format and bare name that decide in a registry; of all others it is the first.

    A registry in which nothing was written yet has those it will begin with: the newest installed.
    """
    state = await registry.fresh_state()
    if state.seq > 0:
        return dict(state.rulesets)
    return {(fmt, name): version for fmt, name, version in await asyncio.to_thread(newest_versions)}


async def adopt_ruleset(registry: Registry, format_name: str, ruleset: str, *, via: str = "") -> None:
    """Judge by a ruleset's version from now on; a bare name means the newest one.

    Raises `UnknownFormat`, `UnknownRuleset` for what is not installed here, `ReadOnly`.
    """
    fmt = get_format(format_name)
    name, version = rulesets.split_ruleset(rulesets.newest_ruleset(fmt, ruleset))
    assert version is not None
    await registry.execute(AdoptRulesets(((fmt.name, name, version),)), via=via)
