"""Addresses of AMQP 1.0 as sinks: an event is delivered when the broker has settled it as accepted.

Source: docs/protocols/cloudevents.md#content-modes
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from stele.errors import NotInstalled
from stele.protocol.cncf import CloudEvent
from stele.service.delivery.blocking_sink import BlockingSink
from stele.service.delivery.event_messages import encode_event
from stele.service.delivery.sink_settings import AmqpSettings, SinkAddress
from stele.service.delivery.targets import Attempt, DeliveryCode
from stele.service.outgoing import AddressRules, find_trusted_certificates

if TYPE_CHECKING:
    from proton.utils import BlockingConnection, BlockingSender

_SECONDS: Final = 10.0
_IDLE_SECONDS: Final = 20.0
"""Seconds after which an idle connection is not used again: it did not answer heartbeats of the broker meanwhile."""
_ATTRIBUTE: Final = "cloudEvents:"


class _LinkProperties:
    """An option of a link, with the interface that the client library requires."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._properties = dict(properties)

    def test(self, link: Any) -> bool:
        """Return whether the option is for a link."""
        return bool(self._properties)

    def apply(self, link: Any) -> None:
        """Set the option."""
        link.properties = self._properties


class AmqpSink(BlockingSink):
    """Sends events to an address.

    Args:
        address: Address of the broker.
        rules: Allowed addresses.
        settings: Address of messages, and how the link is made.
        credential: User name and password; None: there is none.
    """

    def __init__(
        self, address: SinkAddress, rules: AddressRules, settings: AmqpSettings, credential: Mapping[str, str] | None
    ) -> None:
        super().__init__(address, rules)
        try:
            import proton
            import proton.reactor
            import proton.utils
        except ImportError:
            raise NotInstalled("python-qpid-proton", "amqp") from None
        logging.getLogger("proton").setLevel(logging.CRITICAL)  # each attempt reports its errors
        self._proton = proton
        self._settings = settings
        self._credential = credential
        self._connection: BlockingConnection | None = None
        self._sender: BlockingSender | None = None
        self._used_at = 0.0

    def is_connected(self) -> bool:
        """Return whether the connection can be used again; see `BlockingSink`."""
        return self._sender is not None and time.monotonic() - self._used_at < _IDLE_SECONDS

    def deliver(self, event: CloudEvent, target: str) -> Attempt:
        """Deliver one event; see `BlockingSink`."""
        proton = self._proton
        try:
            if target or self._sender is None:
                self.disconnect()
                self._sender = self._connect(target or self.address.host)
            self._sender.send(self._make_message(event))
        except proton.utils.SendException as error:
            self._used_at = time.monotonic()
            is_final = error.state == proton.Delivery.REJECTED
            return Attempt(DeliveryCode.REFUSED if is_final else DeliveryCode.NOT_TAKEN, detail=str(error.state))
        except proton.LinkException as error:
            return Attempt(DeliveryCode.NOT_TAKEN, detail=str(error)[:200])
        except (proton.ProtonException, OSError) as error:
            return Attempt(DeliveryCode.NO_ANSWER, detail=str(error)[:200])
        self._used_at = time.monotonic()
        return Attempt(DeliveryCode.DELIVERED)

    def _make_message(self, event: CloudEvent) -> Any:
        encoded = encode_event(event, self._settings.contentmode)
        message: Any = self._proton.Message(body=encoded.body, inferred=True, durable=True)
        if encoded.content_type:
            message.content_type = encoded.content_type
        if encoded.attributes:
            message.properties = {_ATTRIBUTE + name: value for name, value in encoded.attributes.items()}
        return message

    def _connect(self, target: str) -> BlockingSender:
        proton, settings = self._proton, self._settings
        domain = None
        if self.address.is_tls:
            domain = proton.SSLDomain(proton.SSLDomain.MODE_CLIENT)
            domain.set_trusted_ca_db(find_trusted_certificates())
            domain.set_peer_authentication(proton.SSLDomain.VERIFY_PEER_NAME)
        host = f"[{target}]" if ":" in target else target
        credential = self._credential or {}
        self._connection = proton.utils.BlockingConnection(
            f"{'amqps' if self.address.is_tls else 'amqp'}://{host}:{self.address.port}",
            timeout=_SECONDS,
            ssl_domain=domain,
            virtual_host=self.address.host,
            sni=self.address.host,
            user=credential.get("identifier"),
            password=credential.get("secret"),
            allowed_mechs="PLAIN" if credential else "ANONYMOUS",
            allow_insecure_mechs=True,
        )
        options = [proton.reactor.AtLeastOnce(), _LinkProperties(settings.linkproperties)]
        return self._connection.create_sender(
            settings.address or self.address.path, name=settings.linkname, options=options
        )

    def disconnect(self) -> None:
        """Close the connection; see `BlockingSink`."""
        connection, self._connection, self._sender = self._connection, None, None
        if connection is not None:
            with suppress(self._proton.ProtonException, OSError):
                connection.close()
