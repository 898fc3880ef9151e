"""What an answer depends on: endpoints note it, and whoever keeps the answer knows how long it holds.

An answer of which nobody noted anything depends on the whole log: the next record ends it. What is noted narrows that
for records that only add the newest version of a subject (`State.shared_seq`); every other record ends all but the
immutable ones.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any, Final, NamedTuple

from stele.core.model import SubjectKey

_DEPENDENCIES: Final = "stele.dependencies"
"""Key of the ASGI scope under which the dependencies of the answer stand."""

REPEATABLE: Final = "stele_repeatable"
"""Option of an endpoint for POST: asked again of the same log, it answers the same and changes nothing."""
VOLATILE: Final = "stele_volatile"
"""Option of an endpoint for GET whose answer depends on more than the log: the time, the health of the store."""


class Dependencies(NamedTuple):
    """What an answer depends on besides records that concern more than one subject.

    subjects    subjects whose versions it shows or compares with
    names       whether it shows which subjects there are
    immutable   whether it depends on nothing but that no schema id goes away
    """

    subjects: tuple[SubjectKey, ...] = ()
    names: bool = False
    immutable: bool = False


_IMMUTABLE: Final = Dependencies(immutable=True)
_NAMES: Final = Dependencies(names=True)


def depend_on_subject(scope: MutableMapping[str, Any], key: SubjectKey) -> None:
    """Note that the answer depends on the versions of this subject, and on those of no other."""
    scope[_DEPENDENCIES] = Dependencies((key,))


def depend_on_names(scope: MutableMapping[str, Any]) -> None:
    """Note that the answer depends on which subjects there are, but not on their versions."""
    scope[_DEPENDENCIES] = _NAMES


def depend_on_nothing(scope: MutableMapping[str, Any]) -> None:
    """Note that the answer never changes as long as no schema id goes away."""
    scope[_DEPENDENCIES] = _IMMUTABLE


def find_dependencies(scope: MutableMapping[str, Any]) -> Dependencies | None:
    """Return what was noted, None for the whole log."""
    return scope.get(_DEPENDENCIES)


def is_repeatable(scope: MutableMapping[str, Any]) -> bool:
    """Whether the endpoint that a request reached answers the same again while the log stays the same."""
    handler = scope.get("route_handler")
    options = handler.opt if handler is not None else {}
    return REPEATABLE in options if scope["method"] == "POST" else VOLATILE not in options
