"""Access: what right each endpoint wants, and the check before it runs.

Every endpoint says what it does with what (`access`); a test walks the routes of all dialects and fails for one that
does not. What a path does not tell, because it stands in a body or is many things at once, the endpoint or the service
beneath checks itself, and the endpoint says so (`CHECKED_INSIDE`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Final, NamedTuple

from litestar.types import ASGIApp, Middleware, Receive, Scope, Send

from stele.core.access import REGISTRY_RESOURCE, Operation, Resource
from stele.service.registry import Registry

ACCESS: Final = "stele_access"
"""Option of an endpoint under which its `EndpointAccess` stands."""


class Place(StrEnum):
    """Where an endpoint's resource is named."""

    PATH = "path"
    """In the parameters of the path: the dialect turns them into a resource."""
    REGISTRY = "registry"
    """It is the registry as a whole."""
    INSIDE = "inside"
    """In the body, behind an id, or in many subjects: the endpoint checks or filters by itself."""
    NOWHERE = "nowhere"
    """It tells nothing that needs a right: versions of the API, lists of formats."""


class EndpointAccess(NamedTuple):
    """The right an endpoint wants, and where the resource is named."""

    operation: Operation
    place: Place


def access(operation: Operation, place: Place = Place.PATH) -> dict[str, Any]:
    """Return the option of an endpoint that wants this right: `@get(path, opt=access(Operation.READ))`."""
    return {ACCESS: EndpointAccess(operation, place)}


def check_access(registry: Registry, find_resource: Callable[[Mapping[str, Any]], Resource]) -> Middleware:
    """Middleware: raises `Forbidden` before an endpoint that the caller has no right to.

    Args:
        registry: Whose rules count.
        find_resource: Turns the parameters of a path into what they name.
    """

    def middleware(app: ASGIApp) -> ASGIApp:
        async def handle(scope: Scope, receive: Receive, send: Send) -> None:
            wanted: EndpointAccess | None = scope["route_handler"].opt.get(ACCESS) if "route_handler" in scope else None
            if wanted is not None and wanted.place in {Place.PATH, Place.REGISTRY}:
                resource = REGISTRY_RESOURCE if wanted.place is Place.REGISTRY else find_resource(scope["path_params"])
                registry.access.require(wanted.operation, resource)
            await app(scope, receive, send)

        return handle

    return middleware
