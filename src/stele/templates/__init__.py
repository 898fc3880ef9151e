"""HTML from Jinja2 templates that are data of a package: one helper, one base page and one stylesheet for every page.

A package keeps its templates in a folder `templates` beside its modules, named `*.html.j2`. Everything that a template
shows is escaped, and a value that it misses is an error instead of nothing. Pages extend `shared/page.html.j2`, which
holds the stylesheet, forbids everything from elsewhere by a Content-Security-Policy, and runs no script but its own. A
page with pictures of `stele.pictures` sets `pictures=True`.
"""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from hashlib import sha256
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

if TYPE_CHECKING:
    from jinja2 import Environment

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
    return environment


def _encode_segment(text: str) -> str:
    """Return a text as one segment of a URL's path."""
    return quote(text, safe="")


def _hash_for_policy(text: str) -> str:
    """Return how a Content-Security-Policy names an inline style or script: by its hash."""
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
