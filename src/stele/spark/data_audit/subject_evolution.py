"""How the subjects of a report came to be what they are: asked of the registry, drawn on the page.

A report is made without it where the registry is away, or is one that keeps no history; then a sentence says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final, Protocol, TypeVar

import msgspec

from stele.client import Request, ResponseError, history
from stele.errors import Unavailable
from stele.pictures import draw_field_lifelines, draw_story_line, tabulate_history, tabulate_lifelines
from stele.protocol.history import FieldLifelines, SubjectHistory
from stele.spark.data_audit.report import Figure, Section

T = TypeVar("T")

Labels = Mapping[str, Mapping[int, str]]
"""What a report knows of versions, in a few words, by subject and number."""

_NO_LABELS: Final[Labels] = MappingProxyType({})


class Ask(Protocol):
    """Sends a request to a registry. Raises `ResponseError`, `RegistryUnreachable`."""

    def __call__(self, request: Request[T], /) -> T:
        """Return the answer."""
        ...


class SubjectEvolution(msgspec.Struct, frozen=True):
    """A subject's versions and fields through time, as far as the registry tells them.

    subject    its name
    history    versions with the verdicts between neighbours; None where they are not at hand
    lifelines  fields through the versions; None where they are not at hand
    missing    why something is not at hand, '' where nothing is missing
    """

    subject: str
    history: SubjectHistory | None = None
    lifelines: FieldLifelines | None = None
    missing: str = ""


def load_evolutions(ask: Ask, subjects: Iterable[str]) -> tuple[SubjectEvolution, ...]:
    """Return what a registry tells of subjects; nothing more is asked of one that does not answer."""
    evolutions: list[SubjectEvolution] = []
    absent = ""
    for subject in dict.fromkeys(subjects):
        evolution = SubjectEvolution(subject, missing=absent)
        try:
            if not absent:
                evolution = msgspec.structs.replace(evolution, history=ask(history.history(subject)))
                evolution = msgspec.structs.replace(evolution, lifelines=ask(history.lifelines(subject)))
        except Unavailable as error:
            absent = f"the registry does not answer: {error}"
            evolution = msgspec.structs.replace(evolution, missing=absent)
        except ResponseError as error:
            evolution = msgspec.structs.replace(evolution, missing=f"the registry does not tell it: {error}")
        evolutions.append(evolution)
    return tuple(evolutions)


def miss_evolutions(subjects: Iterable[str], missing: str) -> tuple[SubjectEvolution, ...]:
    """Return subjects of which nothing is at hand, and why."""
    return tuple(SubjectEvolution(subject, missing=missing) for subject in dict.fromkeys(subjects))


def draw_evolutions(
    evolutions: Iterable[SubjectEvolution], labels: Labels = _NO_LABELS, heading: str = "use"
) -> Iterator[Section]:
    """Draw the story line and the field lifelines of subjects, each with its table.

    Args:
        evolutions: The subjects.
        labels: What the report knows of their versions.
        heading: Heading of the labels in the table of versions.
    """
    for evolution in evolutions:
        if evolution.history is not None:
            known = labels.get(evolution.subject, {})
            picture = draw_story_line(evolution.history, labels=known)
            table = tabulate_history(evolution.history, labels=known, heading=heading)
            yield Section(f"Versions of {evolution.subject}", figure=Figure(picture, table))
        if evolution.lifelines is not None:
            figure = Figure(draw_field_lifelines(evolution.lifelines), tabulate_lifelines(evolution.lifelines))
            yield Section(f"Fields of {evolution.subject}", figure=figure)


def describe_missing(evolutions: Iterable[SubjectEvolution]) -> tuple[str, ...]:
    """Return one sentence for each reason why pictures are missing."""
    subjects: dict[str, list[str]] = {}
    for evolution in evolutions:
        if evolution.missing:
            subjects.setdefault(evolution.missing, []).append(evolution.subject)
    return tuple(f"The history of {', '.join(names)} is not drawn: {reason}." for reason, names in subjects.items())
