"""Access: what right each endpoint wants, and the check before it runs.

Every endpoint says what it does and where the resource is named (`access`); a test walks the routes of all dialects and
fails for one that does not. What a path does not tell, because it stands in a body or is many things at once, the
endpoint or the service beneath checks itself.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any, Final, NamedTuple

from litestar import Request
from litestar.handlers import BaseRouteHandler
from litestar.types import ASGIApp, Middleware, Receive, Scope, Send

from stele.core.access import REGISTRY_RESOURCE, Operation, Resource
from stele.errors import InvalidRequest
from stele.service.registry import Registry

ACCESS: Final = "stele_access"
"""Option of an endpoint under which its `EndpointAccess` stands."""


APP_STATE: Final = "stele_app_state"
"""Key of a scope under which what all requests about one registry share stands."""


class Place(StrEnum):
    """Where an endpoint's resource is named."""

    PATH = "path"
    """In the parameters of the path: the dialect turns them into a resource."""
    REGISTRY = "registry"
    """It is the registry as a whole."""
    LIST = "list"
    """It is many things: the answer leaves out those that the caller has no right to."""
    INSIDE = "inside"
    """In the body or behind an id: the endpoint or the service beneath checks it."""
    NOWHERE = "nowhere"
    """It tells nothing that needs a right: versions of the API, lists of formats."""


class EndpointAccess(NamedTuple):
    """The right an endpoint wants, and where the resource is named."""

    operation: Operation
    place: Place


def access(operation: Operation, place: Place = Place.PATH) -> dict[str, Any]:
    """Return the option of an endpoint that wants this right: `@get(path, opt=access(Operation.READ))`."""
    return {ACCESS: EndpointAccess(operation, place)}


NO_RIGHT_NEEDED: Final = access(Operation.LIST, Place.NOWHERE)
"""Option of an endpoint that everybody may ask."""

FindResource = Callable[[Request[Any, Any, Any]], Resource]
"""Turns the path of a request, and what belongs to it in the query, into what they name; raises for bad names."""


def check_access(find_resource: FindResource) -> Middleware:
    """Middleware: raises `Forbidden` or `Unauthenticated` before an endpoint that the caller has no right to.

    An endpoint that does not say which right it wants is for those who may do everything.
    """

    def middleware(app: ASGIApp) -> ASGIApp:
        async def handle(scope: Scope, receive: Receive, send: Send) -> None:
            wanted = find_access(scope["route_handler"]) or _UNDECLARED
            if wanted.place is not Place.NOWHERE and not _is_of_framework(scope):
                registry: Registry = get_app_state(scope).registry
                await registry.heed_notices()  # Another node may have changed the rules.
                if not registry.access.is_open:
                    if wanted.place is Place.REGISTRY:
                        registry.access.require(wanted.operation, REGISTRY_RESOURCE)
                    elif wanted.place is Place.PATH:
                        registry.access.require(wanted.operation, find_resource(Request(scope)))
            await app(scope, receive, send)

        return handle

    return middleware


def get_app_state(scope: Scope) -> Any:
    """Return what all requests about the registry of this one share: the `AppState` of the dialect."""
    return scope[APP_STATE]  # type: ignore[typeddict-item]  # a key of ours


_UNDECLARED: Final = EndpointAccess(Operation.MANAGE_ACCESS, Place.REGISTRY)


def _is_of_framework(scope: Scope) -> bool:
    """Whether Litestar made the endpoint: for OPTIONS, and for the OpenAPI document."""
    return scope.get("method") == "OPTIONS" or scope["path"].startswith("/_docs/")


def find_access(handler: BaseRouteHandler) -> EndpointAccess | None:
    """Return the right an endpoint says it wants, None where it says nothing."""
    wanted: EndpointAccess | None = handler.opt.get(ACCESS)
    return wanted


def parse_single(request: Request[Any, Any, Any], name: str) -> str:
    """Return a parameter of the query, '' where it is not there. Raises `InvalidRequest` for more than one."""
    values = request.query_params.getall(name, [])
    if len(values) > 1:
        raise InvalidRequest(f"{name} is given {len(values)} times")
    return values[0] if values else ""
