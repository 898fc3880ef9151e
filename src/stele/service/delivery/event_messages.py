"""Events as messages: the structured mode has the whole event in the body, the binary mode its attributes beside it.

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
"""Characters that a header has as they are."""


class ContentMode(StrEnum):
    """Where the attributes of an event stand."""

    STRUCTURED = "structured"
    """In the body, as JSON."""
    BINARY = "binary"
    """Beside the body, which is empty: these events have no data."""


class EventMessage(NamedTuple):
    """An event ready to be sent.

    body          of the message
    content_type  media type of the body; '' where there is none
    attributes    of the event, for the place beside the body; none in the structured mode
    """

    body: bytes
    content_type: str
    attributes: Mapping[str, str]

    def make_headers(self, prefix: str) -> dict[str, str]:
        """Return the attributes as headers of ASCII, as the bindings to HTTP and NATS have them."""
        return {prefix + name: quote(value, safe=_PLAIN) for name, value in self.attributes.items()}


def encode_event(event: CloudEvent, mode: ContentMode) -> EventMessage:
    """Return the message for an event."""
    if mode is ContentMode.BINARY:
        return EventMessage(b"", "", msgspec.to_builtins(event))
    return EventMessage(msgspec.json.encode(event), CLOUD_EVENT, {})
