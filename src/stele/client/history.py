"""Calls about the history and references of subjects, of a Stele registry.

They are written like those of `endpoints`. Other registries do not have these routes and answer "not found".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stele.client.request import CachePolicy, Request, build_path, build_query, json_decoder
from stele.protocol.history import (
    CompatibilityMatrix,
    FieldLifelines,
    NamespaceAtlas,
    Neighbourhood,
    SubjectHistory,
)


class VersionHistory(SubjectHistory, frozen=True):
    """The versions of a subject with their verdicts; a notebook shows the story line."""

    def _repr_html_(self) -> str:
        from stele import pictures

        return _render(self, pictures.draw_story_line, pictures.tabulate_history)


class Lifelines(FieldLifelines, frozen=True):
    """The fields of a subject through its versions; a notebook shows a bar for each."""

    def _repr_html_(self) -> str:
        from stele import pictures

        return _render(self, pictures.draw_field_lifelines, pictures.tabulate_lifelines)


class Matrix(CompatibilityMatrix, frozen=True):
    """Which version reads data of which other version. A notebook shows it as a grid."""

    def _repr_html_(self) -> str:
        from stele import pictures

        return _render(self, pictures.draw_compatibility_matrix, pictures.tabulate_matrix)


class Neighbours(Neighbourhood, frozen=True):
    """What a subject references and what references it. A notebook shows the graph."""

    def _repr_html_(self) -> str:
        from stele import pictures

        return _render(self, pictures.draw_neighbourhood, pictures.tabulate_neighbourhood)


class Atlas(NamespaceAtlas, frozen=True):
    """The subjects of a namespace and their references; a notebook shows the graph."""

    def _repr_html_(self) -> str:
        from stele import pictures

        return _render(self, pictures.draw_atlas, pictures.tabulate_atlas)


def _render(answer: Any, draw: Callable[[Any], Any], tabulate: Callable[[Any], Any]) -> str:
    """Return the picture of an answer with its stylesheet, and its table."""
    from stele.pictures import render_figure

    return render_figure(draw(answer), tabulate(answer), has_style=True)


_history = json_decoder(VersionHistory)
_lifelines = json_decoder(Lifelines)
_matrix = json_decoder(Matrix)
_neighbourhood = json_decoder(Neighbours)
_atlas = json_decoder(Atlas)


def history(subject: str, *, before: int | None = None, limit: int | None = None) -> Request[VersionHistory]:
    # GET /api/history/{subject}?before&limit
    """Return the newest versions of a subject, each with its verdicts against the one before. Raises `NotFound`.

    Args:
        subject: Name of the subject.
        before: Only versions with a lower number.
        limit: How many at most.
    """
    parameters = build_query({"before": before, "limit": limit})
    route = build_path("api", "history", subject)
    return Request("GET", route, _history, parameters, subject=subject, cache_policy=CachePolicy.NEVER)


def lifelines(subject: str, *, limit: int | None = None) -> Request[Lifelines]:
    # GET /api/lifelines/{subject}?limit
    """Return the fields of a subject in its newest versions, at most `limit` versions. Raises `NotFound`."""
    parameters = build_query({"limit": limit})
    route = build_path("api", "lifelines", subject)
    return Request("GET", route, _lifelines, parameters, subject=subject, cache_policy=CachePolicy.NEVER)


def matrix(subject: str, *, limit: int | None = None, policy: str | None = None) -> Request[Matrix]:
    # GET /api/matrix/{subject}?limit&policy
    """Return which of the newest versions reads data of which other version. Raises `NotFound`.

    Args:
        subject: Name of the subject.
        limit: How many versions at most.
        policy: Common name of the policy whose requirements are marked; None: the policy of the subject.
    """
    parameters = build_query({"limit": limit, "policy": policy})
    route = build_path("api", "matrix", subject)
    return Request("GET", route, _matrix, parameters, subject=subject, cache_policy=CachePolicy.NEVER)


def neighbours(subject: str, version: int | None = None, *, depth: int = 1) -> Request[Neighbours]:
    # GET /api/neighbours/{subject}?version&depth
    """Return what a version of a subject references, and what references the subject. Raises `NotFound`.

    Args:
        subject: Name of the subject.
        version: Its version; None: the newest active one.
        depth: How many references are followed in each direction.
    """
    parameters = build_query({"version": version, "depth": depth})
    return Request("GET", build_path("api", "neighbours", subject), _neighbourhood, parameters, subject=subject)


def atlas(namespace: str = "", *, after: str = "", limit: int | None = None) -> Request[Atlas]:
    # GET /api/atlas?namespace&after&limit
    """Return the subjects of a namespace and the references between them.

    Args:
        namespace: '' is the default one.
        after: Name of the subject after which the page starts.
        limit: How many at most.
    """
    parameters = build_query({"namespace": namespace or None, "after": after or None, "limit": limit})
    return Request("GET", "/api/atlas", _atlas, parameters)
