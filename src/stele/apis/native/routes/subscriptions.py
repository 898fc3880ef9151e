"""How far the delivery of events to subscribers is, and a switch for each subscription.

Subscriptions are made and changed in the CNCF API (`/subscriptions`).
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from litestar import get, post
from litestar.handlers import HTTPRouteHandler
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import PathParameter

from stele.apis.http.access import Place, access
from stele.apis.http.requests import decode_segment
from stele.apis.native.errors import NativeError
from stele.core.access import Operation
from stele.service.delivery.overview import SubscriptionOverview, change_state, list_overviews
from stele.service.delivery.status import DeliveryState
from stele.service.registry import Registry

SubscriptionId = Annotated[str, PathParameter(description="id of a subscription")]
_NOT_FOUND = {404: ResponseSpec(NativeError, description="No such subscription", generate_examples=False)}
_RIGHT = access(Operation.MANAGE_EXPORTERS, Place.REGISTRY)


class SubscriptionsOut(msgspec.Struct, frozen=True):
    """All subscriptions, by id."""

    subscriptions: list[SubscriptionOverview]


def create_routes(registry: Registry) -> list[HTTPRouteHandler]:
    """Return the endpoints about the delivery of events of one registry."""

    @get("/api/subscriptions", opt=_RIGHT)
    async def list_subscriptions() -> SubscriptionsOut:
        # GET /api/subscriptions
        """Show how far each subscription is, what its sink last answered, and which events it refused."""
        return SubscriptionsOut(await list_overviews(registry))

    @post("/api/subscriptions/{subscription:str}/pause", status_code=200, responses=_NOT_FOUND, opt=_RIGHT)
    async def pause_subscription(subscription: SubscriptionId) -> SubscriptionOverview:
        # POST /api/subscriptions/{subscription}/pause
        """Send nothing more to a subscriber until it is resumed; it misses nothing."""
        return await change_state(registry, decode_segment(subscription), DeliveryState.PAUSED)

    @post("/api/subscriptions/{subscription:str}/resume", status_code=200, responses=_NOT_FOUND, opt=_RIGHT)
    async def resume_subscription(subscription: SubscriptionId) -> SubscriptionOverview:
        # POST /api/subscriptions/{subscription}/resume
        """Send a subscriber everything since it was paused, and go on."""
        return await change_state(registry, decode_segment(subscription), DeliveryState.ACTIVE)

    return [list_subscriptions, pause_subscription, resume_subscription]
