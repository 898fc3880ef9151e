"""Makes the sinks of subscriptions, by protocol."""

from __future__ import annotations

from collections.abc import Collection

from stele.errors import ForbiddenAddress
from stele.protocol.cncf import Subscription
from stele.service.delivery.sink_settings import (
    AmqpSettings,
    KafkaSettings,
    MqttSettings,
    NatsSettings,
    WebhookSettings,
    describe_sink,
)
from stele.service.delivery.targets import EventSink
from stele.service.outgoing import AddressRules, OutgoingClient


class SinkFactory:
    """Creates the sinks of subscriptions.

    Args:
        client: HTTP client for requests to webhooks.
        rules: Allowed addresses of brokers.
        origin: Name of the sender in the handshake with webhooks; '' skips the handshake.
        brokers: Allowed Kafka brokers (`host:port`).
    """

    def __init__(self, client: OutgoingClient, rules: AddressRules, origin: str, brokers: Collection[str] = ()) -> None:
        self._client = client
        self._rules = rules
        self._origin = origin
        self._brokers = frozenset(brokers)

    def make_sink(self, subscription: Subscription) -> EventSink:
        """Return the sink of a subscription. Raises `InvalidRequest`, `NotInstalled`, `ForbiddenAddress`."""
        address, settings = describe_sink(subscription)
        credential = subscription.credential
        match settings:
            case WebhookSettings():
                from stele.service.delivery.webhook_sink import WebhookSink

                return WebhookSink(self._client, subscription, settings, self._origin)
            case KafkaSettings():
                if address.authority not in self._brokers:
                    raise ForbiddenAddress(f"{address.authority} is not in the setting event_brokers")
                from stele.service.delivery.kafka_sink import KafkaSink

                return KafkaSink(address, settings, credential)
            case MqttSettings():
                from stele.service.delivery.mqtt_sink import MqttSink

                is_version_5 = subscription.protocol == "MQTT5"
                return MqttSink(address, self._rules, settings, credential, is_version_5=is_version_5)
            case NatsSettings():
                from stele.service.delivery.nats_sink import NatsSink

                return NatsSink(address, self._rules, settings, subscription)
            case AmqpSettings():
                from stele.service.delivery.amqp_sink import AmqpSink

                return AmqpSink(address, self._rules, settings, credential)
