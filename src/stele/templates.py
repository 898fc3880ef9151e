"""HTML from Jinja2 templates that are data of a package: one helper for every page.

A package keeps its templates in a folder `templates` beside its modules, named `*.html.j2`. Everything that a template
shows is escaped, and a value that it misses is an error instead of nothing.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

if TYPE_CHECKING:
    from jinja2 import Environment


def render_template(package: str, name: str, **values: Any) -> str:
    """Return the text of a template.

    Args:
        package: Dotted name of the package that holds the folder `templates`.
        name: File name of the template in that folder.
        values: What the template shows, by the names it uses.

    Raises:
        jinja2.TemplateNotFound: The package has no such template.
        jinja2.UndefinedError: The template uses a name that is not among the values.
    """
    return _get_environment(package).get_template(name).render(values)


@cache
def _get_environment(package: str) -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader(package), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["segment"] = _encode_segment
    return environment


def _encode_segment(text: str) -> str:
    """Return a text as one segment of a URL's path."""
    return quote(text, safe="")
