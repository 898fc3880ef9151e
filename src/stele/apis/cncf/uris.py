"""Version URIs: an authority and an id put together, and taken apart again. Pure.

| authority                 | id                | URI                              |
|---------------------------|-------------------|----------------------------------|
| none: the API's base URI  | `342`             | `https://…/registry/342`         |
| `http://a/`               | `/g/versions/2`   | `http://a/g/versions/2`          |
| any                       | an absolute URI   | that URI                         |
| `urn:example:schemas`     | `a1b2`            | `urn:example:schemas:a1b2`       |

A version without an id has the path of the call that reads it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import quote, unquote

from stele.core.model import MAX_INT32
from stele.errors import InvalidRequest

LONGEST = 2000
"""Characters of an authority, an id or a URI that is asked for."""

_CHARACTERS = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/?#\[\]-]|%[0-9A-Fa-f]{2})+\Z")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_ROOT = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*:)//[^/?#]*")
_DOTS = re.compile(r"(?:^|/)\.{1,2}(?:[/?#]|\Z)")
_PATH = re.compile(r"(?:^|[/:])schemagroups/([^/?#]+)/schemas/([^/?#]+)/versions?/([0-9]{1,10})\Z")


class Place(NamedTuple):
    """Where a path leads, and what comes before it in a URI."""

    base: str
    group: str
    schema: str
    ordinal: int


def implied_id(group: str, schema: str, ordinal: int) -> str:
    """The id of a version that was given none: a path below the base URI of the API."""
    return f"schemagroups/{quote(group, safe='')}/schemas/{quote(schema, safe='')}/versions/{ordinal}"


def joined(authority: str, reference: str) -> str:
    """The URI of an id under an authority, which counts as a folder whether or not it ends in a slash."""
    if is_absolute(reference):
        return reference
    root = _ROOT.match(authority)
    if root is None:
        return f"{authority.rstrip(':')}:{reference}"
    if reference.startswith("//"):
        return root[1] + reference
    if reference.startswith("/"):
        return root[0] + reference
    return f"{authority.rstrip('/')}/{reference}"


def is_absolute(reference: str) -> bool:
    """Whether it has a scheme."""
    return _SCHEME.match(reference) is not None


def authority_in(text: str) -> str:
    """An authority as requests have it. Raises `InvalidRequest` for what is no absolute URI."""
    if not _is_text(text) or not is_absolute(text) or re.search(r"[?#]|:\Z", text):
        raise InvalidRequest(f"{text[:200]!r} is no authority: a URI without query and fragment is one")
    return text


def uri_in(text: str, what: str) -> str:
    """A URI of something else that requests name. Raises `InvalidRequest`."""
    if not _is_text(text) or not is_absolute(text):
        raise InvalidRequest(f"{text[:200]!r} is no URI: the {what} is one")
    return text


def id_in(text: str) -> str:
    """The id of a version as requests have it. Raises `InvalidRequest` for what is no URI reference."""
    if not _is_text(text) or (not is_absolute(text) and _DOTS.search(text)):
        raise InvalidRequest(f"{text[:200]!r} is no version id: a URI reference without dot segments is one")
    return text


def _is_text(text: str) -> bool:
    return len(text) <= LONGEST and _CHARACTERS.match(text) is not None


def origin_of(uri: str) -> str:
    """The authority a version of that URI comes from, when nobody says: the base URI of the registry it was in."""
    path = _PATH.search(uri)
    if path is not None and uri[: path.start()]:
        return uri[: path.start()]
    root = _ROOT.match(uri)
    return f"{root[0]}/" if root is not None else uri.rpartition(":")[0]


def place_of(uri: str) -> Place | None:
    """The version whose path a URI ends with, or None; `version` is read for `versions`."""
    found = _PATH.search(uri)
    if found is None or not 0 < int(found[3]) <= MAX_INT32:
        return None
    return Place(uri[: found.start()], unquote(found[1]), unquote(found[2]), int(found[3]))


def possible_ids(uri: str) -> Iterator[str]:
    """Every id that could make this URI under some authority, the longest first."""
    for position in range(len(uri)):
        if position == 0 or uri[position - 1] in "/:" or uri[position] in "/?#":
            yield uri[position:]
