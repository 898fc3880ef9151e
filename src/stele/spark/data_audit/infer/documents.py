"""Evidence from JSON documents: values are sorted by place and kind, then looked at together as columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
import pyarrow as pa

from stele.formats.conversion.sample_shape import MAX_DEPTH
from stele.spark.data_audit.infer.columns import add_floats, add_integers, add_texts
from stele.spark.data_audit.infer.evidence import INT64, Evidence, limit_members, merge_members

_DEEP: Final = f"it is nested deeper than {MAX_DEPTH} levels"


def evidence_of_documents(documents: Sequence[bytes | str], most: int) -> tuple[Evidence, dict[str, int]]:
    """The evidence of documents, and how many are none, by reason; most is how many texts are told apart."""
    place = _DocumentPlace()
    reasons: dict[str, int] = {}
    for document in documents:
        try:
            value = _decode_document(document)
        except ValueError as error:
            why = str(error)
            reasons[why] = reasons.get(why, 0) + 1
        else:
            place.there += 1
            place.add_value(value)
    return place.make_evidence(place.there, most), reasons


def _decode_document(document: bytes | str) -> Any:
    """The value of a document. Raises ValueError with a reason that many documents share."""
    try:
        value = msgspec.json.decode(document)
    except RecursionError:
        raise ValueError(_DEEP) from None
    except UnicodeError:
        raise ValueError("it is not UTF-8") from None
    except msgspec.MsgspecError as error:
        raise ValueError(f"it is not JSON: {str(error).partition(' (byte')[0]}") from None
    if _count_brackets(document) > MAX_DEPTH and _is_deep(value):
        raise ValueError(_DEEP)
    return value


def _count_brackets(document: bytes | str) -> int:
    """At least as many as levels, and cheap to count."""
    if isinstance(document, str):
        return document.count("{") + document.count("[")
    return document.count(b"{") + document.count(b"[")


def _is_deep(value: Any) -> bool:
    """Whether there are more levels of values inside values than the formats' inference takes."""
    level, depth = [value], 0
    while level and depth <= MAX_DEPTH:
        inner: list[Any] = []
        for each in level:
            if isinstance(each, dict):
                inner += each.values()
            elif isinstance(each, list):
                inner += each
        level, depth = inner, depth + 1
    return bool(level)


class _DocumentPlace:
    """The values at one place of a batch."""

    __slots__ = (
        "booleans",
        "floats",
        "integers",
        "items",
        "lists",
        "members",
        "nulls",
        "objects",
        "order",
        "texts",
        "there",
    )

    def __init__(self) -> None:
        self.there = self.nulls = self.order = self.booleans = self.objects = self.lists = 0
        self.integers: list[int] = []
        self.floats: list[float] = []
        self.texts: list[str] = []
        self.members: dict[str, _DocumentPlace] = {}
        self.items: _DocumentPlace | None = None

    def add_value(self, value: Any) -> None:
        """One more value; whoever calls counts that it is there."""
        kind = type(value)
        if kind is str:
            self.texts.append(value)
        elif kind is dict:
            self.objects += 1
            members = self.members
            for at, (name, item) in enumerate(value.items()):
                member = members.get(name)
                if member is None:
                    member = members[name] = _DocumentPlace()
                member.there += 1
                member.order += at
                member.add_value(item)
        elif kind is int:
            self.integers.append(value)
        elif kind is float:
            self.floats.append(value)
        elif value is None:
            self.nulls += 1
        elif kind is bool:
            self.booleans += 1
        else:
            self.lists += 1
            items = self.items = self.items or _DocumentPlace()
            items.there += len(value)
            for item in value:
                items.add_value(item)

    def make_evidence(self, slots: int, most: int) -> Evidence:
        """What they show; slots is how often what the place is in was there."""
        counts = {"boolean": self.booleans, "object": self.objects, "list": self.lists}
        kinds = {name: count for name, count in counts.items() if count}
        seen = Evidence(slots=slots, there=self.there, nulls=self.nulls, kinds=kinds, order=self.order)
        if self.integers:
            narrow = [max(INT64[0], min(number, INT64[-1])) for number in self.integers]
            seen = add_integers(seen, pa.array(narrow, pa.int64()))
            seen = msgspec.structs.replace(seen, wide=narrow != self.integers)
        if self.floats:
            seen = add_floats(seen, pa.array(self.floats, pa.float64()))
        if self.texts:
            seen = add_texts(seen, pa.array(self.texts, pa.string()), most)
        members = {name: member.make_evidence(self.objects, most) for name, member in self.members.items()}
        kept = limit_members(members)
        return msgspec.structs.replace(
            seen,
            members=kept,
            keyed=merge_members(members, most) if kept is None else None,
            parts=None if self.items is None else self.items.make_evidence(self.items.there, most),
        )
