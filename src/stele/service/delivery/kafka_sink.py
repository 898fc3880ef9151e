"""Topics of Kafka as sinks.

Source: docs/protocols/cloudevents.md#content-modes
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from stele.errors import NotInstalled
from stele.protocol.cncf import CloudEvent
from stele.service.delivery.blocking_sink import BlockingSink
from stele.service.delivery.event_messages import encode_event
from stele.service.delivery.sink_settings import KafkaSettings, SinkAddress
from stele.service.delivery.targets import Attempt, DeliveryCode

_FLUSH_SECONDS: Final = 15.0
_MESSAGE_MILLISECONDS: Final = 10_000
_REFUSALS: Final = frozenset({"_AUTHENTICATION", "SASL_AUTHENTICATION_FAILED"})
"""Names of the errors with which a broker refuses a credential."""


class KafkaSink(BlockingSink):
    """Writes events to a topic; the key is the subject, so that the events of one element stay in order."""

    def __init__(self, address: SinkAddress, settings: KafkaSettings, credential: Mapping[str, str] | None) -> None:
        super().__init__(address, None)
        try:
            from confluent_kafka import KafkaError, Producer
        except ImportError:
            raise NotInstalled("confluent-kafka", "kafka") from None
        options: dict[str, Any] = {
            "bootstrap.servers": address.authority,
            "acks": settings.acks,
            "enable.idempotence": settings.acks in {"all", -1},
            "message.timeout.ms": _MESSAGE_MILLISECONDS,
            "log_level": 0,
        }
        if settings.clientid:
            options["client.id"] = settings.clientid
        if credential:
            options |= {
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": "PLAIN",
                "sasl.username": credential["identifier"],
                "sasl.password": credential["secret"],
            }
            if authority := os.environ.get("SSL_CERT_FILE"):  # the client library does not read it
                options["ssl.ca.location"] = authority
        self._settings = settings
        self._topic = settings.topicname or address.path
        self._complaint: Any = None
        """Error of a broker about the credential since the last delivery. The client library reports it only once."""
        self._make_producer: Callable[[], Any] = partial(Producer, {**options, "error_cb": self._note_complaint})
        self._producer: Any = None
        self._too_large = KafkaError.MSG_SIZE_TOO_LARGE

    def is_connected(self) -> bool:
        """Return True; see `BlockingSink`. The producer connects by itself."""
        return True

    def deliver(self, event: CloudEvent, target: str) -> Attempt:
        """Deliver one event; see `BlockingSink`."""
        if self._producer is None:
            self._producer = self._make_producer()
        message = encode_event(event, self._settings.contentmode)
        headers: dict[str, str | bytes | None] = {f"ce_{name}": value for name, value in message.attributes.items()}
        if message.content_type:
            headers["content-type"] = message.content_type
        failures: list[Any] = []
        self._producer.produce(
            self._topic,
            message.body,
            event.subject.encode(),
            headers=headers,
            on_delivery=lambda error, sent: failures.append(error),
        )
        self._producer.flush(_FLUSH_SECONDS)
        # Compared by `is`: `==` of the client's errors with another type leaves an exception set but not raised.
        if failures and failures[0] is None:
            self._complaint = None
            return Attempt(DeliveryCode.DELIVERED)
        if self._complaint is not None:
            return Attempt(DeliveryCode.UNAUTHENTICATED, detail=str(self._complaint)[:200])
        error = failures[0] if failures else None
        code = DeliveryCode.REFUSED if error and error.code() == self._too_large else DeliveryCode.NO_ANSWER
        return Attempt(code, detail=str(error or "the broker does not answer")[:200])

    def _note_complaint(self, error: Any) -> None:
        """Keep a broker's error about the credential. The message itself fails only with a timeout."""
        if error.name() in _REFUSALS:
            self._complaint = error

    def disconnect(self) -> None:
        """Drop the producer and its messages; see `BlockingSink`."""
        if self._producer is not None:
            self._producer.purge()
            self._producer = None
