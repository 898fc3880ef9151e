"""Settings of registry, namespaces and subjects, as they are exported to other registries and imported from them.

Imported settings are noted separately from the log's settings, with the registry that they came from. With these notes
a later change or removal at the source can be followed, and settings that a user changed here can be recognised.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from stele.core.access import Operation, Resource, level_resource
from stele.core.commands import ChangeItems, ChangeSettings, Transaction
from stele.core.model import Settings, SettingsLevel, SubjectKey
from stele.core.state import State
from stele.errors import Conflict, Invalid, Refused
from stele.protocol.cncf import authority_of
from stele.protocol.replication import LevelName, LevelSettings, SettingsChange
from stele.service import collections
from stele.service.collections import Changes, Items
from stele.service.registry import Registry

BROUGHT: Final = "replications.settings"
"""Collection of the settings that replications set, by level."""
_VIA: Final = "replication"
_NAMES: Final = (
    "policy",
    "ruleset",
    "normalize",
    "group",
    "validate_fields",
    "validate_new_schemas",
    "validate_rules",
    "default_metadata",
    "override_metadata",
    "default_rule_set",
    "override_rule_set",
)
"""Settings that are replicated. Aliases and the dialects' own data are not: they belong to one registry."""


class BroughtSettings(msgspec.Struct, frozen=True):
    """The settings that a replication set at a level, and the authority of their source."""

    values: dict[str, Any] | None
    source: str


_brought: Final = msgspec.json.Decoder(BroughtSettings)


def read_level_settings(registry: Registry, state: State, levels: Sequence[LevelName]) -> list[LevelSettings]:
    """Return the settings of levels. Raises `Forbidden` for one that the caller may not export."""
    brought = collections.items_in(registry, state, BROUGHT)
    level_settings = []
    for level in levels:
        registry.access.require(Operation.EXPORT, _find_resource(level))
        noted = brought.get(_make_key(level))
        last = None if noted is None else _brought.decode(noted)
        values = print_settings(state.settings_at(SettingsLevel(*level)))
        level_settings.append(
            LevelSettings(*level, values, None if last is None else last.values, "" if last is None else last.source)
        )
    return level_settings


def _find_resource(level: LevelName) -> Resource:
    return level_resource(SettingsLevel(*level))


def _make_key(level: LevelName) -> tuple[str, ...]:
    if level.namespace is None:
        return ("registry",)
    own = f"namespace:{level.namespace}"
    return (own,) if level.subject is None else (own, f"subject:{level.subject}")


def print_settings(settings: Settings | None) -> dict[str, Any] | None:
    """Return the settings that are replicated, as plain values; None where there are none."""
    if settings is None:
        return None
    chosen = Settings(**{name: getattr(settings, name) for name in _NAMES})
    return msgspec.to_builtins(chosen) or None


def parse_settings(values: Mapping[str, Any] | None) -> Settings:
    """Return settings from plain values. Raises `Invalid`."""
    try:
        return msgspec.convert(values or {}, Settings)
    except msgspec.ValidationError as error:
        raise Invalid(f"these are not settings: {error}") from None


async def import_level_settings(
    registry: Registry, changes: Iterable[SettingsChange]
) -> tuple[int, list[SettingsChange]]:
    """Set levels to their settings at a source.

    Returns:
        How many were set, and those that cannot be set here. Levels that changed since they were read, and those that
        belong to this registry, are left to the next comparison.

    Raises:
        Forbidden: The caller may not change policies there.
        StoreError: The log cannot be read or written.
    """
    count = 0
    refused = []
    for change in changes:
        try:
            count += await _import_settings(registry, change)
        except (Invalid, Conflict, Refused):
            refused.append(change)
    return count, refused


async def _import_settings(registry: Registry, change: SettingsChange) -> bool:
    level = SettingsLevel(change.namespace, change.subject)
    state = await registry.fresh_state()
    if print_settings(state.settings_at(level)) != change.seen or _is_own(state, level):
        return False
    wanted = parse_settings(change.values)
    note = msgspec.json.encode(BroughtSettings(change.values, change.source))
    commands = (
        ChangeSettings(level, {name: getattr(wanted, name) for name in _NAMES}, prune=True),
        ChangeItems(BROUGHT, {_make_key(LevelName(*level)): note}),
    )
    await registry.execute(Transaction(commands), via=_VIA)
    return True


def _is_own(state: State, level: SettingsLevel) -> bool:
    """Return whether a subject has versions of this registry's own."""
    if level.subject is None:
        return False
    subject = state.find_subject(SubjectKey(level.namespace or "", level.subject))
    return subject is not None and bool(subject.versions) and not authority_of(subject)


async def forget_subject_settings(registry: Registry, keys: Iterable[SubjectKey]) -> None:
    """Remove the notes on subjects that have ended, so that later subjects of the same names start without them."""
    wanted = {_make_key(LevelName(*key)) for key in keys}

    def change(items: Items) -> tuple[Changes, None]:
        return {key: None for key in wanted if key in items}, None

    if wanted & set(collections.items_in(registry, registry.state, BROUGHT)):
        await collections.edit_collection(registry, BROUGHT, change, via=_VIA)
