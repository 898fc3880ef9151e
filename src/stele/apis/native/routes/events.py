"""Changes of the registry as CloudEvents, and the progress of their delivery to subscribers.

Clients read events page by page, wait for the next ones, or get a stream in a browser. Subscriptions are created and
changed in the CNCF API (`/subscriptions`); here each has its state and can be paused.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Annotated, Any, Final

import msgspec
from litestar import Request, Response, get, post
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import PathParameter, QueryParameter
from litestar.response import ServerSentEvent, ServerSentEventMessage

from stele.apis.http.access import Place, access
from stele.apis.http.dependencies import VOLATILE
from stele.apis.http.media_types import is_preferred
from stele.apis.http.requests import decode_segment, find_base_uri, mark_waiting, parse_whole_number, time_limit
from stele.apis.native.errors import ERRORS, NativeError
from stele.apis.native.params import InjectedRegistry, InjectedState
from stele.core.access import Operation
from stele.errors import InvalidRequest
from stele.protocol.cncf import CloudEvent
from stele.service import change_events as service
from stele.service.change_events import MOST_RECORDS, ChangeEvent, EventPosition, parse_position
from stele.service.delivery.overview import SubscriptionOverview, change_state, list_overviews
from stele.service.delivery.status import DeliveryState
from stele.service.registry import Registry

_MOST_SECONDS: Final = 300
_BREATH_SECONDS: Final = 15.0
"""Interval in seconds at which a stream without events sends a comment, to keep the connection open."""
_SHARE_OF_LIMIT: Final = 0.8
"""Share of the time limit of a request after which a stream or a wait ends. The client then sends the next request."""
_STREAM: Final = "text/event-stream"

After = Annotated[
    str, QueryParameter(description="position to start after: number of a record, or id of an event; 0: from the start")
]
Wait = Annotated[
    str,
    QueryParameter(
        schema_extra={"type": "integer", "minimum": 0, "maximum": _MOST_SECONDS},
        description="seconds to wait if there is no event yet",
    ),
]
Limit = Annotated[
    str,
    QueryParameter(
        schema_extra={"type": "integer", "minimum": 1, "maximum": MOST_RECORDS},
        description="most records of the log to read",
    ),
]
Types = Annotated[list[str] | None, QueryParameter(name="type", description="only events of these types")]
OfSubject = Annotated[
    str,
    QueryParameter(name="subject", description="only events whose subject has this prefix: `/schemagroups/default`"),
]


class EventsAnswer(msgspec.Struct, frozen=True):
    """Events in order; next is the value of `after` for the next request."""

    events: list[CloudEvent]
    next: str


@get(
    "/api/events",
    opt={VOLATILE: True, **access(Operation.LIST, Place.LIST)},
    responses={
        400: ERRORS[400],
        422: ERRORS[422],
        200: ResponseSpec(EventsAnswer, description="Events", generate_examples=False),
    },
)
async def read_events(
    request: Request[Any, Any, Any],
    app_state: InjectedState,
    after: After = "",
    wait: Wait = "0",
    limit: Limit = "100",
    types: Types = None,
    subject: OfSubject = "",
) -> Response[Any]:
    # GET /api/events?after&wait&limit&type&subject
    """Show what was created, changed or deleted after a position, as CloudEvents without data, oldest first.

    With `Accept: text/event-stream` they are server-sent events, from `Last-Event-ID` on, else from now on.
    """
    source = find_base_uri(request, app_state.options.public_url)
    filters = [{"prefix": {"subject": subject}}] if subject else []
    is_wanted = service.choose_events(source, types or (), filters)
    seconds = min(parse_whole_number("wait", wait, 0, _MOST_SECONDS), time_limit(request) * _SHARE_OF_LIMIT)
    records = parse_whole_number("limit", limit, 1, MOST_RECORDS)
    if is_preferred(request.headers.get("accept", ""), _STREAM):
        begin = await _find_start(app_state.registry, request.headers.get("last-event-id", "") or after)
        mark_waiting(request)
        deadline = asyncio.get_running_loop().time() + time_limit(request) * _SHARE_OF_LIMIT
        return ServerSentEvent(_stream_events(app_state.registry, begin, is_wanted, source, deadline))
    if seconds:
        mark_waiting(request)
    page = await service.wait_for_events(app_state.registry, parse_position(after or "0"), seconds, is_wanted, records)
    return Response(EventsAnswer([event.to_cloud_event(source) for event in page.events], str(page.next)))


async def _find_start(registry: Registry, after: str) -> EventPosition:
    """Return the position where a stream begins; after the newest record if the client names none."""
    if after:
        try:
            return parse_position(after)
        except InvalidRequest:
            raise InvalidRequest("Last-Event-ID must be the id of an event of this registry") from None
    return EventPosition((await registry.fresh_state()).seq + 1)


async def _stream_events(
    registry: Registry,
    after: EventPosition,
    is_wanted: Callable[[ChangeEvent], bool],
    source: str,
    deadline: float,
) -> AsyncIterator[ServerSentEventMessage]:
    clock = asyncio.get_running_loop().time
    yield ServerSentEventMessage(None, comment="events follow", retry=1000)
    while True:  # the log is read at least once
        page = await service.wait_for_events(registry, after, min(deadline - clock(), _BREATH_SECONDS), is_wanted)
        after = page.next
        if not page.events:
            yield ServerSentEventMessage(None, comment="nothing new", id=str(after))
        for event in page.events:
            cloud_event = event.to_cloud_event(source)
            yield ServerSentEventMessage(
                data=msgspec.json.encode(cloud_event).decode(), event=cloud_event.type, id=cloud_event.id
            )
        if clock() >= deadline:
            return


SubscriptionId = Annotated[str, PathParameter(description="id of a subscription")]
_NOT_FOUND = {404: ResponseSpec(NativeError, description="No such subscription", generate_examples=False)}
_RIGHT = access(Operation.MANAGE_EXPORTERS, Place.REGISTRY)


class SubscriptionsOut(msgspec.Struct, frozen=True):
    """All subscriptions, by id."""

    subscriptions: list[SubscriptionOverview]


@get("/api/subscriptions", opt=_RIGHT)
async def list_subscriptions(registry: InjectedRegistry) -> SubscriptionsOut:
    # GET /api/subscriptions
    """Show the progress of each subscription, the last answer of its sink, and the events that the sink refused."""
    return SubscriptionsOut(await list_overviews(registry))


@post("/api/subscriptions/{subscription:str}/pause", status_code=200, responses=_NOT_FOUND, opt=_RIGHT)
async def pause_subscription(registry: InjectedRegistry, subscription: SubscriptionId) -> SubscriptionOverview:
    # POST /api/subscriptions/{subscription}/pause
    """Stop sending events to a subscriber until it is resumed. No event is lost."""
    return await change_state(registry, decode_segment(subscription), DeliveryState.PAUSED)


@post("/api/subscriptions/{subscription:str}/resume", status_code=200, responses=_NOT_FOUND, opt=_RIGHT)
async def resume_subscription(registry: InjectedRegistry, subscription: SubscriptionId) -> SubscriptionOverview:
    # POST /api/subscriptions/{subscription}/resume
    """Send a subscriber all events since it was paused, and continue."""
    return await change_state(registry, decode_segment(subscription), DeliveryState.ACTIVE)


ROUTES: Final = (
    read_events,
    list_subscriptions,
    pause_subscription,
    resume_subscription,
)
"""Endpoints of events and their delivery."""
