"""Webhooks as sinks: events are posted one by one to a URL that has agreed to get them.

Source: docs/protocols/cncf.md#delivery
"""

from __future__ import annotations

import base64
from typing import Final

from stele.errors import ForbiddenAddress, Unavailable
from stele.protocol.cncf import CloudEvent, Subscription
from stele.service.delivery.event_messages import encode_event
from stele.service.delivery.outgoing_tokens import OutgoingTokens
from stele.service.delivery.sink_settings import WebhookSettings
from stele.service.delivery.targets import Attempt, DeliveryCode
from stele.service.outgoing import OutgoingAnswer, OutgoingClient

_RETRIED_STATUS: Final = frozenset({401, 403, 404, 405, 408, 425, 429})
"""HTTP statuses caused by the sink and not by the event: the next attempt may succeed."""
_GONE: Final = 410


class WebhookSink:
    """Posts events to a URL that has agreed to get them (HTTP 1.1 Web Hooks for Event Delivery)."""

    def __init__(
        self, client: OutgoingClient, subscription: Subscription, settings: WebhookSettings, origin: str
    ) -> None:
        self._client = client
        self._url = subscription.sink
        self._settings = settings
        self._credential = subscription.credential or {}
        self._origin = origin
        self._has_consent = not origin
        self._tokens: OutgoingTokens | None = None
        if self._credential.get("credentialType") == "REFRESHTOKEN":
            form = {"grant_type": "refresh_token", "refresh_token": self._credential["refreshToken"]}
            self._tokens = OutgoingTokens(client, self._credential["refreshTokenEndpoint"], form)

    async def send(self, event: CloudEvent) -> Attempt:
        """Deliver one event."""
        try:
            if not self._has_consent:
                refusal = await self._ask_consent()
                if refusal is not None:
                    return refusal
            message = encode_event(event, self._settings.contentmode)
            headers = {**self._settings.headers, **await self._authorize(), **message.make_headers("ce-")}
            if message.content_type:
                headers["content-type"] = message.content_type
            answer = await self._client.send_request(
                self._settings.method, self._url, headers=headers, body=message.body
            )
        except ForbiddenAddress:
            return Attempt(DeliveryCode.FORBIDDEN_ADDRESS)
        except Unavailable:
            return Attempt(DeliveryCode.NO_ANSWER)
        return _judge_answer(answer)

    async def _ask_consent(self) -> Attempt | None:
        """Ask a webhook whether it accepts events from this server. Return the failed attempt, or None if it agrees."""
        headers = {**self._settings.headers, **await self._authorize(), "webhook-request-origin": self._origin}
        answer = await self._client.send_request("OPTIONS", self._url, headers=headers)
        allowed = answer.headers.get("webhook-allowed-origin", "")
        self._has_consent = answer.status < 300 and allowed in {"*", self._origin}
        if self._has_consent:
            return None
        if answer.status >= 500:
            return Attempt(DeliveryCode.NOT_TAKEN, answer.status)
        return Attempt(DeliveryCode.NO_CONSENT, answer.status)

    async def _authorize(self) -> dict[str, str]:
        match self._credential.get("credentialType"):
            case "PLAIN":
                pair = f"{self._credential['identifier']}:{self._credential['secret']}".encode()
                return {"authorization": f"Basic {base64.b64encode(pair).decode()}"}
            case "ACCESSTOKEN":
                return {"authorization": f"Bearer {self._credential['accessToken']}"}
        return {} if self._tokens is None else {"authorization": f"Bearer {await self._tokens.get_token()}"}

    async def close(self) -> None:
        """Do nothing: the client is shared."""


def _judge_answer(answer: OutgoingAnswer) -> Attempt:
    status = answer.status
    if 200 <= status < 300:
        return Attempt(DeliveryCode.DELIVERED, status)
    if status == _GONE:
        return Attempt(DeliveryCode.GONE, status)
    if status < 400 or status >= 500 or status in _RETRIED_STATUS:
        seconds = answer.headers.get("retry-after", "")
        return Attempt(DeliveryCode.NOT_TAKEN, status, float(seconds) if seconds.isascii() and seconds.isdigit() else 0)
    return Attempt(DeliveryCode.REFUSED, status)
