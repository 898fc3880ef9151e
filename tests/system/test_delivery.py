"""Subscriptions on real servers: events reach webhooks in order, at least once, also when a node or sink fails."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.support.server_process import Running, serving
from tests.support.time_limit import limit_time
from tests.support.webhook import Delivery, Webhook

ENVIRON = {"STELE_OUTGOING_NETWORKS": "127.0.0.0/8"}
PREFIX = [{"prefix": {"subject": "/schemagroups/default"}}]
SECONDS = 120.0
"""Longest wait in seconds. On an idle machine, the events arrive soon."""


def register(url: str, subject: str) -> None:
    """Register a schema."""
    httpx.post(f"{url}/subjects/{subject}/versions", json={"schema": '"string"'}, timeout=SECONDS).raise_for_status()


def subscribe(url: str, sink: str, **members: Any) -> str:
    """Create a subscription and return its id."""
    body = {"sink": sink, "protocol": "HTTP", "source": "https://registry.example.org", "filters": PREFIX, **members}
    answer = httpx.post(f"{url}/subscriptions", json=body, timeout=SECONDS)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def overview(url: str) -> dict[str, Any]:
    """Return the state of the only subscription."""
    (row,) = httpx.get(f"{url}/api/subscriptions", timeout=SECONDS).json()["subscriptions"]
    return dict(row)


def wait_until(url: str, **wanted: Any) -> dict[str, Any]:
    """Wait until the only subscription has these values, and return its state."""
    until = time.monotonic() + SECONDS
    while True:
        row = overview(url)
        if all(row[name] == value for name, value in wanted.items()):
            return row
        assert time.monotonic() < until, row
        time.sleep(0.1)


def list_events(hook: Webhook) -> list[Delivery]:
    """Return the deliveries, each event once. An event is sent again if a busy machine answered too late."""
    deliveries_by_id: dict[str, Delivery] = {}
    for row in list(hook.deliveries):
        deliveries_by_id.setdefault(row.event["id"], row)
    return list(deliveries_by_id.values())


def wait_for_events(hook: Webhook, count: int) -> list[str]:
    """Wait for `count` different events and return their subjects."""
    until = time.monotonic() + SECONDS
    while len(events := list_events(hook)) < count:
        assert time.monotonic() < until, hook.subjects()
        time.sleep(0.05)
    return [row.event["subject"].removeprefix("/schemagroups/default/schemas/") for row in events]


def wait_for_subjects(hook: Webhook, *wanted: str) -> None:
    """Wait until events about all these subjects have arrived, in any number."""
    until = time.monotonic() + SECONDS
    while not set(wanted) <= set(hook.subjects()):
        assert time.monotonic() < until, hook.subjects()
        time.sleep(0.05)


def wait_for_failure(url: str) -> None:
    """Wait until a delivery of the only subscription has failed."""
    until = time.monotonic() + SECONDS
    while not (row := overview(url))["failures"]:
        assert time.monotonic() < until, row
        time.sleep(0.05)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Run a server that may send requests to this machine."""
    with serving("--store", "memory:", environ=ENVIRON, folder=tmp_path_factory.mktemp("delivery")) as running:
        yield running


@pytest.fixture
def url(server: Running) -> Iterator[str]:
    """Yield the URL of the server, and delete its subscriptions afterwards."""
    yield server.url
    for row in httpx.get(f"{server.url}/subscriptions", timeout=SECONDS).json():
        httpx.delete(f"{server.url}/subscriptions/{row['id']}", timeout=SECONDS).raise_for_status()


def test_events_reach_a_webhook(url: str) -> None:
    """A webhook that consents gets the events since its subscription, as CloudEvents, with its credential."""
    register(url, "delivered-before")
    credential = {"credentialType": "PLAIN", "identifier": "ann", "secret": "pw"}
    with Webhook() as hook:
        subscribe(url, hook.url, sinkCredential=credential, protocolsettings={"headers": {"x-tenant": "7"}})
        register(url, "delivered-a")
        httpx.delete(f"{url}/subjects/delivered-a", timeout=SECONDS).raise_for_status()
        assert wait_for_events(hook, 2) == ["delivered-a/versions/1"] * 2
        first, second = list_events(hook)
        assert hook.asked == 1
        assert first.headers["content-type"] == "application/cloudevents+json"
        assert (first.headers["authorization"], first.headers["x-tenant"]) == ("Basic YW5uOnB3", "7")
        assert first.event["type"].endswith("updated.v1")
        assert second.event["type"].endswith("deleted.v1")
        assert first.event["source"] == "https://registry.example.org"
        row = wait_until(url, delivered=2)
        assert (row["state"], row["last_code"], row["last_status"]) == ("active", "delivered", 204)


def test_what_fails_is_tried_again(url: str) -> None:
    """An event is sent again to a sink that failed, before later events. One that it rejects for good is set aside."""
    with Webhook() as hook:
        answers = iter([503, 500])
        hook.status = lambda event: 400 if "poison" in event["subject"] else next(answers, 204)
        subscribe(url, hook.url)
        for subject in ("again-a", "again-poison", "again-b"):
            register(url, subject)
        assert wait_for_events(hook, 2) == ["again-a/versions/1", "again-b/versions/1"]
        row = wait_until(url, delivered=2, dead=1, failures=0)
        assert row["dead_events"][0]["subject"].endswith("again-poison/versions/1")
        assert row["dead_events"][0]["status"] == 400


def test_a_paused_subscription_misses_nothing(url: str) -> None:
    """Events during a pause are delivered after it. A sink that answers 410 pauses its subscription."""
    with Webhook() as hook:
        name = subscribe(url, hook.url)
        httpx.post(f"{url}/api/subscriptions/{name}/pause", timeout=SECONDS).raise_for_status()
        register(url, "paused-a")
        time.sleep(0.5)
        assert hook.deliveries == []
        httpx.post(f"{url}/api/subscriptions/{name}/resume", timeout=SECONDS).raise_for_status()
        assert wait_for_events(hook, 1) == ["paused-a/versions/1"]
        hook.status = lambda event: 410
        register(url, "paused-b")
        assert wait_until(url, state="paused")["last_code"] == "gone"
        hook.status = lambda event: 204
        httpx.post(f"{url}/api/subscriptions/{name}/resume", timeout=SECONDS).raise_for_status()
        assert wait_for_events(hook, 2)[1] == "paused-b/versions/1"
        assert httpx.post(f"{url}/api/subscriptions/none/pause", timeout=SECONDS).status_code == 404


def test_sends_nothing_without_consent_or_to_forbidden_places(url: str) -> None:
    """A webhook without consent gets no events. An address that the settings do not allow gets no request at all."""
    with Webhook(allowed="") as hook:
        name = subscribe(url, hook.url)
        register(url, "consent-a")
        assert wait_until(url, state="paused")["last_code"] == "no_consent"
        assert hook.deliveries == []
        httpx.delete(f"{url}/subscriptions/{name}", timeout=SECONDS).raise_for_status()
    subscribe(url, "http://10.1.2.3/events")
    register(url, "consent-b")
    assert wait_until(url, state="paused")["last_code"] == "forbidden_address"


def test_a_dead_sink_costs_nobody_else(url: str) -> None:
    """While one sink never answers, another one gets its events at once."""
    with Webhook() as dead, Webhook() as hook:
        dead.status = lambda event: time.sleep(60) or 204  # type: ignore[func-returns-value]
        subscribe(url, dead.url)
        subscribe(url, hook.url)
        with limit_time(20, time.monotonic):
            for number in range(20):
                register(url, f"beside-{number}")
            assert wait_for_events(hook, 20) == [f"beside-{number}/versions/1" for number in range(20)]


def test_another_node_takes_over(tmp_path: Path) -> None:
    """If the sending node is killed, another node continues within ten seconds; no event is missing or out of order."""
    store = ("--store", f"sqlite:///{tmp_path}/log.db")
    with Webhook() as hook, serving(*store, folder=tmp_path, environ=ENVIRON) as second:
        with serving(*store, folder=tmp_path, environ=ENVIRON) as first:
            subscribe(first.url, hook.url)
            begun = time.monotonic()
            register(first.url, "node-0")
            hook.wait_for(1)
            usual = time.monotonic() - begun
            wait_until(first.url, delivered=1)
            refused = threading.Event()

            def refuse(event: dict[str, Any]) -> int:
                refused.set()
                return 503

            hook.status = refuse
            register(first.url, "node-1")
            assert refused.wait(SECONDS), "the first node sends"
            time.sleep(1.5)
            os.killpg(first.process.pid, signal.SIGKILL)
            first.process.wait()
            hook.status = lambda event: 204
            nodes = [f"node-{number}/versions/1" for number in range(3)]
            # A busy machine takes longer, also without a takeover.
            with limit_time(10 + 2 * usual, time.monotonic):
                register(second.url, "node-2")
                wait_for_subjects(hook, *nodes)
        subjects = list(dict.fromkeys(hook.subjects()))
        assert subjects == nodes


def test_delivery_goes_on_after_a_restart(tmp_path: Path) -> None:
    """After a restart, events since the last accepted one are sent, also when the sink was unreachable."""
    store = ("--store", f"sqlite:///{tmp_path}/log.db")
    with Webhook() as hook:
        port = hook.port
        with serving(*store, folder=tmp_path, environ=ENVIRON) as server:
            subscribe(server.url, hook.url)
            register(server.url, "restart-0")
            hook.wait_for(1)
            # A server that stops before it has stored its position sends the event again.
            wait_until(server.url, delivered=1)
    with serving(*store, folder=tmp_path, environ=ENVIRON) as server:
        register(server.url, "restart-1")
        wait_for_failure(server.url)
    with Webhook(port=port) as hook, serving(*store, folder=tmp_path, environ=ENVIRON):
        assert wait_for_events(hook, 1) == ["restart-1/versions/1"]
