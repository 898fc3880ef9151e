"""The server: its settings and their origin, its APIs, rulesets, policies and licences."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec

from stele import __version__
from stele.apis.http.access import NO_RIGHT_NEEDED, Place, access
from stele.core.access import Operation, level_resource
from stele.core.model import REGISTRY_LEVEL, SettingsLevel
from stele.service.policies import PolicyAnswer, get_policy
from stele.service.ruleset_adoption import adopted_versions
from stele.service.rulesets import AdviceRule, RulesetInfo, list_advice, list_rulesets
from stele.ui.assets import list_assets
from stele.ui.options import DialectRow, SettingRow
from stele.ui.pages import Page, PageRequest
from stele.ui.routes.rules import describe_policy


class SettingsPage(msgspec.Struct, frozen=True):
    """The settings of the server in force."""

    settings: Sequence[SettingRow]


class ApisPage(msgspec.Struct, frozen=True):
    """The dialects of the server; base is the URI that precedes their paths."""

    base: str
    dialects: Sequence[DialectRow]


class LicensedFile(msgspec.Struct, frozen=True):
    """Third-party files of one package that pages load; licence is an SPDX identifier."""

    files: str
    package: str
    version: str
    licence: str


class AboutPage(msgspec.Struct, frozen=True):
    """The release of the server, and the licences of the third-party files that pages load."""

    version: str
    licences: Sequence[LicensedFile]


class RulesetsPage(msgspec.Struct, frozen=True):
    """The installed rulesets, the version of each that decides, and the lint rules."""

    rulesets: Sequence[RulesetInfo]
    advice: Sequence[AdviceRule]


class LevelPolicy(msgspec.Struct, frozen=True):
    """The policy of a level; sentence is the policy in words."""

    answer: PolicyAnswer
    sentence: str
    subjects: int


class PoliciesPage(msgspec.Struct, frozen=True):
    """The policy of the registry and of each namespace that the caller may read, and subject counts by policy."""

    levels: Sequence[LevelPolicy]
    counts: dict[str, int]


async def view_settings(page: PageRequest) -> SettingsPage:
    """Show the settings of the server in force, and where each comes from."""
    return SettingsPage(page.options.settings)


async def view_apis(page: PageRequest) -> ApisPage:
    """Show the APIs of the server with their OpenAPI documents."""
    return ApisPage(page.base_uri, page.options.dialects)


async def view_about(page: PageRequest) -> AboutPage:
    """Show the release of the server, and the licences of the files that come with it."""
    return AboutPage(__version__, _list_licences(list_assets()["LICENSES.md"].body.decode()))


def _list_licences(text: str) -> list[LicensedFile]:
    """Return the rows of the table that `tools/ui_assets.py` writes."""
    rows = (
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| `")
    )
    return [
        LicensedFile(files.replace("`", ""), package.partition("]")[0].lstrip("["), version, licence)
        for files, package, version, licence in rows
    ]


async def view_rulesets(page: PageRequest) -> RulesetsPage:
    """Show the rulesets of all formats, and which version of each decides."""
    rulesets = await asyncio.to_thread(list_rulesets, await adopted_versions(page.registry))
    return RulesetsPage(rulesets, await asyncio.to_thread(list_advice))


async def view_policies(page: PageRequest) -> PoliciesPage:
    """Show the policy of the registry and of each namespace."""
    rows = await page.site.subjects.list_rows()
    access_control = page.registry.access
    counts: dict[str, int] = {}
    subjects: dict[str, int] = {}
    for row in rows:
        subjects[row.namespace] = subjects.get(row.namespace, 0) + 1
        if row.facets.policy:
            counts[row.facets.policy] = counts.get(row.facets.policy, 0) + 1
    levels = [REGISTRY_LEVEL, *(SettingsLevel(name) for name in sorted(subjects))]
    policies = []
    for level in levels:
        if access_control.is_open or access_control.allows(Operation.READ, level_resource(level)):
            answer = await get_policy(page.registry, level)
            count = len(rows) if level.namespace is None else subjects[level.namespace]
            policies.append(LevelPolicy(answer, describe_policy(answer), count))
    return PoliciesPage(policies, dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))))


def list_pages() -> list[Page]:
    """Return the pages of this module."""
    managed = access(Operation.MANAGE_ACCESS, Place.REGISTRY)  # Settings name files, users and other servers.
    return [
        Page("/ui/settings", view_settings, "settings.html.j2", managed, menu="/settings"),
        Page("/ui/apis", view_apis, "apis.html.j2", NO_RIGHT_NEEDED, menu="/apis"),
        Page("/ui/about", view_about, "about.html.j2", NO_RIGHT_NEEDED, menu="/about"),
        Page("/ui/rulesets", view_rulesets, "rulesets.html.j2", NO_RIGHT_NEEDED, menu="/rulesets"),
        Page("/ui/policies", view_policies, "policies.html.j2", access(Operation.READ, Place.LIST), menu="/policies"),
    ]
