"""What became of an attempt to deliver an event, and what every sink of events does."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple, Protocol

from stele.protocol.cncf import CloudEvent


class DeliveryCode(StrEnum):
    """What became of an attempt to deliver."""

    DELIVERED = "delivered"
    REFUSED = "refused"
    """The sink will never take this event; the next one may be taken."""
    NOT_TAKEN = "not_taken"
    """The sink answered with an error that may go away."""
    NO_ANSWER = "no_answer"
    UNAUTHENTICATED = "unauthenticated"
    """The sink does not take the credential; another try may find that it was renewed there."""
    NO_CONSENT = "no_consent"
    """The sink did not agree to get events: see the handshake of webhooks."""
    FORBIDDEN_ADDRESS = "forbidden_address"
    """The settings let the server send nothing there."""
    GONE = "gone"
    """The sink says that it wants no more events."""
    CONFLICT = "conflict"
    """The far side has something else in that place."""
    BAD_SETTINGS = "bad_settings"
    """The far side cannot be asked as the settings say."""


class Attempt(NamedTuple):
    """An attempt to deliver: status of HTTP where there was one, seconds the sink asks to wait, what it said."""

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
