"""Compatibility policies in one normal form, and the names that dialects share for the common ones.

`AllowAny | DenyAll | Directional(backward, forward)`: each direction covers no version, the latest, all, or all since a
given one. Named validators run in addition (docs/protocols/model.md#policy-normal-form). Pravega's policy `Advanced`
and the validators of AVRO-1124 are both expressible in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Protocol, TypeVar

import msgspec

from stele.core.stored_names import STORED_NAMES
from stele.errors import UnknownPolicy


class HasVersionNumber(Protocol):
    """The attribute of a version that a policy uses."""

    @property
    def version_number(self) -> int:
        """Number of the version in its subject, from 1."""
        ...


V = TypeVar("V", bound=HasVersionNumber)


class RangeKind(Enum):
    """Which earlier versions a direction of a policy covers."""

    NONE = "none"
    LATEST = "latest"
    SINCE = "since"
    ALL = "all"


class VersionRange(msgspec.Struct, frozen=True, array_like=True):
    """One direction of a policy. `since` is the first version number covered, for `RangeKind.SINCE` only."""

    kind: RangeKind = RangeKind.NONE
    since: int = 0

    def includes(self, position: int, version_number: int) -> bool:
        """Return whether this direction covers a version: its position, newest first from 0, and its version number."""
        match self.kind:
            case RangeKind.NONE:
                return False
            case RangeKind.LATEST:
                return position == 0
            case RangeKind.SINCE:
                return version_number >= self.since
            case RangeKind.ALL:
                return True

    def covers(self, other: VersionRange) -> bool:
        """Return whether this direction always covers at least every version that the other one covers."""
        if other.kind is RangeKind.NONE or self.kind is RangeKind.ALL:
            return True
        if self.kind is RangeKind.SINCE and other.kind is RangeKind.SINCE:
            return self.since <= other.since
        return self.kind is other.kind


NO_VERSIONS = VersionRange()
LATEST_VERSION = VersionRange(RangeKind.LATEST)
ALL_VERSIONS = VersionRange(RangeKind.ALL)


class PolicyKind(Enum):
    """The three kinds of policy."""

    ALLOW_ANY = "allow_any"
    DENY_ALL = "deny_all"
    DIRECTIONAL = "directional"


class Policy(msgspec.Struct, frozen=True, omit_defaults=True, rename=STORED_NAMES):
    """The requirements on a new schema.

    backward: the new schema reads data of those versions; forward: those versions read data of the new schema.
    validators are the names of additional validators, run on every registration.
    """

    kind: PolicyKind = PolicyKind.DIRECTIONAL
    backward: VersionRange = NO_VERSIONS
    forward: VersionRange = NO_VERSIONS
    validators: tuple[str, ...] = ()

    def list_comparisons(self, newest_first: Iterable[V]) -> Iterator[tuple[V, bool, bool]]:
        """Yield (version, backward, forward) for every version to compare with, newest first.

        Takes no more versions than needed.
        """
        for position, version in enumerate(newest_first):
            backward = self.backward.includes(position, version.version_number)
            forward = self.forward.includes(position, version.version_number)
            if not backward and not forward:
                return  # Positions rise and version numbers fall, so no later one is included either.
            yield version, backward, forward

    @property
    def exact_name(self) -> str | None:
        """The common name of exactly this policy, or None (a `since` range, validators, or mixed ranges)."""
        return _NAME_OF.get(self)

    @property
    def nearest_name(self) -> str:
        """The common name of this policy or of the nearest stricter one. Validators are ignored.

        DENY_ALL, for which no name is strict enough, gives FULL_TRANSITIVE.

        Source: docs/protocols/model.md#c9.
        """
        if self.kind is PolicyKind.DENY_ALL:
            return "FULL_TRANSITIVE"
        plain = msgspec.structs.replace(self, validators=())
        if (exact := _NAME_OF.get(plain)) is not None:
            return exact
        stricter = (name for name, named in POLICIES.items() if _implies(named, plain))
        return next(stricter, "FULL_TRANSITIVE")


def _implies(strict: Policy, lax: Policy) -> bool:
    return strict.backward.covers(lax.backward) and strict.forward.covers(lax.forward)


ALLOW_ANY = Policy(kind=PolicyKind.ALLOW_ANY)
DENY_ALL = Policy(kind=PolicyKind.DENY_ALL)

# Ordered from lax to strict: `nearest_name` takes the first that implies a policy.
POLICIES: dict[str, Policy] = {
    "NONE": ALLOW_ANY,
    "BACKWARD": Policy(backward=LATEST_VERSION),
    "FORWARD": Policy(forward=LATEST_VERSION),
    "FULL": Policy(backward=LATEST_VERSION, forward=LATEST_VERSION),
    "BACKWARD_TRANSITIVE": Policy(backward=ALL_VERSIONS),
    "FORWARD_TRANSITIVE": Policy(forward=ALL_VERSIONS),
    "FULL_TRANSITIVE": Policy(backward=ALL_VERSIONS, forward=ALL_VERSIONS),
}
_NAME_OF = {policy: name for name, policy in POLICIES.items()}

BACKWARD = POLICIES["BACKWARD"]


def find_policy(name: str) -> Policy:
    """Return the policy of a common name, in any case (`BACKWARD_TRANSITIVE`). Raises `UnknownPolicy`."""
    try:
        return POLICIES[name.strip().upper()]
    except KeyError:
        raise UnknownPolicy(f"{name!r} is not a compatibility policy; known: {', '.join(POLICIES)}") from None
