"""What was seen at each place of the data: figures that can be added up, in any order and grouping the same.

A place is a member of an object, the items of a list, the values of a map. Its evidence is what the formats' own
inference (`stele.formats.conversion.infer`) goes by, with the counts it does not need: how often, not only whether.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from stele.errors import TooLarge
from stele.formats.conversion.infer import MAX_MEMBERS, MAX_PLACES
from stele.spark.data_audit.aggregation import add_counts, greatest_known, least_known

INT64: Final = range(-(1 << 63), 1 << 63)
EXACT: Final = range(-(1 << 53), (1 << 53) + 1)
"""Whole numbers a float of 64 bits holds, all of them."""


class Evidence(msgspec.Struct, frozen=True, omit_defaults=True):
    """One place.

    slots      how often what it is in was there
    there      how often it was there, null or not
    nulls      how often it was null
    kinds      how often it was of each kind: `boolean`, `integer`, `number`, `text`, `object`, `list`, `map`, or of a
               column's type
    low, high  the least and the greatest whole number, brought to 64 bits
    wide       whether one had more bits
    least, most  the same of numbers with fractions
    notations  texts: how many are also a `uuid`, `date`, `timestamp`, `local`
    digits     texts: decimal places of a second, at most
    values     texts: how often each is there; None when there are too many, or they are long
    shortest, longest  texts: in characters
    order      sum of its positions in what it is in
    members    of objects, by name; None once there were too many names
    parts      items of lists, values of maps
    keyed      what the values of objects with too many names have in common
    """

    slots: int = 0
    there: int = 0
    nulls: int = 0
    kinds: dict[str, int] = {}
    low: int | None = None
    high: int | None = None
    wide: bool = False
    least: float | None = None
    most: float | None = None
    notations: dict[str, int] = {}
    digits: int = 0
    values: dict[str, int] | None = {}
    shortest: int | None = None
    longest: int | None = None
    order: int = 0
    members: dict[str, Evidence] | None = {}
    parts: Evidence | None = None
    keyed: Evidence | None = None

    @property
    def present(self) -> int:
        """How often it was there and not null."""
        return self.there - self.nulls

    def merge_with(self, other: Evidence, most: int) -> Evidence:
        """What both saw; most is how many different texts are told apart."""
        members = _merge_by_name(self, other, most)
        keyed = _merge_optional(self.keyed, other.keyed, most)
        if members is None:
            for known in (self.members, other.members):
                keyed = _merge_optional(keyed, merge_members(known or {}, most), most)
        return Evidence(
            slots=self.slots + other.slots,
            there=self.there + other.there,
            nulls=self.nulls + other.nulls,
            kinds=add_counts(self.kinds, other.kinds),
            low=least_known(self.low, other.low),
            high=greatest_known(self.high, other.high),
            wide=self.wide or other.wide,
            least=least_known(self.least, other.least),
            most=greatest_known(self.most, other.most),
            notations=add_counts(self.notations, other.notations),
            digits=max(self.digits, other.digits),
            values=_merge_values(self.values, other.values, most),
            shortest=least_known(self.shortest, other.shortest),
            longest=greatest_known(self.longest, other.longest),
            order=self.order + other.order,
            members=members,
            parts=_merge_optional(self.parts, other.parts, most),
            keyed=keyed,
        )

    def iterate_places(self, path: str = "") -> Iterator[tuple[str, Evidence]]:
        """It and all places in it, by path: `place.city`, `tags[]`, `homes{}`; members in the order of the data."""
        yield path, self
        if self.parts is not None:
            yield from self.parts.iterate_places(f"{path}{'{}' if 'map' in self.kinds else '[]'}")
        if self.keyed is not None:
            yield from self.keyed.iterate_places(f"{path}{{}}")
        for name, member in sorted((self.members or {}).items(), key=lambda item: (item[1].mean_position, item[0])):
            yield from member.iterate_places(f"{path}.{name}" if path else name)

    @property
    def mean_position(self) -> float:
        """Its mean position."""
        return self.order / self.there if self.there else 0.0


def merge_members(members: Mapping[str, Evidence], most: int) -> Evidence | None:
    """What the members of objects have in common, as values of a map."""
    found: Evidence | None = None
    for member in members.values():
        mine = msgspec.structs.replace(member, slots=member.there, order=0)
        found = mine if found is None else found.merge_with(mine, most)
    return found


def check_size(evidence: Evidence) -> Evidence:
    """The same. Raises `TooLarge` when there are more places than a schema should have."""
    if sum(1 for _ in evidence.iterate_places()) > MAX_PLACES:
        raise TooLarge(f"the records have more than {MAX_PLACES} different places")
    return evidence


def limit_members(members: dict[str, Evidence]) -> dict[str, Evidence] | None:
    """The members, or None of so many that they are keys."""
    return members if len(members) <= MAX_MEMBERS else None


def _merge_by_name(one: Evidence, other: Evidence, most: int) -> dict[str, Evidence] | None:
    """Members of both; those one of them never had were not there as often as it had objects."""
    if one.members is None or other.members is None:
        return None
    mine, theirs = one.kinds.get("object", 0), other.kinds.get("object", 0)
    found: dict[str, Evidence] = {}
    for name in [*one.members, *(name for name in other.members if name not in one.members)]:
        left = one.members.get(name) or Evidence(slots=mine)
        right = other.members.get(name) or Evidence(slots=theirs)
        found[name] = left.merge_with(right, most)
    return limit_members(found)


def _merge_optional(one: Evidence | None, other: Evidence | None, most: int) -> Evidence | None:
    if one is None or other is None:
        return one if other is None else other
    return one.merge_with(other, most)


def _merge_values(one: dict[str, int] | None, other: dict[str, int] | None, most: int) -> dict[str, int] | None:
    if one is None or other is None:
        return None
    both = add_counts(one, other)
    return both if len(both) <= most else None
