"""Events as messages.

The structured mode puts the whole event in the body. The binary mode puts its attributes in headers or properties of
the message.

Source: docs/protocols/cloudevents.md#content-modes
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple
from urllib.parse import quote

import msgspec

from stele.protocol.cncf import CloudEvent

CLOUD_EVENT: Final = "application/cloudevents+json"
"""Media type of one event with all its attributes."""
_PLAIN: Final = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in '"%')
"""Characters that a header holds without percent-encoding."""


class ContentMode(StrEnum):
    """Where the attributes of an event stand."""

    STRUCTURED = "structured"
    """In the body, as JSON."""
    BINARY = "binary"
    """In headers or properties of the message. The body is empty, because these events have no data."""


class EventMessage(NamedTuple):
    """An event ready to be sent.

    body          body of the message
    content_type  media type of the body; '' where there is none
    attributes    attributes of the event to send as headers or properties; none in the structured mode
    """

    body: bytes
    content_type: str
    attributes: Mapping[str, str]

    def make_headers(self, prefix: str) -> dict[str, str]:
        """Return the attributes as ASCII headers, as the HTTP and NATS bindings define them."""
        return {prefix + name: quote(value, safe=_PLAIN) for name, value in self.attributes.items()}


def encode_event(event: CloudEvent, mode: ContentMode) -> EventMessage:
    """Return the message for an event."""
    if mode is ContentMode.BINARY:
        return EventMessage(b"", "", msgspec.to_builtins(event))
    return EventMessage(msgspec.json.encode(event), CLOUD_EVENT, {})
