"""The settings of a server as rows of a table: value, origin and meaning, without possible secrets."""

from __future__ import annotations

from typing import Any, get_type_hints

import msgspec

from stele.server.settings import LoadedSettings, ServerSettings
from stele.service.disclosure import hide_url
from stele.storage.drivers import hide_credentials
from stele.ui.options import SettingRow


def list_settings(settings: ServerSettings) -> list[SettingRow]:
    """Return all settings in force, in the order of their documentation."""
    origins = settings.origins if isinstance(settings, LoadedSettings) else {}
    hints = get_type_hints(ServerSettings, include_extras=True)
    rows = []
    for field in msgspec.structs.fields(ServerSettings):
        value = getattr(settings, field.name)
        origin = origins.get(field.name, "default" if value == field.default else "program")
        rows.append(
            SettingRow(field.name, _print_value(field.name, value), origin, _find_description(hints[field.name]))
        )
    return rows


def _print_value(name: str, value: Any) -> str:
    if value is None or value == ():
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    if name == "store":
        return hide_credentials(str(value))
    return hide_url(value) if isinstance(value, str) and "://" in value else str(value)


def _find_description(hint: Any) -> str:
    """Return the description in the annotation of a setting."""
    notes = [each.description for each in getattr(hint, "__metadata__", ()) if isinstance(each, msgspec.Meta)]
    return next((note for note in notes if note), "")
