"""Policies as JSON for programs: the normal form of `policy` in plain words, for every API that shows it exactly.

{"kind": "directional", "backward": "latest", "forward": "since:3", "checkers": ["lint"]}
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from stele.core.model import MAX_INT32
from stele.core.policy import NO_VERSIONS, Policy, PolicyKind, RangeKind, VersionRange
from stele.errors import UnknownPolicy

MAX_VALIDATORS: Final = 32
"""Maximum number of validators of one policy: each reads every schema that is registered."""

_SINCE: Final = "since:"
_LONGEST: Final = len(str(MAX_INT32))

RangeText = Annotated[
    str, Meta(description="which versions: `none`, `latest`, `all`, or `since:N`, N being the number of the oldest one")
]


class PolicyJson(msgspec.Struct, frozen=True, rename={"validators": "checkers"}):
    """The requirements on a new schema.

    kind      `directional` compares; `allow_any` accepts everything, `deny_all` nothing after a subject's first schema
    backward  the versions whose data the new schema must read
    forward   the versions that must read the new schema's data
    validators  names of validators that run in addition, in this order; `checkers` in JSON
    """

    kind: Literal["directional", "allow_any", "deny_all"] = "directional"
    backward: RangeText = "none"
    forward: RangeText = "none"
    validators: Annotated[tuple[str, ...], Meta(max_length=MAX_VALIDATORS)] = msgspec.field(name="checkers", default=())

    @classmethod
    def from_policy(cls, policy: Policy) -> PolicyJson:
        """Return the JSON form of a policy."""
        return cls(policy.kind.value, print_range(policy.backward), print_range(policy.forward), policy.validators)

    @classmethod
    def when_unnamed(cls, policy: Policy) -> PolicyJson | None:
        """Return the JSON form of a policy that has no exact common name; None for one that has."""
        return None if policy.exact_name is not None else cls.from_policy(policy)

    @property
    def to_policy(self) -> Policy:
        """Return the policy in normal form. One that compares with nothing accepts everything.

        Raises `UnknownPolicy` for an invalid range, for directions with a kind that has none, and for a validator that
        is repeated or ''.
        """
        kind, backward, forward = PolicyKind(self.kind), parse_range(self.backward), parse_range(self.forward)
        undirected = backward == forward == NO_VERSIONS
        if kind is not PolicyKind.DIRECTIONAL and not undirected:
            raise UnknownPolicy(f"a policy of kind {self.kind} compares nothing: leave out backward and forward")
        if len(set(self.validators)) < len(self.validators) or not all(self.validators):
            raise UnknownPolicy("checkers must be names, each given once")
        if kind is PolicyKind.DIRECTIONAL and undirected:
            return Policy(PolicyKind.ALLOW_ANY, validators=self.validators)
        return Policy(kind, backward, forward, self.validators)


def print_range(versions: VersionRange) -> str:
    """Return one direction in words."""
    return f"{_SINCE}{versions.since}" if versions.kind is RangeKind.SINCE else versions.kind.value


def parse_range(text: str) -> VersionRange:
    """Return the direction from its words. Raises `UnknownPolicy`."""
    if text.startswith(_SINCE):
        number = text.removeprefix(_SINCE)
        if number.isascii() and number.isdigit() and len(number) <= _LONGEST and 0 < int(number) <= MAX_INT32:
            return VersionRange(RangeKind.SINCE, int(number))
    elif text in {"none", "latest", "all"}:
        return VersionRange(RangeKind(text))
    raise UnknownPolicy(
        f"{text!r} is not a range of versions: write none, latest, all, or since:N with a version number N"
    )
