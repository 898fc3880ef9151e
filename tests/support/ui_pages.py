"""The web pages of a server, taken from its routes, so that a test over all pages misses none."""

from __future__ import annotations

import re

from litestar.routes import HTTPRoute

from stele.server.dialects import UI
from stele.server.settings import ServerSettings
from stele.service.registry import Registry
from stele.storage.memory import MemoryLog

_NO_PAGES = ("/download", "/feed", "/{file}")


def list_templates() -> list[str]:
    """Return the path of every page and of its JSON twin, with parameters in braces."""
    app = UI.build(Registry(MemoryLog()), UI.options(ServerSettings()))
    paths = {route.path_format for route in app.routes if isinstance(route, HTTPRoute) and "GET" in route.methods}
    return sorted(path for path in paths if not path.endswith(_NO_PAGES))


def list_html_templates() -> list[str]:
    """Return the path of every page, with parameters in braces."""
    return [path for path in list_templates() if not path.endswith(".json")]


def matches_template(path: str, template: str) -> bool:
    """Return whether a path, with or without a query, matches the path of a page."""
    pattern = re.sub(r"\\{\w+\\}", "[^/]+", re.escape(template))
    return re.fullmatch(pattern, path.partition("?")[0]) is not None
