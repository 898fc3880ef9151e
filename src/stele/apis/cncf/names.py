"""Ids of groups and schemas: how they spell spaces and subjects, and which ones can be made here. Pure.

An id is one path segment without a colon (RFC 3986, segment-nz-nc), percent-encoded in paths. What other dialects made
under other names is listed and read all the same, a slash as `%2F`.
"""

from __future__ import annotations

import re

from stele.apis.http.paths import decode_segment
from stele.core.decide.decision import check_name
from stele.core.model import DEFAULT_NAMESPACE, MAX_INT32
from stele.errors import InvalidName, VersionNotFound

DEFAULT_GROUP = "default"
"""Id of the group every registry has: the space that has no name."""

_LIKE_DEFAULT = re.compile(rf"{DEFAULT_GROUP}~*\Z")
_NUMBER = re.compile(r"[0-9]{1,10}\Z")
_AZURE = re.compile(r"\A/\$schemagroups(?=/|\Z)(/\$schemas(?=/|\Z))?", re.IGNORECASE)
_UNREADABLE = "\ufffd"
_EMPTY = "\ue001"
"""Stands for an empty segment of a path, which the router would pass over; of Unicode's private use area."""
_LONGEST = 512
"""Characters of an id."""


def space_of(group: str) -> str:
    """The space of a group; one literally called `default` is `default~`."""
    if group == DEFAULT_GROUP:
        return DEFAULT_NAMESPACE
    return group[:-1] if _LIKE_DEFAULT.match(group) else group


def group_of(space: str) -> str:
    """Inverse of `space_of`."""
    if space == DEFAULT_NAMESPACE:
        return DEFAULT_GROUP
    return f"{space}~" if _LIKE_DEFAULT.match(space) else space


def spelled(path: str, method: str) -> str:
    """A path as routes spell it: Azure's first segments in one case, and an empty segment as one that names nothing.

    A slash at the end is taken for nothing where something is read, and for an empty id where something is written.
    """
    path = _AZURE.sub(lambda found: "/$schemaGroups" + ("/$schemas" if found[1] else ""), path, count=1)
    if path.endswith("/") and method not in {"GET", "HEAD", "OPTIONS"}:
        path += _EMPTY
    while "//" in path:
        path = path.replace("//", f"/{_EMPTY}/")
    return path


def id_in(segment: str) -> str:
    """The id a path segment spells. Raises `InvalidName` for one that is no text."""
    name = "" if segment == _EMPTY else decode_segment(segment)
    if not name:
        raise InvalidName(name, "is no id")
    if _UNREADABLE in name:
        raise InvalidName(name, "is not UTF-8")
    return check_name(name)


def new_id(name: str) -> str:
    """The id itself, when something can be made under it. Raises `InvalidName`."""
    if not name.strip(". "):
        raise InvalidName(name, "is no id: it needs more than dots and blanks")
    if "/" in name or ":" in name:
        raise InvalidName(name, "is no id: it must be one path segment without a colon")
    if len(name) > _LONGEST:
        raise InvalidName(name[:40] + "…", f"is no id: it has more than {_LONGEST} characters")
    return name


def ordinal_of(segment: str) -> int:
    """The version number a path segment spells. Raises `VersionNotFound`: nothing else names a version."""
    if not _NUMBER.match(segment) or not 0 < int(segment) <= MAX_INT32:
        raise VersionNotFound(decode_segment(segment))
    return int(segment)
