"""Pausing and resuming the delivery of events to a subscriber."""

from __future__ import annotations

import msgspec

from stele.apis.http.access import Place, access
from stele.apis.http.dependencies import VOLATILE
from stele.core.access import Operation
from stele.errors import InvalidRequest, NotFound
from stele.service.delivery.overview import SubscriptionOverview, change_state, list_overviews
from stele.service.delivery.status import DeliveryState
from stele.ui.forms import Destination, Form, FormPage
from stele.ui.pages import Page, PageRequest

_STATES = {"pause": (DeliveryState.PAUSED, "paused"), "resume": (DeliveryState.ACTIVE, "resumed")}


class SubscriptionPage(msgspec.Struct, frozen=True):
    """A subscription; refusal says why the caller may not change it."""

    subscription: SubscriptionOverview
    refusal: str


async def view_subscription(page: PageRequest) -> SubscriptionPage:
    """Show how far a subscription is, the last response of its sink, and the events that the sink refused."""
    name = page.get_segment("subscription")
    for each in await list_overviews(page.registry):
        if each.id == name:
            return SubscriptionPage(each, page.find_refusal(Operation.MANAGE_EXPORTERS, is_change=True))
    raise NotFound(f"There is no subscription '{name}'.")


async def submit_subscription(page: PageRequest, form: Form) -> msgspec.Struct:
    """Pause or resume a subscription. No event is lost during a pause."""
    action = form.get("action")
    if action not in _STATES:
        raise InvalidRequest(f"action must be one of {', '.join(_STATES)}")
    state, done = _STATES[action]
    await change_state(page.registry, page.get_segment("subscription"), state)
    return Destination(f"/events?done={done}")


def list_form_pages() -> list[FormPage]:
    """Return the pages of this module."""
    right = access(Operation.MANAGE_EXPORTERS, Place.REGISTRY)
    page = Page(
        "/ui/events/{subscription:str}",
        view_subscription,
        "subscription.html.j2",
        right | {VOLATILE: True},
        menu="/events",
        twin="/ui/events/{subscription:str}/state.json",
    )
    return [FormPage(page, submit_subscription, right)]
