"""The main menu of the pages: one line for each."""

from __future__ import annotations

from typing import Final, NamedTuple

from stele.core.access import Operation


class MenuItem(NamedTuple):
    """An entry of the menu.

    label    its text
    path     path of the page, below `/ui`
    section  heading above it
    right    right on the whole registry that the page needs; without it the entry is shown disabled. None: the page
             shows each caller what the caller may see
    """

    label: str
    path: str
    section: str
    right: Operation | None = None


MENU: Final = (
    MenuItem("Home", "", "Browse"),
    MenuItem("Schemas", "/subjects", "Browse"),
    MenuItem("Atlas", "/atlas", "Browse"),
    MenuItem("Usage", "/usage", "Browse"),
    MenuItem("Register", "/register", "Work"),
    MenuItem("Check", "/check", "Work"),
    MenuItem("Decode", "/decode", "Work"),
    MenuItem("Import and export", "/transfer", "Work"),
    MenuItem("Rulesets", "/rulesets", "Rules"),
    MenuItem("Policies", "/policies", "Rules"),
    MenuItem("Journal", "/journal", "Operate"),
    MenuItem("Pipelines", "/pipelines", "Operate", Operation.READ),
    MenuItem("Events", "/events", "Operate", Operation.MANAGE_EXPORTERS),
    MenuItem("Exporters", "/exporters", "Operate", Operation.MANAGE_EXPORTERS),
    MenuItem("Replications", "/replications", "Operate", Operation.MANAGE_EXPORTERS),
    MenuItem("Access", "/access", "Operate", Operation.MANAGE_ACCESS),
    MenuItem("Audit", "/audit", "Operate", Operation.READ_AUDIT),
    MenuItem("Refusals", "/refusals", "Operate", Operation.READ_AUDIT),
    MenuItem("Settings", "/settings", "Server", Operation.MANAGE_ACCESS),
    MenuItem("APIs", "/apis", "Server"),
    MenuItem("About", "/about", "Server"),
)
"""All entries, in the order of the menu; those of one section stand together."""
