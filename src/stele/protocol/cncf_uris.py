"""Version URIs: joins an authority with an id, and splits URIs. Pure.

| authority                 | id                | URI                              |
|---------------------------|-------------------|----------------------------------|
| none: the API's base URI  | `342`             | `https://…/registry/342`         |
| `http://a/`               | `/g/versions/2`   | `http://a/g/versions/2`          |
| any                       | an absolute URI   | that URI                         |
| `urn:example:schemas`     | `a1b2`            | `urn:example:schemas:a1b2`       |

The id of a version that was registered without an id is the path of the call that reads it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import quote, unquote

from stele.core.model import MAX_INT32
from stele.errors import InvalidRequest

MAX_URI_LENGTH = 2000
"""Longest authority, id or URI, in characters."""

_CHARACTERS = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/?#\[\]-]|%[0-9A-Fa-f]{2})+\Z")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_ROOT = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*:)//[^/?#]*")
_DOTS = re.compile(r"(?:^|/)\.{1,2}(?:[/?#]|\Z)")
_PATH = re.compile(r"(?:^|[/:])schemagroups/([^/?#]+)/schemas/([^/?#]+)/versions?/([0-9]{1,10})\Z")


class VersionPath(NamedTuple):
    """A version by the path that reads it, and the part of a URI before that path."""

    base: str
    group: str
    schema: str
    version_number: int


def default_id(group: str, schema: str, version_number: int) -> str:
    """Return the id of a version registered without one: a path below the base URI of the API."""
    return f"schemagroups/{quote(group, safe='')}/schemas/{quote(schema, safe='')}/versions/{version_number}"


def join_uri(authority: str, reference: str) -> str:
    """Return the URI of an id under an authority, which counts as a folder with or without a slash at its end."""
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
    """Return whether a URI reference has a scheme."""
    return _SCHEME.match(reference) is not None


def check_authority(text: str) -> str:
    """Return an authority from a request. Raises `InvalidRequest` unless it is an absolute URI."""
    if not _has_uri_characters(text) or not is_absolute(text) or re.search(r"[?#]|:\Z", text):
        raise InvalidRequest(f"{text[:200]!r} is not an authority: it must be a URI without query and fragment")
    return text


def check_uri(text: str, what: str) -> str:
    """Return another URI from a request. Raises `InvalidRequest`, which calls the URI `what`."""
    if not _has_uri_characters(text) or not is_absolute(text):
        raise InvalidRequest(f"{text[:200]!r} is not a URI: the {what} must be one")
    return text


def check_version_id(text: str) -> str:
    """Return the id of a version from a request. Raises `InvalidRequest` unless it is a URI reference."""
    if not _has_uri_characters(text) or (not is_absolute(text) and _DOTS.search(text)):
        raise InvalidRequest(f"{text[:200]!r} is not a version id: it must be a URI reference without dot segments")
    return text


def _has_uri_characters(text: str) -> bool:
    return len(text) <= MAX_URI_LENGTH and _CHARACTERS.match(text) is not None


def authority_of_uri(uri: str) -> str:
    """Return the default authority of a version with a URI: the base URI of the registry it comes from."""
    path = _PATH.search(uri)
    if path is not None and uri[: path.start()]:
        return uri[: path.start()]
    root = _ROOT.match(uri)
    return f"{root[0]}/" if root is not None else uri.rpartition(":")[0]


def parse_version_path(uri: str) -> VersionPath | None:
    """Return the version whose path is the end of a URI, else None. `version` is read like `versions`."""
    match = _PATH.search(uri)
    if match is None or not 0 < int(match[3]) <= MAX_INT32:
        return None
    return VersionPath(uri[: match.start()], unquote(match[1]), unquote(match[2]), int(match[3]))


def possible_ids(uri: str) -> Iterator[str]:
    """Yield every id that could make a URI under some authority, the longest first."""
    for position in range(len(uri)):
        if position == 0 or uri[position - 1] in "/:" or uri[position] in "/?#":
            yield uri[position:]
