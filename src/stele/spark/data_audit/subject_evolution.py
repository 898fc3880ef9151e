"""Histories of a report's subjects, loaded from the registry and drawn on the page.

If the registry does not answer or keeps no history, the report is made without them, and a sentence gives the reason.
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
"""Short labels of versions, by subject and version number."""

_NO_LABELS: Final[Labels] = MappingProxyType({})


class Ask(Protocol):
    """Sends a request to a registry. Raises `ResponseError`, `RegistryUnreachable`."""

    def __call__(self, request: Request[T], /) -> T:
        """Return the response."""
        ...


class SubjectEvolution(msgspec.Struct, frozen=True):
    """The history of a subject's versions and fields, as far as the registry has it.

    subject    its name
    history    versions with the verdicts between neighbours; None if not available
    lifelines  fields over the versions; None if not available
    missing    why something is not available, '' if nothing is missing
    """

    subject: str
    history: SubjectHistory | None = None
    lifelines: FieldLifelines | None = None
    missing: str = ""


def load_evolutions(ask: Ask, subjects: Iterable[str]) -> tuple[SubjectEvolution, ...]:
    """Load the histories of subjects. After a request without an answer, no more requests are sent."""
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
            evolution = msgspec.structs.replace(evolution, missing=f"the registry returned an error: {error}")
        evolutions.append(evolution)
    return tuple(evolutions)


def miss_evolutions(subjects: Iterable[str], missing: str) -> tuple[SubjectEvolution, ...]:
    """Return empty histories of subjects, with the reason."""
    return tuple(SubjectEvolution(subject, missing=missing) for subject in dict.fromkeys(subjects))


def draw_evolutions(
    evolutions: Iterable[SubjectEvolution], labels: Labels = _NO_LABELS, heading: str = "use"
) -> Iterator[Section]:
    """Draw the story line and the field lifelines of subjects, each with its table.

    Args:
        evolutions: The histories of the subjects.
        labels: Labels of their versions.
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
    """Return one sentence for each reason why histories are missing."""
    subjects: dict[str, list[str]] = {}
    for evolution in evolutions:
        if evolution.missing:
            subjects.setdefault(evolution.missing, []).append(evolution.subject)
    return tuple(f"The history of {', '.join(names)} is not drawn: {reason}." for reason, names in subjects.items())
