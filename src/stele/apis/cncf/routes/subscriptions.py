"""Subscriptions to events of the registry (CloudEvents Subscriptions); `service.delivery` sends the events."""

from __future__ import annotations

import uuid
from typing import Annotated, Any

from litestar import Request, Response, delete, get, post, put, route
from litestar.params import PathParameter

from stele.apis.cncf import models as api
from stele.apis.cncf import subscription_store
from stele.apis.cncf.operations import InjectedOperations
from stele.apis.cncf.params import READ, STATUS_200, After, Limit, build_page
from stele.apis.cncf.translate import decode_id
from stele.apis.http.access import NO_RIGHT_NEEDED, Place, access
from stele.apis.http.application import openapi_body
from stele.apis.http.empty_response import EmptyResponse
from stele.apis.http.requests import read_body
from stele.core.access import Operation
from stele.protocol.cncf import Subscription

_ALL = "/subscriptions"
_ONE = f"{_ALL}/{{subscription:str}}"
_BODY = openapi_body(api.SubscriptionRequest)

SubscriptionId = Annotated[str, PathParameter(description="id of a subscription")]


@get(_ALL, **READ, opt=access(Operation.MANAGE_EXPORTERS, Place.REGISTRY))
async def query_subscriptions(
    operations: InjectedOperations, limit: Limit = None, after: After = ""
) -> Response[list[Subscription]]:
    # GET /subscriptions
    """Return all subscriptions without their secrets."""
    subscriptions = await subscription_store.list_subscriptions(operations.registry)
    page = build_page(list(subscriptions), limit, after, f"{operations.base}{_ALL}")
    return Response(
        [subscription_store.without_secrets(subscriptions[name]) for name in page.content], headers=page.headers
    )


@post(
    _ALL,
    operation_class=_BODY,
    status_code=201,
    **READ,
    opt=access(Operation.MANAGE_EXPORTERS, Place.REGISTRY),
)
async def create_subscription(
    operations: InjectedOperations, request: Request[Any, Any, Any]
) -> Response[Subscription]:
    # POST /subscriptions
    """Create a subscription; the server assigns the id."""
    body = await read_body(request, api.SubscriptionRequest)
    root = operations.root
    created = await subscription_store.create_subscription(operations.registry, uuid.uuid4().hex, body, root)
    return Response(
        subscription_store.without_secrets(created), headers={"Location": f"{operations.base}{_ALL}/{created.id}"}
    )


@get(_ONE, **READ, opt=access(Operation.MANAGE_EXPORTERS, Place.REGISTRY))
async def retrieve_subscription(operations: InjectedOperations, subscription: SubscriptionId) -> Subscription:
    # GET /subscriptions/{id}
    """Return a subscription without its secrets."""
    return subscription_store.without_secrets(
        await subscription_store.get_subscription(operations.registry, decode_id(subscription))
    )


@put(_ONE, operation_class=_BODY, **STATUS_200, opt=access(Operation.MANAGE_EXPORTERS, Place.REGISTRY))
async def update_subscription(
    operations: InjectedOperations, request: Request[Any, Any, Any], subscription: SubscriptionId
) -> Subscription:
    # PUT /subscriptions/{id}
    """Replace a subscription. If the request has no secrets for the sink, the stored ones are kept."""
    body = await read_body(request, api.SubscriptionRequest)
    name = decode_id(subscription)
    replaced = await subscription_store.update_subscription(operations.registry, name, body, operations.root)
    return subscription_store.without_secrets(replaced)


@delete(_ONE, **STATUS_200, opt=access(Operation.MANAGE_EXPORTERS, Place.REGISTRY))
async def delete_subscription(
    operations: InjectedOperations, request: Request[Any, Any, Any], subscription: SubscriptionId
) -> Subscription:
    # DELETE /subscriptions/{id}
    """Delete a subscription and return it."""
    ended = await subscription_store.delete_subscription(operations.registry, decode_id(subscription))
    return subscription_store.without_secrets(ended)


@route(_ALL, http_method="OPTIONS", status_code=200, include_in_schema=False, opt=NO_RIGHT_NEEDED)
async def options_of_all() -> EmptyResponse:
    # OPTIONS /subscriptions
    """Return the methods for all subscriptions."""
    return EmptyResponse(200, {"Allow": "GET, HEAD, OPTIONS, POST"})


@route(_ONE, http_method="OPTIONS", status_code=200, include_in_schema=False, opt=NO_RIGHT_NEEDED)
async def options_of_one(subscription: SubscriptionId) -> EmptyResponse:
    # OPTIONS /subscriptions/{id}
    """Return the methods for one subscription."""
    return EmptyResponse(200, {"Allow": "DELETE, GET, HEAD, OPTIONS, PUT"})


ROUTES = [
    options_of_all,
    options_of_one,
    query_subscriptions,
    create_subscription,
    retrieve_subscription,
    update_subscription,
    delete_subscription,
]
"""All endpoints. Those for OPTIONS come first: otherwise Litestar answers OPTIONS itself."""
