"""Calls about the history and the surroundings of subjects, of a Stele registry.

See `endpoints` for how they are written. Other registries know nothing of it: they answer "not found".
"""

from __future__ import annotations

from stele.client.request import CachePolicy, Request, build_path, build_query, json_decoder
from stele.protocol.history import (
    CompatibilityMatrix,
    FieldLifelines,
    NamespaceAtlas,
    Neighbourhood,
    SubjectHistory,
)

_history = json_decoder(SubjectHistory)
_lifelines = json_decoder(FieldLifelines)
_matrix = json_decoder(CompatibilityMatrix)
_neighbourhood = json_decoder(Neighbourhood)
_atlas = json_decoder(NamespaceAtlas)


def history(subject: str, *, before: int | None = None, limit: int | None = None) -> Request[SubjectHistory]:
    # GET /api/history/{subject}?before&limit
    """The newest versions of a subject, each with its verdicts against the one before. Raises `SubjectNotFound`.

    Args:
        subject: Name of the subject.
        before: Only versions with a lower number.
        limit: How many at most.
    """
    parameters = build_query({"before": before, "limit": limit})
    route = build_path("api", "history", subject)
    return Request("GET", route, _history, parameters, subject=subject, cache_policy=CachePolicy.NEVER)


def lifelines(subject: str, *, limit: int | None = None) -> Request[FieldLifelines]:
    # GET /api/lifelines/{subject}?limit
    """The fields of a subject through its newest versions, so many at most. Raises `SubjectNotFound`."""
    parameters = build_query({"limit": limit})
    route = build_path("api", "lifelines", subject)
    return Request("GET", route, _lifelines, parameters, subject=subject, cache_policy=CachePolicy.NEVER)


def matrix(subject: str, *, limit: int | None = None, policy: str | None = None) -> Request[CompatibilityMatrix]:
    # GET /api/matrix/{subject}?limit&policy
    """Which of the newest versions reads data of which. Raises `SubjectNotFound`.

    Args:
        subject: Name of the subject.
        limit: How many versions at most.
        policy: Common name of the policy whose demands are marked; None: the one in force.
    """
    parameters = build_query({"limit": limit, "policy": policy})
    route = build_path("api", "matrix", subject)
    return Request("GET", route, _matrix, parameters, subject=subject, cache_policy=CachePolicy.NEVER)


def neighbours(subject: str, version: int | None = None, *, depth: int = 1) -> Request[Neighbourhood]:
    # GET /api/neighbours/{subject}?version&depth
    """What a version of a subject uses, and what uses the subject. Raises `SubjectNotFound`, `VersionNotFound`.

    Args:
        subject: Name of the subject.
        version: Its version; None: the newest active one.
        depth: How many references are followed in each direction.
    """
    parameters = build_query({"version": version, "depth": depth})
    return Request("GET", build_path("api", "neighbours", subject), _neighbourhood, parameters, subject=subject)


def atlas(namespace: str = "", *, after: str = "", limit: int | None = None) -> Request[NamespaceAtlas]:
    # GET /api/atlas?namespace&after&limit
    """The subjects of a namespace and the references between them.

    Args:
        namespace: '' is the default one.
        after: Name of the subject to go on behind.
        limit: How many at most.
    """
    parameters = build_query({"namespace": namespace or None, "after": after or None, "limit": limit})
    return Request("GET", "/api/atlas", _atlas, parameters)
