"""Names in paths and queries: qualified subjects, versions, ids, flags, pages.

A context is written `.team` and is the namespace `team` of the core; `.` is the default namespace. `:.team:orders` is a
subject in it, `:.team:` the context itself (in paths of settings), `:.__GLOBAL:` the whole registry, `:*:` every
context.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple, TypeVar

from stele.apis.http.requests import decode_segment
from stele.core.model import DEFAULT_NAMESPACE, MAX_INT32, REGISTRY_LEVEL, SettingsLevel, SubjectKey
from stele.errors import InvalidName, InvalidRequest, InvalidVersion, NotFound

WILDCARD = ":*:"
"""Prefix that matches every context."""

_QUALIFIED = ":."
_GLOBAL = "__GLOBAL"
_RESERVED = {_GLOBAL, "__EMPTY"}
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}\Z")

T = TypeVar("T")


class NoSuchResource(NotFound):
    """The path names nothing that this API has, for example an id that is no number."""

    def __init__(self) -> None:
        super().__init__("HTTP 404 Not Found")


class InvalidContext(InvalidRequest):
    """The name of a context in a path has a colon."""


class SubjectRef(NamedTuple):
    """A subject as a request names it; `is_qualified` if the request also names its context."""

    key: SubjectKey
    is_qualified: bool


# --- contexts and subjects ------------------------------------------------------------------------------------------


def parse_context(context: str) -> str:
    """Return the namespace of a context in a path: `.team`, `team` or `:.team:`. Raises `InvalidContext`."""
    name = decode_segment(context)
    if name.startswith(_QUALIFIED) and name.endswith(":"):
        name = name[1:-1]
    if ":" in name:
        raise InvalidContext(f"context name '{name}' must not contain a colon")
    return name.removeprefix(".")


def context_name(space: str) -> str:
    """Return the name of the context of a namespace."""
    return f".{space}"


def parse_subject(segment: str, context: str = "") -> SubjectRef:
    """Return the subject that a path segment names. An unqualified name belongs to the context of the path."""
    name = decode_segment(segment)
    default = parse_context(context)
    if not name.startswith(_QUALIFIED):
        return SubjectRef(SubjectKey(default, name), bool(context))
    space, _, subject = name[len(_QUALIFIED) :].partition(":")
    return SubjectRef(SubjectKey(space, subject), is_qualified=True)


def parse_subject_key(segment: str, context: str = "") -> SubjectKey:
    """Return the key of the subject that a path segment names; see `parse_subject`."""
    return parse_subject(segment, context).key


def parse_level(segment: str, context: str = "") -> SettingsLevel:
    """Return the level that a path of settings names: a subject, a context or the registry.

    Without a segment it is the context of the path.
    """
    if not segment:
        return SettingsLevel(parse_context(context))
    key = parse_subject_key(segment, context)
    if key.namespace == _GLOBAL:
        return REGISTRY_LEVEL
    if not key.name and decode_segment(segment).startswith(_QUALIFIED):
        return SettingsLevel(key.namespace)
    return SettingsLevel(key.namespace, key.name)


def qualify_subject(key: SubjectKey) -> str:
    """Return the name of a subject in responses: qualified, unless it is in the default context."""
    if key.namespace == DEFAULT_NAMESPACE and not key.name.startswith((_QUALIFIED, WILDCARD)):
        return key.name
    return f":.{key.namespace}:{key.name}"


def level_name(level: SettingsLevel) -> str:
    """Return the name of a level in responses."""
    if level.namespace is None:
        return f":.{_GLOBAL}:"
    return (
        qualify_subject(SubjectKey(level.namespace, level.subject))
        if level.subject is not None
        else f":.{level.namespace}:"
    )


def require_valid_key(key: SubjectKey) -> SubjectKey:
    """Return the key if a subject may have it. Raises `InvalidName`."""
    if key.name in _RESERVED or key.namespace == _GLOBAL or any(_is_unwritable(char) for part in key for char in part):
        raise InvalidName(qualify_subject(key), "is not a valid subject")
    return key


def require_valid_level(level: SettingsLevel) -> SettingsLevel:
    """Return the level if its names are valid, as in `require_valid_key`. Raises `InvalidName`."""
    if level.namespace is not None:
        require_valid_key(SubjectKey(level.namespace, level.subject or ""))
    return level


def _is_unwritable(char: str) -> bool:
    """Return whether a character is a control character, or U+FFFD.

    U+FFFD replaces bytes that are no UTF-8, so different names would become the same.
    """
    return char < " " or "\x7f" <= char < "\xa0" or char == "\ufffd"


class PrefixFilter(NamedTuple):
    """Subjects that a list shows: those of a namespace (None: of all) whose names start with `name`."""

    namespace: str | None
    name: str

    def matches_subject(self, key: SubjectKey) -> bool:
        """Return whether a subject passes the filter."""
        return (self.namespace is None or key.namespace == self.namespace) and key.name.startswith(self.name)


def parse_prefix(text: str, context: str = "") -> PrefixFilter:
    """Return the filter of `subjectPrefix`: `:*:x` in all contexts, `:.team:x` in one, `x` in the path's context."""
    if text.startswith(WILDCARD):
        return PrefixFilter(parse_context(context) if context else None, text[len(WILDCARD) :])
    return PrefixFilter(*parse_subject_key(text, context))


# --- numbers and flags ----------------------------------------------------------------------------------------------


def parse_version(text: str) -> int | None:
    """Return a version number, None for the latest. Raises `InvalidVersion`."""
    word = text.strip()
    if word.lower() == "latest" or word == "-1":
        return None
    number = int(word) if _INTEGER.match(word) else 0
    if not 0 < number <= MAX_INT32:
        raise InvalidVersion(text)
    return number


def parse_integer(text: str, default: int = 0) -> int:
    """Return a 32-bit integer of a path or query; default for ''.

    Raises `NoSuchResource` for anything else, as Confluent's registry does.
    """
    if not text:
        return default
    if not _INTEGER.match(text) or not -MAX_INT32 <= int(text) <= MAX_INT32:
        raise NoSuchResource
    return int(text)


def is_true(text: str) -> bool:
    """Return whether a flag is set: only `true`, in any case, sets it."""
    return text.strip().lower() == "true"


def parse_page(offset: str, limit: str, most: int) -> slice:
    """Return the part of a list that is one page. A limit that is not positive, or above most, counts as most."""
    start = max(parse_integer(offset), 0)
    size = parse_integer(limit, -1)
    return slice(start, start + (size if 0 < size <= most else most))


def slice_page(items: Iterable[T], offset: str, limit: str, most: int) -> list[T]:
    """Return one page of a list."""
    page = parse_page(offset, limit, most)
    return items[page] if isinstance(items, list) else list(islice(items, page.start, page.stop))
