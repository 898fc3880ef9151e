"""HTML from Jinja2 templates that are package data: one helper, one base page and one stylesheet for all pages.

A package keeps its templates in a folder `templates` beside its modules, named `*.html.j2`. All values in a template
are escaped, and a missing value is an error. Pages extend `shared/page.html.j2`, which includes the stylesheet, forbids
external resources by a Content-Security-Policy, and runs only its own script. A page with pictures of `stele.pictures`
sets `pictures=True`.
"""

from __future__ import annotations

from base64 import b64encode
from datetime import UTC, datetime, timedelta
from functools import cache
from hashlib import sha256
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

if TYPE_CHECKING:
    from jinja2 import Environment

_FIRST_DAY: Final = datetime(1970, 1, 1, tzinfo=UTC)
_POLICY: Final = (
    "default-src 'none'",
    "style-src 'unsafe-inline'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
)
PAGE_HEADERS: Final = MappingProxyType(
    {"content-security-policy": "; ".join(_POLICY), "referrer-policy": "no-referrer"}
)
"""Headers of every page that the server sends: no script runs in it, it loads nothing, and no other page frames it."""


def render_template(package: str, name: str, **values: Any) -> str:
    """Return the text of a template.

    Args:
        package: Dotted name of the package that holds the folder `templates`.
        name: File name of the template in that folder, or behind `shared/` in the folder of all packages.
        values: What the template shows, by the names it uses.

    Raises:
        jinja2.TemplateNotFound: The package has no such template.
        jinja2.UndefinedError: The template uses a name that is not among the values.
    """
    return _get_environment(package).get_template(name).render(values)


@cache
def _get_environment(package: str) -> Environment:
    from jinja2 import ChoiceLoader, Environment, PackageLoader, PrefixLoader, StrictUndefined

    shared = PrefixLoader({"shared": PackageLoader("stele.templates", "shared")})
    environment = Environment(
        loader=ChoiceLoader([shared, PackageLoader(package)]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["segment"] = _encode_segment
    environment.filters["csp_hash"] = _hash_for_policy
    environment.filters["iso_time"] = _format_iso_time
    environment.filters["short_time"] = _format_short_time
    return environment


def _encode_segment(text: str) -> str:
    """Return a text as one segment of a URL's path."""
    return quote(text, safe="")


def _format_iso_time(milliseconds: int) -> str:
    """Return a time (ms since 1970) in RFC 3339, UTC."""
    return (_FIRST_DAY + timedelta(milliseconds=milliseconds)).isoformat(timespec="seconds").replace("+00:00", "Z")


def _format_short_time(milliseconds: int) -> str:
    """Return a time (ms since 1970) as short text, UTC, to the minute."""
    return f"{_FIRST_DAY + timedelta(milliseconds=milliseconds):%Y-%m-%d %H:%M}"


def _hash_for_policy(text: str) -> str:
    """Return the hash by which a Content-Security-Policy permits an inline style or script."""
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
