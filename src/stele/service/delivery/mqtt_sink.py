"""Topics of MQTT as sinks: an event is delivered when the broker has acknowledged it.

Source: docs/protocols/cloudevents.md#content-modes
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from stele.errors import NotInstalled
from stele.protocol.cncf import CloudEvent
from stele.service.delivery.blocking_sink import BlockingSink
from stele.service.delivery.event_messages import encode_event
from stele.service.delivery.sink_settings import MqttSettings, SinkAddress
from stele.service.delivery.targets import Attempt, DeliveryCode
from stele.service.outgoing import AddressRules, make_tls_context

_SECONDS: Final = 10.0
_KEEP_ALIVE_SECONDS: Final = 30
_REFUSING: Final = frozenset({0x95, 0x99})
"""Reason codes that are about the message itself: it is too large, or has another format than the broker takes."""
_UNAUTHENTICATED: Final = frozenset({0x86, 0x87})
"""Reason codes that are about the credential: a wrong user or password, or one without rights."""


class MqttSink(BlockingSink):
    """Publishes events to a topic.

    Args:
        address: Address of the broker.
        rules: Allowed addresses.
        settings: Topic and treatment of messages.
        credential: User name and password; None: there is none.
        is_version_5: Whether it uses MQTT 5, else 3.1.1.
    """

    def __init__(
        self,
        address: SinkAddress,
        rules: AddressRules,
        settings: MqttSettings,
        credential: Mapping[str, str] | None,
        *,
        is_version_5: bool,
    ) -> None:
        super().__init__(address, rules)
        try:
            from paho.mqtt import client, packettypes, properties
        except ImportError:
            raise NotInstalled("paho-mqtt", "mqtt") from None
        self._paho: Any = client
        self._make_properties: Callable[[], Any] = partial(properties.Properties, packettypes.PacketTypes.PUBLISH)
        self._settings = settings
        self._credential = credential
        self._is_version_5 = is_version_5
        self._client: client.Client | None = None
        self._reasons: dict[int, Any] = {}

    def is_connected(self) -> bool:
        """Return whether the connection can be used again; see `BlockingSink`."""
        return self._client is not None and self._client.is_connected()

    def deliver(self, event: CloudEvent, target: str) -> Attempt:
        """Deliver one event; see `BlockingSink`."""
        settings = self._settings
        message = encode_event(event, settings.contentmode)
        try:
            if not self.is_connected():
                refusal = self._connect(target or self.address.host)
                if refusal is not None:
                    return refusal
            assert self._client is not None
            sent = self._client.publish(
                settings.topicname,
                message.body,
                settings.qos,
                settings.retain,
                self._describe_message(message.content_type, message.attributes) if self._is_version_5 else None,
            )
            sent.wait_for_publish(_SECONDS)
        except (OSError, ValueError, RuntimeError) as error:
            return Attempt(DeliveryCode.NO_ANSWER, detail=str(error)[:200])
        if not sent.is_published():
            return Attempt(DeliveryCode.NO_ANSWER, detail="the broker does not acknowledge the event")
        reason = self._reasons.pop(sent.mid, None)
        if reason is None or not reason.is_failure:
            return Attempt(DeliveryCode.DELIVERED)
        code = DeliveryCode.REFUSED if reason.value in _REFUSING else DeliveryCode.NOT_TAKEN
        return Attempt(code, reason.value, detail=str(reason))

    def _describe_message(self, content_type: str, attributes: Mapping[str, str]) -> Any:
        properties = self._make_properties()
        if content_type:
            properties.ContentType = content_type
        if self._settings.expiry is not None:
            properties.MessageExpiryInterval = self._settings.expiry
        pairs = [*self._settings.userproperties.items(), *attributes.items()]
        if pairs:
            properties.UserProperty = pairs
        return properties

    def _connect(self, target: str) -> Attempt | None:
        """Connect, and return the failed attempt if that is not possible, else None."""
        self.disconnect()
        paho = self._paho
        client = self._client = paho.Client(
            paho.CallbackAPIVersion.VERSION2,
            protocol=paho.MQTTv5 if self._is_version_5 else paho.MQTTv311,
            reconnect_on_failure=False,
        )
        client.connect_timeout = _SECONDS
        if self._credential:
            client.username_pw_set(self._credential["identifier"], self._credential["secret"])
        if self.address.is_tls:
            client.tls_set_context(make_tls_context(self.address.host))
        answered, reasons = threading.Event(), list[Any]()

        def note_answer(client: Any, userdata: Any, flags: Any, reason: Any, properties: Any) -> None:
            reasons.append(reason)
            answered.set()

        client.on_connect = note_answer
        client.on_disconnect = lambda *arguments: answered.set()
        client.on_publish = lambda client, userdata, mid, reason, properties: self._reasons.update({mid: reason})
        client.connect(target, self.address.port, _KEEP_ALIVE_SECONDS)
        client.loop_start()
        answered.wait(_SECONDS)
        if reasons and not reasons[0].is_failure:
            return None
        if not reasons:
            return Attempt(DeliveryCode.NO_ANSWER, detail="no answer")
        reason = reasons[0]
        is_stranger = reason.value in _UNAUTHENTICATED
        code = DeliveryCode.UNAUTHENTICATED if is_stranger else DeliveryCode.NOT_TAKEN
        return Attempt(code, reason.value, detail=str(reason))

    def disconnect(self) -> None:
        """Close the connection; see `BlockingSink`."""
        if self._client is not None:
            self._client.disconnect()
            self._client.loop_stop()
            self._client = None
            self._reasons.clear()
