"""Where the events of a subscription go, and what became of one: webhooks of CloudEvents, and topics of Kafka.

Source: docs/protocols/cncf.md#delivery
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from stele.errors import ForbiddenAddress, NotInstalled, Unavailable
from stele.protocol.cncf import CloudEvent, Subscription
from stele.service.delivery.kafka_address import KafkaAddress, parse_kafka_sink
from stele.service.delivery.outgoing_tokens import OutgoingTokens
from stele.service.outgoing import OutgoingAnswer, OutgoingClient

CLOUD_EVENT: Final = "application/cloudevents+json"
"""Media type of one event with all its attributes."""
_RETRIED_STATUS: Final = frozenset({401, 403, 404, 405, 408, 425, 429})
"""Refusals that say something of the sink, and nothing of the event: the next attempt may do."""
_GONE: Final = 410
_FLUSH_SECONDS: Final = 15.0


class DeliveryCode(StrEnum):
    """What became of an attempt to deliver."""

    DELIVERED = "delivered"
    REFUSED = "refused"
    """The sink will never take this event; the next one may be taken."""
    NOT_TAKEN = "not_taken"
    """The sink answered with an error that may go away."""
    NO_ANSWER = "no_answer"
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


class SinkFactory:
    """Makes the sinks of subscriptions.

    Args:
        client: Sends requests to webhooks.
        origin: What webhooks are told of who sends; '' skips asking them.
        brokers: Kafka brokers (`host:port`) that may be sent to.
    """

    def __init__(self, client: OutgoingClient, origin: str, brokers: Collection[str] = ()) -> None:
        self._client = client
        self._origin = origin
        self._brokers = frozenset(brokers)

    def make_sink(self, subscription: Subscription) -> EventSink:
        """Return the sink of a subscription. Raises `InvalidRequest`, `NotInstalled`, `ForbiddenAddress`."""
        if subscription.protocol == "KAFKA":
            address = parse_kafka_sink(subscription.sink)
            if address.broker not in self._brokers:
                raise ForbiddenAddress(f"{address.broker} is not among the setting event_brokers")
            return KafkaSink(address, subscription.credential)
        return WebhookSink(self._client, subscription, self._origin)


# --- webhooks ---------------------------------------------------------------------------------------------------------


class WebhookSink:
    """Posts events to a URL that has agreed to get them (HTTP 1.1 Web Hooks for Event Delivery)."""

    def __init__(self, client: OutgoingClient, subscription: Subscription, origin: str) -> None:
        settings = subscription.settings or {}
        self._client = client
        self._url = subscription.sink
        self._method: str = settings.get("method", "POST")
        self._headers: Mapping[str, str] = settings.get("headers", {})
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
            headers = {**self._headers, **await self._authorize(), "content-type": CLOUD_EVENT}
            answer = await self._client.send_request(
                self._method, self._url, headers=headers, body=msgspec.json.encode(event)
            )
        except ForbiddenAddress:
            return Attempt(DeliveryCode.FORBIDDEN_ADDRESS)
        except Unavailable:
            return Attempt(DeliveryCode.NO_ANSWER)
        return _judge_answer(answer)

    async def _ask_consent(self) -> Attempt | None:
        """Ask a webhook whether it takes events from here; None: it does."""
        headers = {**self._headers, **await self._authorize(), "webhook-request-origin": self._origin}
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
        """Nothing is held: the client is shared."""


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


# --- Kafka ------------------------------------------------------------------------------------------------------------


class KafkaSink:
    """Writes events to a topic; the key is the subject, so that the events of one element stay in order."""

    def __init__(self, address: KafkaAddress, credential: Mapping[str, str] | None) -> None:
        try:
            from confluent_kafka import Producer
        except ImportError:
            raise NotInstalled("confluent-kafka", "kafka") from None
        options: dict[str, Any] = {
            "bootstrap.servers": address.broker,
            "enable.idempotence": True,
            "message.timeout.ms": 10_000,
            "log_level": 0,
        }
        if credential:
            options |= {
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": "PLAIN",
                "sasl.username": credential["identifier"],
                "sasl.password": credential["secret"],
            }
        self._topic = address.topic
        self._producer = Producer(options)

    async def send(self, event: CloudEvent) -> Attempt:
        """Deliver one event."""
        return await asyncio.to_thread(self._produce, event)

    def _produce(self, event: CloudEvent) -> Attempt:
        failures: list[object] = []
        self._producer.produce(
            self._topic,
            msgspec.json.encode(event),
            event.subject.encode(),
            headers={"content-type": CLOUD_EVENT},
            on_delivery=lambda error, message: failures.append(error),
        )
        self._producer.flush(_FLUSH_SECONDS)
        is_written = failures == [None]
        return Attempt(DeliveryCode.DELIVERED if is_written else DeliveryCode.NO_ANSWER)

    async def close(self) -> None:
        """Give up what was not sent."""
        await asyncio.to_thread(self._producer.purge)
