"""Compatibility policies in one normal form, and the names the dialects share for the common ones.

`AllowAny | DenyAll | Directional(backward, forward)`, each direction reaching no version, the latest, all, or all since
a given one, plus named checkers that run in addition (docs/protocols/model.md#policy-normal-form). Pravega's
policy `Advanced` and the validators of AVRO-1124 are both inside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from typing import TYPE_CHECKING

import msgspec

from stele.errors import UnknownPolicy

if TYPE_CHECKING:
    from stele.core.model import Version


class Reach(Enum):
    """How far back a direction of a policy looks."""

    NONE = "none"
    LATEST = "latest"
    SINCE = "since"
    ALL = "all"


class Extent(msgspec.Struct, frozen=True, array_like=True):
    """One direction of a policy; `since` is the first ordinal looked at, for Reach.SINCE only."""

    reach: Reach = Reach.NONE
    since: int = 0

    def reaches(self, position: int, ordinal: int) -> bool:
        """Whether this direction compares with a version: its position, newest first from 0, and its ordinal."""
        match self.reach:
            case Reach.NONE:
                return False
            case Reach.LATEST:
                return position == 0
            case Reach.SINCE:
                return ordinal >= self.since
            case Reach.ALL:
                return True

    def covers(self, other: Extent) -> bool:
        """Whether this direction looks at least at everything the other looks at, whatever is registered."""
        if other.reach is Reach.NONE or self.reach is Reach.ALL:
            return True
        if self.reach is Reach.SINCE and other.reach is Reach.SINCE:
            return self.since <= other.since
        return self.reach is other.reach


NOTHING = Extent()
LATEST = Extent(Reach.LATEST)
ALL = Extent(Reach.ALL)


class Kind(Enum):
    """The three kinds of policy."""

    ALLOW_ANY = "allow_any"
    DENY_ALL = "deny_all"
    DIRECTIONAL = "directional"


class Policy(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a new schema must satisfy.

    backward: the new schema reads what those versions wrote; forward: those versions read what the new schema writes.
    checkers name additional validators, run on every registration.
    """

    kind: Kind = Kind.DIRECTIONAL
    backward: Extent = NOTHING
    forward: Extent = NOTHING
    checkers: tuple[str, ...] = ()

    def comparisons(self, newest_first: Iterable[Version]) -> Iterator[tuple[Version, bool, bool]]:
        """(version, backward, forward) for every version to compare with, newest first; takes no more than it needs."""
        for position, version in enumerate(newest_first):
            backward = self.backward.reaches(position, version.ordinal)
            forward = self.forward.reaches(position, version.ordinal)
            if not backward and not forward:
                return  # Positions rise and ordinals fall: no later one is reached either.
            yield version, backward, forward

    @property
    def exact_name(self) -> str | None:
        """The common name of exactly this policy, or None (a `since` reach, checkers, or mixed reaches)."""
        return _NAME_OF.get(self)

    @property
    def nearest_name(self) -> str:
        """The common name of this policy or of the nearest stricter one, never a laxer one.

        Source: docs/protocols/model.md#c9.
        """
        if self.kind is Kind.DENY_ALL:
            return "FULL_TRANSITIVE"
        plain = msgspec.structs.replace(self, checkers=())
        if (exact := _NAME_OF.get(plain)) is not None:
            return exact
        stricter = (name for name, named in POLICIES.items() if _implies(named, plain))
        return next(stricter, "FULL_TRANSITIVE")


def _implies(strict: Policy, lax: Policy) -> bool:
    return strict.backward.covers(lax.backward) and strict.forward.covers(lax.forward)


ALLOW_ANY = Policy(kind=Kind.ALLOW_ANY)
DENY_ALL = Policy(kind=Kind.DENY_ALL)

# Ordered from lax to strict: `nearest_name` takes the first that implies a policy.
POLICIES: dict[str, Policy] = {
    "NONE": ALLOW_ANY,
    "BACKWARD": Policy(backward=LATEST),
    "FORWARD": Policy(forward=LATEST),
    "FULL": Policy(backward=LATEST, forward=LATEST),
    "BACKWARD_TRANSITIVE": Policy(backward=ALL),
    "FORWARD_TRANSITIVE": Policy(forward=ALL),
    "FULL_TRANSITIVE": Policy(backward=ALL, forward=ALL),
}
_NAME_OF = {policy: name for name, policy in POLICIES.items()}

BACKWARD = POLICIES["BACKWARD"]


def policy_named(name: str) -> Policy:
    """The policy of a common name, in any case (`BACKWARD_TRANSITIVE`). Raises `UnknownPolicy`."""
    try:
        return POLICIES[name.strip().upper()]
    except KeyError:
        raise UnknownPolicy(f"{name!r} is no compatibility policy; known: {', '.join(POLICIES)}") from None
