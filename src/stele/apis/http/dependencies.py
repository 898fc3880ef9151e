"""Dependencies of a response. Endpoints note them, and the response cache uses them to decide when it expires.

A response without noted dependencies depends on the whole log: the next record makes it expire. Noted dependencies
narrow that for records that only add the newest version of a subject (`State.shared_seq`). Every other record makes all
responses expire except immutable ones.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any, Final, NamedTuple

from stele.core.model import SubjectKey

_DEPENDENCIES: Final = "stele.dependencies"
"""Key of the ASGI scope that holds the dependencies of the response."""

REPEATABLE: Final = "stele_repeatable"
"""Option of a POST endpoint that changes nothing and returns the same response as long as the log stays the same."""
VOLATILE: Final = "stele_volatile"
"""Option of a GET endpoint whose response depends on more than the log, such as the time or the health of the store."""


class Dependencies(NamedTuple):
    """What a response depends on, besides records that concern more than one subject.

    subjects    subjects whose versions it shows or compares with
    names       whether it shows which subjects there are
    immutable   whether it depends only on schema ids not being removed
    """

    subjects: tuple[SubjectKey, ...] = ()
    names: bool = False
    immutable: bool = False


_IMMUTABLE: Final = Dependencies(immutable=True)
_NAMES: Final = Dependencies(names=True)


def depend_on_subject(scope: MutableMapping[str, Any], key: SubjectKey) -> None:
    """Note that the response depends on the versions of this subject, and on those of no other."""
    scope[_DEPENDENCIES] = Dependencies((key,))


def depend_on_names(scope: MutableMapping[str, Any]) -> None:
    """Note that the response depends on which subjects there are, but not on their versions."""
    scope[_DEPENDENCIES] = _NAMES


def depend_on_nothing(scope: MutableMapping[str, Any]) -> None:
    """Note that the response never changes as long as no schema id is removed."""
    scope[_DEPENDENCIES] = _IMMUTABLE


def find_dependencies(scope: MutableMapping[str, Any]) -> Dependencies | None:
    """Return the noted dependencies; None for the whole log."""
    return scope.get(_DEPENDENCIES)


def is_repeatable(scope: MutableMapping[str, Any]) -> bool:
    """Return whether the endpoint of a request returns the same response as long as the log stays the same."""
    handler = scope.get("route_handler")
    options = handler.opt if handler is not None else {}
    return REPEATABLE in options if scope["method"] == "POST" else VOLATILE not in options
