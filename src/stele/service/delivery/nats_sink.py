"""Subjects of NATS as sinks.

JetStream acknowledges an event if a stream has the subject. Otherwise the event is delivered when the server has
received it.

Source: docs/protocols/cloudevents.md#content-modes
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from stele.errors import ForbiddenAddress, NotInstalled, Unavailable
from stele.protocol.cncf import CloudEvent, Subscription
from stele.service.delivery.event_messages import encode_event
from stele.service.delivery.sink_settings import NatsSettings, SinkAddress
from stele.service.delivery.targets import Attempt, DeliveryCode
from stele.service.outgoing import AddressRules, find_address, make_tls_context

if TYPE_CHECKING:
    from nats.aio.client import Client

_SECONDS: Final = 10
_LOOK_SECONDS: Final = 2.0
"""Timeout in seconds of the request to JetStream whether a stream has the subject."""


class NatsSink:
    """Publishes events to a subject.

    Args:
        address: Address of the server. Other servers of its cluster are not used, as their addresses are not checked.
        rules: Allowed addresses.
        settings: The subject.
        subscription: Subscription that the events belong to.
    """

    def __init__(
        self, address: SinkAddress, rules: AddressRules, settings: NatsSettings, subscription: Subscription
    ) -> None:
        try:
            import nats.aio.client
            import nats.errors
            import nats.js.errors
        except ImportError:
            raise NotInstalled("nats-py", "nats") from None
        self._nats = nats
        self._address = address
        self._rules = rules
        self._settings = settings
        self._name = subscription.id
        self._credential: Mapping[str, str] = subscription.credential or {}
        self._client: Client | None = None
        self._has_stream = False
        self._complaint = ""

    async def send(self, event: CloudEvent) -> Attempt:
        """Deliver one event."""
        nats = self._nats
        try:
            attempt = await self._try(event)
        except ForbiddenAddress as error:
            attempt = Attempt(DeliveryCode.FORBIDDEN_ADDRESS, detail=str(error))
        except nats.errors.MaxPayloadError as error:
            return Attempt(DeliveryCode.REFUSED, detail=str(error))
        except (nats.js.errors.Error, nats.errors.AuthorizationError) as error:
            attempt = Attempt(DeliveryCode.NOT_TAKEN, detail=str(error)[:200])
        except (nats.errors.Error, Unavailable, OSError, TimeoutError) as error:
            detail = self._complaint or str(error) or type(error).__name__
            attempt = Attempt(DeliveryCode.NO_ANSWER, detail=detail[:200])
        if attempt.code is not DeliveryCode.DELIVERED:
            await self.close()
        return attempt

    async def _try(self, event: CloudEvent) -> Attempt:
        self._complaint = ""
        client = self._client
        if client is None or not client.is_connected:
            await self.close()
            client = await self._connect()
        message = encode_event(event, self._settings.contentmode)
        headers = message.make_headers("ce-")
        if message.content_type:
            headers["content-type"] = message.content_type
        subject = self._settings.subject
        if self._has_stream:
            headers["Nats-Msg-Id"] = f"{self._name}/{event.id}"  # a stream drops a repeated message
            await client.jetstream().publish(subject, message.body, timeout=_SECONDS, headers=headers)
        else:
            await client.publish(subject, message.body, headers=headers)
            await client.flush(_SECONDS)
        if self._complaint:
            return Attempt(DeliveryCode.NOT_TAKEN, detail=self._complaint)
        return Attempt(DeliveryCode.DELIVERED)

    async def _connect(self) -> Client:
        address = self._address
        target = await find_address(self._rules, address.host, address.port)
        options: dict[str, Any] = {}
        if address.is_tls:
            options["tls"] = make_tls_context(address.host)
            options["tls_hostname"] = address.host
        if self._credential.get("credentialType") == "PLAIN":
            options |= {"user": self._credential["identifier"], "password": self._credential["secret"]}
        elif self._credential:
            options["token"] = self._credential["accessToken"]
        host = f"[{target}]" if ":" in target else target
        client = self._nats.aio.client.Client()
        async with asyncio.timeout(_SECONDS):
            await client.connect(
                [f"{'tls' if address.is_tls else 'nats'}://{host}:{address.port}"],
                allow_reconnect=False,
                max_reconnect_attempts=1,
                reconnect_time_wait=0,
                connect_timeout=_SECONDS,
                error_cb=self._note_complaint,
                name="stele",
                **options,
            )
        self._client = client
        self._has_stream = await self._find_stream(client)
        return client

    async def _find_stream(self, client: Client) -> bool:
        """Return whether JetStream stores messages of the subject. False if the request is refused or fails."""
        try:
            await client.jetstream(timeout=_LOOK_SECONDS).find_stream_name_by_subject(self._settings.subject)
        except (self._nats.js.errors.Error, self._nats.errors.Error, TimeoutError):
            return False
        return True

    async def _note_complaint(self, error: Exception) -> None:
        self._complaint = str(error)[:200]

    async def close(self) -> None:
        """Release the connection."""
        client, self._client = self._client, None
        if client is not None:
            with suppress(self._nats.errors.Error, OSError, TimeoutError):
                async with asyncio.timeout(_LOOK_SECONDS):
                    await client.close()
