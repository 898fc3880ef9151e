"""Access control of endpoints: the right that each endpoint requires, and the check before it runs.

Every endpoint declares its operation and where its resource is named (`access`). A test visits the routes of all
dialects and fails for an endpoint without this declaration. If the path does not name the resource, because it is in
the body or there are several, the endpoint or the service that it calls checks the right itself.
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
"""Option of an endpoint that holds its `EndpointAccess`."""


APP_STATE: Final = "stele_app_state"
"""Key of the ASGI scope that holds the state that all requests to one registry share."""


class Place(StrEnum):
    """Where an endpoint's resource is named."""

    PATH = "path"
    """In the parameters of the path. The dialect turns them into a resource."""
    REGISTRY = "registry"
    """Nowhere: the resource is the registry as a whole."""
    LIST = "list"
    """Nowhere: the answer lists many resources, without those that the caller has no right to."""
    INSIDE = "inside"
    """In the body or behind an id. The endpoint or the service that it calls checks the right."""
    NOWHERE = "nowhere"
    """Nowhere: the answer requires no right, such as versions of the API or lists of formats."""


class EndpointAccess(NamedTuple):
    """The right that an endpoint requires, and where its resource is named."""

    operation: Operation
    place: Place


def access(operation: Operation, place: Place = Place.PATH) -> dict[str, Any]:
    """Return the option of an endpoint that requires this right: `@get(path, opt=access(Operation.READ))`."""
    return {ACCESS: EndpointAccess(operation, place)}


NO_RIGHT_NEEDED: Final = access(Operation.LIST, Place.NOWHERE)
"""Option of an endpoint that requires no right."""

FindResource = Callable[[Request[Any, Any, Any]], Resource]
"""Returns the resource that a request names in its path, and in the related query parameters. Raises for bad names."""


def check_access(find_resource: FindResource) -> Middleware:
    """Middleware: raises `Forbidden` or `Unauthenticated` before an endpoint that the caller has no right to.

    An endpoint that declares no right requires the right to manage access to the registry.
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
    """Return the state that all requests to the registry of this request share: the `AppState` of the dialect."""
    return scope[APP_STATE]  # type: ignore[typeddict-item]  # a key of ours


_UNDECLARED: Final = EndpointAccess(Operation.MANAGE_ACCESS, Place.REGISTRY)


def _is_of_framework(scope: Scope) -> bool:
    """Return whether Litestar created the endpoint: for OPTIONS, and for the OpenAPI document."""
    return scope.get("method") == "OPTIONS" or scope["path"].startswith("/_docs/")


def find_access(handler: BaseRouteHandler) -> EndpointAccess | None:
    """Return the right that an endpoint declares, or None."""
    wanted: EndpointAccess | None = handler.opt.get(ACCESS)
    return wanted


def parse_single(request: Request[Any, Any, Any], name: str) -> str:
    """Return a query parameter, '' if it is absent. Raises `InvalidRequest` if it is given more than once."""
    values = request.query_params.getall(name, [])
    if len(values) > 1:
        raise InvalidRequest(f"{name} is given {len(values)} times")
    return values[0] if values else ""
