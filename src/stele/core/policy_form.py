"""Policies as programs write them: the normal form of `policy` in plain words, for every API that shows it exactly.

{"kind": "directional", "backward": "latest", "forward": "since:3", "checkers": ["lint"]}
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from stele.core.model import MAX_INT32
from stele.core.policy import NOTHING, Extent, Kind, Policy, Reach
from stele.errors import UnknownPolicy

MOST_CHECKERS: Final = 32
"""Validators of one policy, at most: each reads every schema that is registered."""

_SINCE: Final = "since:"
_LONGEST: Final = len(str(MAX_INT32))

Stretch = Annotated[
    str, Meta(description="which versions: `none`, `latest`, `all`, or `since:N`, N being the number of the oldest one")
]


class PolicyForm(msgspec.Struct, frozen=True):
    """What a new schema must satisfy.

    kind      `directional` compares; `allow_any` lets everything in, `deny_all` nothing after a subject's first schema
    backward  the versions whose data the new schema must read
    forward   the versions that must read the new schema's data
    checkers  names of validators that are asked in addition, in this order
    """

    kind: Literal["directional", "allow_any", "deny_all"] = "directional"
    backward: Stretch = "none"
    forward: Stretch = "none"
    checkers: Annotated[tuple[str, ...], Meta(max_length=MOST_CHECKERS)] = ()

    @classmethod
    def of(cls, policy: Policy) -> PolicyForm:
        """The words of a policy."""
        return cls(policy.kind.value, stretch_of(policy.backward), stretch_of(policy.forward), policy.checkers)

    @property
    def policy(self) -> Policy:
        """The policy meant, in normal form: one that compares with nothing lets everything in.

        Raises `UnknownPolicy` for a stretch that is none, directions beside a kind that has none, a checker named
        twice or ''.
        """
        kind, backward, forward = Kind(self.kind), extent_of(self.backward), extent_of(self.forward)
        undirected = backward == forward == NOTHING
        if kind is not Kind.DIRECTIONAL and not undirected:
            raise UnknownPolicy(f"a policy that is {self.kind} compares nothing: leave out backward and forward")
        if len(set(self.checkers)) < len(self.checkers) or not all(self.checkers):
            raise UnknownPolicy("checkers are named, each once")
        if kind is Kind.DIRECTIONAL and undirected:
            return Policy(Kind.ALLOW_ANY, checkers=self.checkers)
        return Policy(kind, backward, forward, self.checkers)


def stretch_of(extent: Extent) -> str:
    """One direction in words."""
    return f"{_SINCE}{extent.since}" if extent.reach is Reach.SINCE else extent.reach.value


def extent_of(stretch: str) -> Extent:
    """The direction in such words. Raises `UnknownPolicy`."""
    if stretch.startswith(_SINCE):
        number = stretch.removeprefix(_SINCE)
        if number.isascii() and number.isdigit() and len(number) <= _LONGEST and 0 < int(number) <= MAX_INT32:
            return Extent(Reach.SINCE, int(number))
    elif stretch in {"none", "latest", "all"}:
        return Extent(Reach(stretch))
    raise UnknownPolicy(f"{stretch!r} says not which versions: none, latest, all, or since:N with a version number N")
