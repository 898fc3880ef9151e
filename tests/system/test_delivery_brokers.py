"""Subscriptions to real brokers: content modes, credentials, encrypted connections, and refusals of brokers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.support.brokers import BROKERS, CREDENTIAL, Broker, Message
from tests.support.database_process import data_folder
from tests.support.server_process import serving

pytestmark = pytest.mark.servers
SOURCE = "https://registry.example.org"
SECONDS = 120.0
"""Longest wait in seconds. On an idle machine, the events arrive soon."""


@pytest.fixture(scope="module", params=sorted(BROKERS))
def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """Run a broker."""
    with data_folder(request.param) as folder, BROKERS[request.param](folder) as running:
        yield running


@pytest.fixture(scope="module")
def url(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run a registry that trusts the authority of the broker's certificate, and yield its URL."""
    environ = {"STELE_OUTGOING_NETWORKS": "127.0.0.0/8", "SSL_CERT_FILE": str(broker.authority)}
    folder = tmp_path_factory.mktemp("registry")
    with serving("--store", "memory:", folder=folder, environ=environ) as server:
        yield server.url


def subscribe(url: str, broker: Broker, **members: Any) -> str:
    """Create a subscription and return its id."""
    body = {
        "sink": broker.sink,
        "protocol": broker.protocol,
        "protocolsettings": broker.settings,
        "sinkCredential": CREDENTIAL,
        "source": SOURCE,
        "filters": [{"prefix": {"subject": "/schemagroups/"}}],
        **members,
    }
    answer = httpx.post(f"{url}/subscriptions", json=body, timeout=SECONDS)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def register(url: str, subject: str) -> None:
    """Register a schema."""
    httpx.post(f"{url}/subjects/{subject}/versions", json={"schema": '"string"'}, timeout=SECONDS).raise_for_status()


def overview(url: str, name: str) -> dict[str, Any]:
    """Return the state of a subscription."""
    rows = httpx.get(f"{url}/api/subscriptions", timeout=SECONDS).json()["subscriptions"]
    return next(row for row in rows if row["id"] == name)


def wait_until(url: str, name: str, **wanted: Any) -> dict[str, Any]:
    """Wait until a subscription has these values, and return its state."""
    until = time.monotonic() + SECONDS
    while True:
        row = overview(url, name)
        if all(row[member] == value for member, value in wanted.items()):
            return row
        assert time.monotonic() < until, row
        time.sleep(0.05)


def list_events(messages: list[Message]) -> list[Message]:
    """Return the messages, each event once. An event is sent again if the broker acknowledged it too late."""
    messages_by_id: dict[str, Message] = {}
    for message in messages:
        messages_by_id.setdefault(message.event["id"], message)
    return list(messages_by_id.values())


def test_events_reach_a_broker(url: str, broker: Broker) -> None:
    """Events arrive in both content modes, over plain and encrypted connections, and count once acknowledged."""
    event_count = 0
    for sink in (broker.sink, broker.encrypted_sink):
        for mode in ("structured", "binary"):
            name = subscribe(url, broker, sink=sink, protocolsettings={**broker.settings, "contentmode": mode})
            subject = f"{mode}-{sink.partition(':')[0]}"
            register(url, subject)
            register(url, f"{subject}-2")
            wait_until(url, name, delivered=2)
            event_count += 2
            expected = event_count
            drained = broker.drain(lambda rows, expected=expected: len(list_events(rows)) >= expected, SECONDS)
            messages = list_events(drained)[-2:]
            paths = [f"/schemagroups/default/schemas/{each}/versions/1" for each in (subject, f"{subject}-2")]
            assert [message.event["subject"] for message in messages] == paths
            assert {message.event["source"] for message in messages} == {SOURCE}
            assert {message.content_type for message in messages} == (
                {"application/cloudevents+json"} if mode == "structured" else {""}
            )
            assert {bool(message.body) for message in messages} == {mode == "structured"}
            httpx.delete(f"{url}/subscriptions/{name}", timeout=SECONDS).raise_for_status()


def test_wrong_credentials_are_no_delivery(url: str, broker: Broker) -> None:
    """With a wrong password nothing is delivered, the overview shows the reason, and the event is kept."""
    name = subscribe(url, broker, sinkCredential={**CREDENTIAL, "secret": "wrong"})
    register(url, "refused")
    until = time.monotonic() + SECONDS
    # The error of every broker contains "authorization" or "authentication". On a busy machine the first attempt may
    # get no answer, and the overview next shows the fourth attempt.
    while "uth" not in (row := overview(url, name))["last_detail"]:
        assert time.monotonic() < until, row
        time.sleep(0.05)
    assert (row["delivered"], row["failures"] > 0) == (0, True)
    if broker.sink.startswith("mqtt"):  # the clients for other brokers have no code for it
        assert row["last_code"] == "unauthenticated"
    httpx.delete(f"{url}/subscriptions/{name}", timeout=SECONDS).raise_for_status()


def test_an_encrypted_connection_is_to_the_host_that_was_named(url: str, broker: Broker) -> None:
    """A certificate for another host name than that of the sink is refused."""
    sink = broker.encrypted_sink.replace("localhost", "127.0.0.1")
    name = subscribe(url, broker, sink=sink)
    register(url, "other-name")
    until = time.monotonic() + SECONDS
    while not (row := overview(url, name))["failures"]:
        assert time.monotonic() < until, row
        time.sleep(0.05)
    assert (row["delivered"], row["last_code"]) == (0, "no_answer")
    httpx.delete(f"{url}/subscriptions/{name}", timeout=SECONDS).raise_for_status()
