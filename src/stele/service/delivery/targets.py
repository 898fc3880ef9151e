"""Results of attempts to deliver an event, and the interface of every sink of events."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple, Protocol

from stele.protocol.cncf import CloudEvent


class DeliveryCode(StrEnum):
    """Result of an attempt to deliver."""

    DELIVERED = "delivered"
    REFUSED = "refused"
    """The sink refuses this event for good; it may accept the next one."""
    NOT_TAKEN = "not_taken"
    """The sink answered with a temporary error."""
    NO_ANSWER = "no_answer"
    UNAUTHENTICATED = "unauthenticated"
    """The sink does not accept the credential. A later attempt may succeed if the sink renewed it."""
    NO_CONSENT = "no_consent"
    """The sink did not agree to get events: see the handshake of webhooks."""
    FORBIDDEN_ADDRESS = "forbidden_address"
    """The server's settings forbid requests to this address."""
    GONE = "gone"
    """The sink reports that it wants no more events."""
    CONFLICT = "conflict"
    """The receiver has different content under the same name or number."""
    BAD_SETTINGS = "bad_settings"
    """The receiver cannot be reached with these settings."""


class Attempt(NamedTuple):
    """An attempt to deliver.

    Holds the HTTP status if there was one, the seconds the sink asks to wait, and a short text of its answer.
    """

    code: DeliveryCode
    status: int = 0
    retry_after: float = 0.0
    detail: str = ""


class EventSink(Protocol):
    """Takes the events of one subscription."""

    async def send(self, event: CloudEvent) -> Attempt:
        """Deliver one event."""
        ...

    async def close(self) -> None:
        """Release connections."""
        ...
