"""Compatibility policies in one normal form, and the names the dialects share for the common ones.

`AllowAny | DenyAll | Directional(backward, forward)`, each direction reaching no version, the latest, all, or all since
a given one, plus named checkers that run in addition (MODEL: policy normal form; the Pravega seed's Advanced policy and
the AVRO-1124 validators are both inside it).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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

    def select(self, newest_first: Sequence[Version]) -> Sequence[Version]:
        """The versions this direction compares with, newest first."""
        match self.reach:
            case Reach.NONE:
                return ()
            case Reach.LATEST:
                return newest_first[:1]
            case Reach.SINCE:
                return [version for version in newest_first if version.ordinal >= self.since]
            case Reach.ALL:
                return newest_first

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

    def comparisons(self, newest_first: Sequence[Version]) -> Iterator[tuple[Version, bool, bool]]:
        """(version, backward, forward) for every version to compare with, newest first."""
        back = {id(version) for version in self.backward.select(newest_first)}
        fore = {id(version) for version in self.forward.select(newest_first)}
        for version in newest_first:
            if id(version) in back or id(version) in fore:
                yield version, id(version) in back, id(version) in fore

    @property
    def exact_name(self) -> str | None:
        """The common name of exactly this policy, or None (a `since` reach, checkers, or mixed reaches)."""
        return _NAME_OF.get(self)

    @property
    def nearest_name(self) -> str:
        """The common name of this policy or of the nearest stricter one (MODEL C9): never a laxer one."""
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


def newest_first(versions: Iterable[Version]) -> list[Version]:
    """Versions sorted by descending ordinal."""
    return sorted(versions, key=lambda version: version.ordinal, reverse=True)
