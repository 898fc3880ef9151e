"""Words in paths and queries: qualified subjects, versions, ids, flags, pages.

A context is written `.team` and is the namespace `team` of the core; `.` is the default namespace. `:.team:orders` is a
subject in it, `:.team:` the context itself where settings are meant, `:.__GLOBAL:` the whole registry, `:*:` every
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
"""Prefix that means every context."""

_QUALIFIED = ":."
_GLOBAL = "__GLOBAL"
_RESERVED = {_GLOBAL, "__EMPTY"}
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}\Z")

T = TypeVar("T")


class NoSuchResource(NotFound):
    """The path names nothing this API has, as when an id is no number."""

    def __init__(self) -> None:
        super().__init__("HTTP 404 Not Found")


class InvalidContext(InvalidRequest):
    """The name of a context in a path has a colon."""


class SubjectRef(NamedTuple):
    """A subject as a request names it; `is_qualified` when the request says which context it means."""

    key: SubjectKey
    is_qualified: bool


# --- contexts and subjects ------------------------------------------------------------------------------------------


def parse_context(context: str) -> str:
    """The space of a context in a path: `.team`, `team` or `:.team:`. Raises `InvalidContext`."""
    name = decode_segment(context)
    if name.startswith(_QUALIFIED) and name.endswith(":"):
        name = name[1:-1]
    if ":" in name:
        raise InvalidContext(f"context name '{name}' must not contain a colon")
    return name.removeprefix(".")


def context_name(space: str) -> str:
    """The context a space is shown as."""
    return f".{space}"


def parse_subject(segment: str, context: str = "") -> SubjectRef:
    """The subject a path segment means, inside the context of the path when it does not say its own."""
    name = decode_segment(segment)
    default = parse_context(context)
    if not name.startswith(_QUALIFIED):
        return SubjectRef(SubjectKey(default, name), bool(context))
    space, _, subject = name[len(_QUALIFIED) :].partition(":")
    return SubjectRef(SubjectKey(space, subject), is_qualified=True)


def parse_subject_key(segment: str, context: str = "") -> SubjectKey:
    """As `parse_subject`, the key alone."""
    return parse_subject(segment, context).key


def parse_level(segment: str, context: str = "") -> SettingsLevel:
    """Where settings and modes named so are attached: subject, context or registry; '' is the context of the path."""
    if not segment:
        return SettingsLevel(parse_context(context))
    key = parse_subject_key(segment, context)
    if key.namespace == _GLOBAL:
        return REGISTRY_LEVEL
    if not key.name and decode_segment(segment).startswith(_QUALIFIED):
        return SettingsLevel(key.namespace)
    return SettingsLevel(key.namespace, key.name)


def qualify_subject(key: SubjectKey) -> str:
    """The name a subject is shown by."""
    if key.namespace == DEFAULT_NAMESPACE and not key.name.startswith((_QUALIFIED, WILDCARD)):
        return key.name
    return f":.{key.namespace}:{key.name}"


def level_name(level: SettingsLevel) -> str:
    """The name a level is shown by."""
    if level.namespace is None:
        return f":.{_GLOBAL}:"
    return (
        qualify_subject(SubjectKey(level.namespace, level.subject))
        if level.subject is not None
        else f":.{level.namespace}:"
    )


def require_valid_key(key: SubjectKey) -> SubjectKey:
    """The key, checked as a name that may be created. Raises `InvalidName`."""
    if key.name in _RESERVED or key.namespace == _GLOBAL or any(_is_unwritable(char) for part in key for char in part):
        raise InvalidName(qualify_subject(key), "is not a valid subject")
    return key


def require_valid_level(level: SettingsLevel) -> SettingsLevel:
    """The level, checked likewise; the registry itself is one. Raises `InvalidName`."""
    if level.namespace is not None:
        require_valid_key(SubjectKey(level.namespace, level.subject or ""))
    return level


def _is_unwritable(char: str) -> bool:
    """Control characters, and what stands for bytes that are no UTF-8: different ones would become one name."""
    return char < " " or "\x7f" <= char < "\xa0" or char == "\ufffd"


class PrefixFilter(NamedTuple):
    """Which subjects a list is about: all spaces for None, names that start with `name`."""

    namespace: str | None
    name: str

    def matches_subject(self, key: SubjectKey) -> bool:
        """Whether a subject is among them."""
        return (self.namespace is None or key.namespace == self.namespace) and key.name.startswith(self.name)


def parse_prefix(text: str, context: str = "") -> PrefixFilter:
    """What `subjectPrefix` means: `:*:x` in all contexts, `:.team:x` in one, `x` in the context of the path."""
    if text.startswith(WILDCARD):
        return PrefixFilter(parse_context(context) if context else None, text[len(WILDCARD) :])
    return PrefixFilter(*parse_subject_key(text, context))


# --- numbers and flags ----------------------------------------------------------------------------------------------


def parse_version(text: str) -> int | None:
    """A version number, None for the latest. Raises `InvalidVersion`."""
    word = text.strip()
    if word.lower() == "latest" or word == "-1":
        return None
    number = int(word) if _INTEGER.match(word) else 0
    if not 0 < number <= MAX_INT32:
        raise InvalidVersion(text)
    return number


def parse_integer(text: str, default: int = 0) -> int:
    """A 32-bit integer of a path or query, default for ''. Raises `NoSuchResource`, as the original does."""
    if not text:
        return default
    if not _INTEGER.match(text) or not -MAX_INT32 <= int(text) <= MAX_INT32:
        raise NoSuchResource
    return int(text)


def is_true(text: str) -> bool:
    """Whether a flag is set; anything but `true` (in any case) leaves it unset."""
    return text.strip().lower() == "true"


def parse_page(offset: str, limit: str, most: int) -> slice:
    """Which part of a list one page is: limit <= 0 or above most means most."""
    start = max(parse_integer(offset), 0)
    size = parse_integer(limit, -1)
    return slice(start, start + (size if 0 < size <= most else most))


def slice_page(items: Iterable[T], offset: str, limit: str, most: int) -> list[T]:
    """One page of a list."""
    page = parse_page(offset, limit, most)
    return items[page] if isinstance(items, list) else list(islice(items, page.start, page.stop))
