"""The sink of a subscription: its address and the settings of its protocol, validated when the subscription is created.

Names of settings are those of CloudEvents Subscriptions. Older versions of that text spell them with capitals, which is
accepted. Settings without acknowledgement of events (QoS 0, `acks` 0, the mode `settled`) are rejected, because they
lose events.

Source: docs/protocols/cncf.md#subscriptions
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Annotated, Any, Final, Literal, NamedTuple
from urllib.parse import unquote, urlsplit

import msgspec
from msgspec import Meta

from stele.errors import InvalidRequest, NotInstalled
from stele.protocol.cncf import Subscription
from stele.service.delivery.event_messages import ContentMode

Text = Annotated[str, Meta(min_length=1, max_length=1024)]


class SinkAddress(NamedTuple):
    """Address of a broker, and what the path of the sink names there."""

    host: str
    port: int
    is_tls: bool = False
    path: str = ""

    @property
    def authority(self) -> str:
        """Host and port."""
        return f"{self.host}:{self.port}"


class _Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    contentmode: ContentMode = ContentMode.STRUCTURED


class WebhookSettings(_Settings, frozen=True, forbid_unknown_fields=True):
    """Settings of HTTP: headers and the method of requests."""

    headers: dict[str, str] = {}
    method: Annotated[str, Meta(pattern=r"^[A-Za-z]+\Z")] = "POST"


class KafkaSettings(_Settings, frozen=True, forbid_unknown_fields=True):
    """Settings of Kafka: the topic, if the sink does not name it, and client id and acks of the producer."""

    topicname: Text | None = None
    clientid: Text | None = None
    acks: Literal[-1, 1, "all"] = "all"
    partitionkeyextractor: Literal["subject"] = "subject"


class MqttSettings(_Settings, frozen=True, forbid_unknown_fields=True):
    """Settings of MQTT: the topic, and how the broker treats messages; expiry in seconds."""

    topicname: Text = ""
    qos: Literal[1, 2] = 1
    retain: bool = False
    expiry: Annotated[int, Meta(ge=1, lt=2**32)] | None = None
    userproperties: dict[str, str] = {}


class NatsSettings(_Settings, frozen=True, forbid_unknown_fields=True):
    """Settings of NATS: the subject of messages."""

    subject: Annotated[str, Meta(pattern=r"^[^\s*>.]+(\.[^\s*>.]+)*\Z", max_length=1024)] = ""


class AmqpSettings(_Settings, frozen=True, forbid_unknown_fields=True):
    """Settings of AMQP 1.0: the address of messages, if the sink does not name it, and how the link is made."""

    address: Text | None = None
    linkname: Text | None = None
    sendersettlementmode: Literal["unsettled"] = "unsettled"
    linkproperties: dict[str, str] = {}


class SinkDescription(NamedTuple):
    """The sink of a subscription, checked."""

    address: SinkAddress
    settings: WebhookSettings | KafkaSettings | MqttSettings | NatsSettings | AmqpSettings


class _Protocol(NamedTuple):
    """How the sinks of a protocol are described.

    settings     type of its settings
    schemes      URI schemes of the sink: default port, and whether the connection is encrypted
    form         form of the sink's URI, for messages
    module       module that has to be installed; '' is none
    package      package that has the module
    extra        extra that installs it
    credentials  types of credentials that it accepts
    has_path     whether the path of the sink has a meaning
    """

    settings: type[Any]
    schemes: Mapping[str, tuple[int, bool]]
    form: str
    module: str = ""
    package: str = ""
    extra: str = ""
    credentials: tuple[str, ...] = ("PLAIN",)
    has_path: bool = False


_MQTT: Final = _Protocol(
    MqttSettings,
    {"mqtt": (1883, False), "mqtts": (8883, True), "tcp": (1883, False), "ssl": (8883, True)},
    "mqtt://host:port or mqtts://host:port",
    "paho.mqtt",
    "paho-mqtt",
    "mqtt",
)
_PROTOCOLS: Final[Mapping[str, _Protocol]] = {
    "HTTP": _Protocol(
        WebhookSettings,
        {"http": (80, False), "https": (443, True)},
        "an http or https URI",
        credentials=("PLAIN", "ACCESSTOKEN", "REFRESHTOKEN"),
    ),
    "KAFKA": _Protocol(
        KafkaSettings,
        {"kafka": (9092, False)},
        "kafka://host:port/topic",
        "confluent_kafka",
        "confluent-kafka",
        "kafka",
        has_path=True,
    ),
    "MQTT3": _MQTT,
    "MQTT5": _MQTT,
    "NATS": _Protocol(
        NatsSettings,
        {"nats": (4222, False), "tls": (4222, True)},
        "nats://host:port or tls://host:port",
        "nats",
        "nats-py",
        "nats",
        credentials=("PLAIN", "ACCESSTOKEN"),
    ),
    "AMQP": _Protocol(
        AmqpSettings,
        {"amqp": (5672, False), "amqps": (5671, True)},
        "amqp://host:port/address or amqps://host:port/address",
        "proton",
        "python-qpid-proton",
        "amqp",
        has_path=True,
    ),
}
PROTOCOLS: Final = tuple(_PROTOCOLS)
"""Protocols by which events go out."""


def describe_sink(subscription: Subscription) -> SinkDescription:
    """Return the validated sink of a subscription.

    Raises:
        InvalidRequest: The sink, a setting or the type of the credential does not fit the protocol.
        NotInstalled: The client of the protocol is missing.
    """
    protocol = _PROTOCOLS[subscription.protocol]
    address = _parse_sink(subscription, protocol)
    credential = subscription.credential
    if credential is not None and credential.get("credentialType") not in protocol.credentials:
        kinds = " or ".join(protocol.credentials)
        raise InvalidRequest(f"the sinkCredential of {_name(subscription)} must be of type {kinds}")
    settings = _read_settings(subscription, protocol)
    check = _CHECKS.get(subscription.protocol)
    if check is not None:
        check(subscription.protocol, address, settings)
    if protocol.module and find_spec(protocol.module.partition(".")[0]) is None:
        raise NotInstalled(protocol.package, protocol.extra)
    return SinkDescription(address, settings)


def _name(subscription: Subscription) -> str:
    article = "an" if subscription.protocol[0] in "AHMN" else "a"
    return f"{article} {subscription.protocol} subscription"


def _parse_sink(subscription: Subscription, protocol: _Protocol) -> SinkAddress:
    try:
        parts = urlsplit(subscription.sink)
        scheme = protocol.schemes.get(parts.scheme.lower())
        host, port = parts.hostname, parts.port
    except ValueError:
        scheme, host, port = None, None, None
    is_broker = subscription.protocol != "HTTP"
    if scheme is None or (is_broker and not host):
        raise InvalidRequest(f"the sink of {_name(subscription)} must be {protocol.form}")
    path = unquote(parts.path.strip("/"))
    has_more = parts.query or parts.fragment or parts.username or (path and not protocol.has_path)
    if is_broker and has_more:
        raise InvalidRequest(f"the sink of {_name(subscription)} must be {protocol.form} and nothing else")
    return SinkAddress(host or "", port or scheme[0], scheme[1], path)


def _read_settings(subscription: Subscription, protocol: _Protocol) -> Any:
    settings = {name.lower(): value for name, value in (subscription.settings or {}).items()}
    try:
        return msgspec.convert(settings, protocol.settings)
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"settings of {_name(subscription)}: {error}") from None


def _check_kafka(protocol: str, address: SinkAddress, settings: KafkaSettings) -> None:
    if (not address.path) is (not settings.topicname) or "/" in address.path:
        raise InvalidRequest(
            "the sink of a KAFKA subscription must be kafka://host:port/topic, or topicname must hold the topic"
        )


def _check_mqtt(protocol: str, address: SinkAddress, settings: MqttSettings) -> None:
    topic = settings.topicname
    if not topic or any(char in topic for char in "+#\0"):
        raise InvalidRequest("topicname of MQTT must be the name of a topic without wildcards")
    is_binary = settings.contentmode is ContentMode.BINARY
    if protocol == "MQTT3" and (is_binary or settings.expiry is not None or settings.userproperties):
        raise InvalidRequest("MQTT3 has no binary content mode, no expiry and no user properties: use MQTT5")
    if is_binary and settings.retain:
        raise InvalidRequest(
            "retained messages need structured mode: the empty body of an event in binary mode makes the"
            " broker delete them"
        )


def _check_nats(protocol: str, address: SinkAddress, settings: NatsSettings) -> None:
    if not settings.subject:
        raise InvalidRequest("subject in the settings of NATS must be the subject of messages")


def _check_amqp(protocol: str, address: SinkAddress, settings: AmqpSettings) -> None:
    if (not address.path) is (not settings.address):
        raise InvalidRequest("give the address of messages as the path of the AMQP sink, or as address in the settings")


_CHECKS: Final[Mapping[str, Callable[[str, SinkAddress, Any], None]]] = {
    "KAFKA": _check_kafka,
    "MQTT3": _check_mqtt,
    "MQTT5": _check_mqtt,
    "NATS": _check_nats,
    "AMQP": _check_amqp,
}
