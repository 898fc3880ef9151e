"""Subscriptions to events of the registry, as CloudEvents Subscriptions has them."""

from __future__ import annotations

import uuid
from typing import Annotated, Any

from litestar import Request, Response, delete, get, post, put, route
from litestar.params import PathParameter

from stele.apis.cncf import entities as api
from stele.apis.cncf import subscriptions
from stele.apis.cncf.desk import AtDesk
from stele.apis.cncf.names import id_in
from stele.apis.cncf.parameters import ASK, READ, After, Limit, page_of
from stele.apis.http.bodies import read_body
from stele.apis.http.openapi import openapi_body
from stele.apis.http.requests import caller_name

_ALL = "/subscriptions"
_ONE = f"{_ALL}/{{subscription:str}}"
_BODY = openapi_body(api.SubscriptionRequest)

Name = Annotated[str, PathParameter(description="id of a subscription")]


@get(_ALL, **READ)
async def query_subscriptions(desk: AtDesk, limit: Limit = None, after: After = "") -> Response[list[api.Subscription]]:
    # GET /subscriptions
    """All subscriptions, without their secrets."""
    found = await subscriptions.read(desk.registry)
    page = page_of(list(found), limit, after, f"{desk.base}{_ALL}")
    return Response([subscriptions.shown(found[name]) for name in page.content], headers=page.headers)


@post(_ALL, operation_class=_BODY, status_code=201, **READ)
async def create_subscription(desk: AtDesk, request: Request[Any, Any, Any]) -> Response[api.Subscription]:
    # POST /subscriptions
    """Subscribe; the server gives the id."""
    given = await read_body(request, api.SubscriptionRequest)
    made = await subscriptions.create(desk.registry, uuid.uuid4().hex, given, caller_name(request))
    return Response(subscriptions.shown(made), headers={"Location": f"{desk.base}{_ALL}/{made.id}"})


@get(_ONE, **READ)
async def retrieve_subscription(desk: AtDesk, subscription: Name) -> api.Subscription:
    # GET /subscriptions/{id}
    """A subscription, without its secrets."""
    return subscriptions.shown(await subscriptions.read_one(desk.registry, id_in(subscription)))


@put(_ONE, operation_class=_BODY, **ASK)
async def update_subscription(desk: AtDesk, request: Request[Any, Any, Any], subscription: Name) -> api.Subscription:
    # PUT /subscriptions/{id}
    """Replace a subscription; without new secrets for its sink it keeps the ones it has."""
    given = await read_body(request, api.SubscriptionRequest)
    changed = await subscriptions.update(desk.registry, id_in(subscription), given, caller_name(request))
    return subscriptions.shown(changed)


@delete(_ONE, **ASK)
async def delete_subscription(desk: AtDesk, request: Request[Any, Any, Any], subscription: Name) -> api.Subscription:
    # DELETE /subscriptions/{id}
    """End a subscription; the answer is what it was."""
    ended = await subscriptions.delete(desk.registry, id_in(subscription), caller_name(request))
    return subscriptions.shown(ended)


@route(_ALL, http_method="OPTIONS", status_code=200, include_in_schema=False)
async def options_of_all() -> Response[bytes]:
    # OPTIONS /subscriptions
    """What can be done with subscriptions."""
    return Response(b"", headers={"Allow": "GET, HEAD, OPTIONS, POST"})


@route(_ONE, http_method="OPTIONS", status_code=200, include_in_schema=False)
async def options_of_one(subscription: Name) -> Response[bytes]:
    # OPTIONS /subscriptions/{id}
    """What can be done with one."""
    return Response(b"", headers={"Allow": "DELETE, GET, HEAD, OPTIONS, PUT"})


ROUTES = [
    options_of_all,
    options_of_one,
    query_subscriptions,
    create_subscription,
    retrieve_subscription,
    update_subscription,
    delete_subscription,
]
"""The framework answers OPTIONS itself unless it learns of these before all others."""
