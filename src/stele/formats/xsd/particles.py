"""The elements of a content model with how often each occurs."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from xmlschema.validators import XsdAnyElement, XsdGroup, XsdSimpleType

from stele.errors import TooLarge
from stele.formats.conversion.model import Loss
from stele.formats.xsd.content import is_substitutable
from stele.formats.xsd.witness import local_name

MAX_DEPTH: Final = 100
"""Groups inside each other; the parser takes fewer."""


class Occurrence(NamedTuple):
    """An element below another one.

    required  every document has at least one
    many      there may be more than one; low and high are its bounds when it alone has them, else None
    group     name of the choice it is a branch of, ''
    """

    name: str
    element: Any
    required: bool
    many: bool
    low: int | None
    high: int | None
    group: str


class OccurrenceLister:
    """Lists what content models hold and reports what the list does not say."""

    def __init__(self, losses: list[Loss]) -> None:
        self._losses = losses

    def list_occurrences(self, kind: Any, path: str) -> list[Occurrence]:
        """The elements of a complex type, each name once."""
        if isinstance(kind.content, XsdSimpleType):
            return []
        walk = _ContentWalk()
        walk.walk_group(kind.content, required=True, many=False, depth=0)
        opened = getattr(kind, "open_content", None)
        if walk.any or (opened is not None and opened.mode != "none" and opened.any_element is not None):
            self._add_loss(path, "ANY", "Elements that the schema does not name are allowed here; they have no place.")
        if walk.repeated:
            self._losses.append(Loss(path, "ORDER", "How repeated elements follow each other is not kept.", data=True))
        if walk.loose:
            why = "That a document has one branch of a choice is not said where a branch is more than one element."
            self._losses.append(Loss(path, "CHOICE", why))
        for head in dict.fromkeys(walk.heads):
            why = (
                f"Elements of other schemas may join the substitution group of {local_name(head)!r}; "
                "they have no place."
            )
            self._losses.append(Loss(path, "SUBSTITUTION", why))
        return _merge_occurrences(walk.found)

    def _add_loss(self, path: str, what: str, why: str) -> None:
        self._losses.append(Loss(path, what, why, data=True))


class _ContentWalk:
    """One content model. any: it has wildcards; repeated: a group of several occurs more than once; loose: a branch of
    a choice is a group."""

    def __init__(self) -> None:
        self.found: list[Occurrence] = []
        self.heads: list[str] = []
        self.any = self.repeated = self.loose = False
        self._choices = 0

    def walk_group(self, group: Any, *, required: bool, many: bool, group_name: str = "", depth: int) -> None:
        """Everything in a group; depth counts the groups around it. Raises `TooLarge`."""
        if depth > MAX_DEPTH:
            raise TooLarge(f"groups are nested deeper than {MAX_DEPTH} levels")
        items = [item for item in group if item.max_occurs != 0]
        required = required and group.min_occurs > 0
        repeats = group.max_occurs is None or group.max_occurs > 1
        many = many or repeats
        self.repeated = self.repeated or (repeats and len(items) > 1)
        if group.model == "choice" and len(items) > 1:
            required = False
            single = all(not isinstance(item, XsdGroup) and item.max_occurs == 1 for item in items)
            if single and not many:
                self._choices += 1
                group_name = f"choice_{self._choices}" if self._choices > 1 else "choice"
            else:
                self.loose = self.loose or not many
                group_name = ""
        elif len(items) > 1:
            group_name = ""
        for item in items:
            self._walk_particle(item, required=required, many=many, name=group_name, depth=depth)

    def _walk_particle(self, item: Any, *, required: bool, many: bool, name: str, depth: int) -> None:
        if isinstance(item, XsdGroup):
            self.walk_group(item, required=required, many=many, group_name=name, depth=depth + 1)
            return
        if isinstance(item, XsdAnyElement):
            self.any = True
            return
        options = _substitution_options(item)
        if item.ref is not None and len(options) > 1:
            self.heads.append(item.name)
        own = item.max_occurs is None or item.max_occurs > 1
        several = len(options) > 1
        if several and not (many or own or name):
            self._choices += 1
            name = f"choice_{self._choices}" if self._choices > 1 else "choice"
        self.repeated = self.repeated or (several and own)
        alone = own and not many and not several
        for full_name, element in options.items():
            self.found.append(
                Occurrence(
                    full_name,
                    element,
                    required and item.min_occurs > 0 and not several,
                    many or own,
                    item.min_occurs if alone else None,
                    item.max_occurs if alone else None,
                    "" if many or own else name,
                )
            )


def _substitution_options(item: Any) -> dict[str, Any]:
    """The elements that may stand where a particle is: its own, or those of its substitution group."""
    if item.ref is None:
        return {item.name: item}
    options = {item.name: item.ref} if not item.ref.abstract else {}
    if "substitution" not in item.ref.block:
        members = (other for other in item.iter_substitutes() if not other.abstract)
        options |= {other.name: other for other in members if is_substitutable(item.ref, other)}
    return options


def _merge_occurrences(found: list[Occurrence]) -> list[Occurrence]:
    """Each name once: what stands in several places occurs more than once, or in one of several branches."""
    merged: dict[str, Occurrence] = {}
    for one in found:
        other = merged.get(one.name)
        merged[one.name] = (
            one
            if other is None
            else other._replace(required=other.required or one.required, many=True, low=None, high=None, group="")
        )
    return list(merged.values())
