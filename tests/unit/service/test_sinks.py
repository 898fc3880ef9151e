"""Sinks of events: their settings in a subscription, the encoding of events, and attempts without a broker."""

from __future__ import annotations

import asyncio
import importlib.util
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.support.server_process import free_port
from tests.support.webhook import Webhook

from stele.errors import InvalidRequest, NotInstalled
from stele.protocol.cncf import CloudEvent, Subscription
from stele.service.delivery import amqp_sink, mqtt_sink, nats_sink, sink_settings
from stele.service.delivery.event_messages import CLOUD_EVENT, ContentMode, encode_event
from stele.service.delivery.sink_settings import PROTOCOLS, SinkAddress, describe_sink
from stele.service.delivery.sinks import SinkFactory
from stele.service.delivery.targets import DeliveryCode, EventSink
from stele.service.outgoing import AddressRules, OutgoingClient

EVENT = CloudEvent(id="41-0", source="/", type="t", subject='/schemagroups/default/schemas/a%2Fb "é"', time="now")
LOOPBACK = AddressRules(["127.0.0.0/8"])
BROKERS: dict[str, tuple[str, dict[str, Any]]] = {
    "MQTT3": ("mqtt", {"topicname": "changes"}),
    "MQTT5": ("mqtt", {"topicname": "changes"}),
    "NATS": ("nats", {"subject": "changes"}),
    "AMQP": ("amqp", {"address": "changes"}),
}
PASSWORD = {"credentialType": "PLAIN", "identifier": "i", "secret": "s"}
TOKEN = {"credentialType": "ACCESSTOKEN", "accessToken": "t"}


def describe(sink: str, protocol: str, settings: dict[str, Any] | None = None, credential: Any = None) -> Any:
    """Return the sink of a subscription."""
    return describe_sink(Subscription("s", sink, protocol, settings=settings, credential=credential))


@pytest.mark.parametrize(
    ("sink", "protocol", "settings", "address"),
    [
        ("https://a/b?c=d", "HTTP", {"method": "PUT", "headers": {"x": "y"}}, SinkAddress("a", 443, True, "b")),
        ("kafka://a/changes", "KAFKA", {"acks": 1, "clientId": "c"}, SinkAddress("a", 9092, False, "changes")),
        ("kafka://a:1", "KAFKA", {"topicName": "t"}, SinkAddress("a", 1)),
        ("mqtt://a", "MQTT3", {"topicname": "t", "qos": 2, "retain": True}, SinkAddress("a", 1883)),
        (
            "ssl://a",
            "MQTT5",
            {"topicname": "t", "expiry": 9, "userProperties": {"a": "b"}},
            SinkAddress("a", 8883, True),
        ),
        ("nats://[::1]:7", "NATS", {"subject": "a.b-c"}, SinkAddress("::1", 7)),
        ("tls://a", "NATS", {"subject": "a", "contentmode": "binary"}, SinkAddress("a", 4222, True)),
        ("amqps://a/q%2Fr", "AMQP", {"senderSettlementMode": "unsettled"}, SinkAddress("a", 5671, True, "q/r")),
        ("amqp://a", "AMQP", {"address": "/queue/q", "linkname": "l"}, SinkAddress("a", 5672)),
    ],
)
def test_what_a_sink_may_be(sink: str, protocol: str, settings: dict[str, Any], address: SinkAddress) -> None:
    """Each protocol has its addresses, default ports and settings, however their names are spelt."""
    assert describe(sink, protocol, settings).address == address


@pytest.mark.parametrize(
    ("sink", "protocol", "settings", "credential"),
    [
        ("ftp://a", "HTTP", None, None),
        ("https://a", "HTTP", {"method": "PU T"}, None),
        ("https://a", "HTTP", {"headers": {"a": 1}}, None),
        ("https://a", "HTTP", {"qos": 1}, None),
        ("kafka://a", "KAFKA", None, None),
        ("kafka://a/t", "KAFKA", {"topicname": "t"}, None),
        ("kafka://a/t/u", "KAFKA", None, None),
        ("kafka://a/t", "KAFKA", {"acks": 0}, None),
        ("kafka://a/t", "KAFKA", {"partitionkeyextractor": "type"}, None),
        ("kafka://a/t", "KAFKA", None, TOKEN),
        ("mqtt://a", "MQTT5", None, None),
        ("mqtt://a/t", "MQTT5", {"topicname": "t"}, None),
        ("mqtt://a", "MQTT5", {"topicname": "t/#"}, None),
        ("mqtt://a", "MQTT5", {"topicname": "t", "qos": 0}, None),
        ("mqtt://a", "MQTT5", {"topicname": "t", "contentmode": "binary", "retain": True}, None),
        ("mqtt://a", "MQTT3", {"topicname": "t", "contentmode": "binary"}, None),
        ("mqtt://a", "MQTT3", {"topicname": "t", "expiry": 5}, None),
        ("mqtt://i:s@a", "MQTT5", {"topicname": "t"}, None),
        ("mqtt://a:x", "MQTT5", {"topicname": "t"}, None),
        ("mqtt://", "MQTT5", {"topicname": "t"}, None),
        ("mqtt://a", "MQTT5", {"topicname": "t"}, TOKEN),
        ("nats://a", "NATS", None, None),
        ("nats://a", "NATS", {"subject": "a.*"}, None),
        ("nats://a", "NATS", {"subject": "a b"}, None),
        ("nats://a/b", "NATS", {"subject": "a"}, None),
        ("amqp://a", "AMQP", None, None),
        ("amqp://a/q", "AMQP", {"address": "q"}, None),
        ("amqp://a/q", "AMQP", {"sendersettlementmode": "settled"}, None),
        ("amqp://a/q", "AMQP", {"contentmode": "batched"}, None),
        ("amqp://a/q", "AMQP", None, TOKEN),
    ],
)
def test_what_a_sink_may_not_be(sink: str, protocol: str, settings: Any, credential: Any) -> None:
    """Settings that the protocol does not have, or that would lose events, are refused."""
    with pytest.raises(InvalidRequest):
        describe(sink, protocol, settings, credential)


@pytest.mark.parametrize("protocol", [name for name in PROTOCOLS if name != "HTTP"])
def test_a_missing_client_is_named(protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the client package of a protocol its subscriptions are refused, with the command that installs it."""
    scheme, settings = BROKERS.get(protocol, ("kafka", {"topicname": "t"}))
    describe(f"{scheme}://a", protocol, settings, PASSWORD)
    monkeypatch.setattr(sink_settings, "find_spec", lambda name: None)
    with pytest.raises(NotInstalled, match=r"pip install 'stele-registry\["):
        describe(f"{scheme}://a", protocol, settings)
    assert importlib.util.find_spec("msgspec") is not None


def test_content_modes() -> None:
    """The structured mode puts all in the body; the binary mode uses attributes, which are ASCII in headers."""
    whole = encode_event(EVENT, ContentMode.STRUCTURED)
    assert (whole.content_type, whole.make_headers("ce-")) == (CLOUD_EVENT, {})
    assert b'"id":"41-0"' in whole.body
    apart = encode_event(EVENT, ContentMode.BINARY)
    assert (apart.body, apart.content_type, apart.attributes["subject"]) == (b"", "", EVENT.subject)
    headers = apart.make_headers("ce-")
    assert headers["ce-subject"] == "/schemagroups/default/schemas/a%252Fb%20%22%C3%A9%22"
    assert headers["ce-specversion"] == "1.0"


@contextmanager
def silent_listener() -> Iterator[int]:
    """Yield the port of a server that accepts connections and sends nothing."""
    with socket.create_server(("127.0.0.1", 0), backlog=50) as server:
        yield server.getsockname()[1]


def make_sink(rules: AddressRules, protocol: str, port: int) -> EventSink:
    """Return the sink of a subscription to a broker at a local port."""
    scheme, settings = BROKERS[protocol]
    subscription = Subscription("s", f"{scheme}://localhost:{port}", protocol, settings=settings)
    return SinkFactory(OutgoingClient(rules), rules, "").make_sink(subscription)


@pytest.mark.parametrize("protocol", BROKERS)
async def test_sends_nothing_to_forbidden_addresses(protocol: str) -> None:
    """No connection is opened to a broker in a forbidden network."""
    with silent_listener() as port, socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        sink = make_sink(AddressRules(), protocol, server.getsockname()[1] or port)
        attempt = await sink.send(EVENT)
        assert attempt.code is DeliveryCode.FORBIDDEN_ADDRESS
        with pytest.raises(TimeoutError):
            server.accept()
        await sink.close()


@pytest.mark.parametrize("protocol", BROKERS)
async def test_a_broker_that_is_away_gives_no_answer(protocol: str) -> None:
    """An attempt without a broker fails with a reason, and can be repeated."""
    sink = make_sink(LOOPBACK, protocol, free_port())
    for _ in range(2):
        attempt = await sink.send(EVENT)
        assert attempt.code is DeliveryCode.NO_ANSWER
        assert attempt.detail
    await sink.close()


async def test_brokers_that_hang_keep_no_other_sink_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """While many brokers accept connections but do not answer, a webhook gets its events before one times out."""
    for module in (amqp_sink, mqtt_sink, nats_sink):
        monkeypatch.setattr(module, "_SECONDS", 120)
    with Webhook() as hook:
        with silent_listener() as port:
            sinks = [make_sink(LOOPBACK, protocol, port) for protocol in BROKERS for _ in range(10)]
            hanging = [asyncio.create_task(sink.send(EVENT)) for sink in sinks]
            await asyncio.sleep(0.2)
            client = OutgoingClient(LOOPBACK)
            webhook = SinkFactory(client, LOOPBACK, "").make_sink(Subscription("s", hook.url, "HTTP"))
            attempts = [await webhook.send(EVENT) for _ in range(20)]
            assert {attempt.code for attempt in attempts} == {DeliveryCode.DELIVERED}
            assert not any(task.done() for task in hanging)
        for task in hanging:
            task.cancel()
        await asyncio.wait(hanging)
        for sink in sinks:
            await sink.close()
        await client.close()


async def test_a_webhook_gets_the_binary_mode() -> None:
    """With the binary content mode, attributes of an event are headers and the body is empty."""
    with Webhook() as hook:
        subscription = Subscription("s", hook.url, "HTTP", settings={"contentmode": "binary"})
        sink = SinkFactory(OutgoingClient(LOOPBACK), LOOPBACK, "").make_sink(subscription)
        assert (await sink.send(EVENT)).code is DeliveryCode.DELIVERED
        (delivery,) = hook.deliveries
        assert delivery.event == {**delivery.event, "id": "41-0", "subject": EVENT.subject}
        assert "content-type" not in delivery.headers
