"""Delivery while the sender is killed and receivers are stopped: every change arrives at least once, in order.

The order is per subject. One suite for all transports: the brokers run in parallel, and the faults affect all of them
at once.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.support.receivers import Event, Receiver, receiver_of
from tests.support.server_process import serving

pytestmark = pytest.mark.timeout(600)  # several brokers start twice

SUBJECTS = ("red", "green", "blue")
BROKERS = ("kafka", "mqtt", "nats", "amqp")
ROUNDS = 4
"""Versions of each subject."""


def register(url: str, number: int) -> None:
    """Register the next version of each subject."""
    schema = f'{{"type":"record","name":"R","fields":[{{"name":"f{number}","type":"int"}}]}}'
    for subject in SUBJECTS:
        httpx.post(f"{url}/subjects/{subject}/versions", json={"schema": schema}, timeout=60).raise_for_status()


def wait_for_deliveries(url: str, count: int) -> None:
    """Wait until every subscription has delivered `count` events."""
    until = time.monotonic() + 180
    while any(row["delivered"] < count for row in _overview(url)):
        assert time.monotonic() < until, _overview(url)
        time.sleep(0.1)


def _overview(url: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = httpx.get(f"{url}/api/subscriptions", timeout=60).json()["subscriptions"]
    return rows


def list_versions(events: list[Event], subject: str) -> list[int]:
    """Return the version numbers of a subject in the order of their first events."""
    prefix = f"/schemagroups/default/schemas/{subject}/versions/"
    paths = (event["subject"] for event in events if event["subject"].startswith(prefix))
    return [int(path.removeprefix(prefix)) for path in dict.fromkeys(paths)]


def has_all(events: list[Event]) -> bool:
    """Return whether an event of each version of each subject has arrived."""
    return all(len(list_versions(events, subject)) >= ROUNDS for subject in SUBJECTS)


def run_faults(receivers: Mapping[str, Receiver], folder: Path) -> dict[str, list[Event]]:
    """Register versions while the sender is killed and all receivers restart. Return the events of each receiver."""
    store = ("--store", f"sqlite:///{folder}/log.db")
    kafka = [receiver.subscription["sink"] for name, receiver in receivers.items() if name == "kafka"]
    environ = {
        "STELE_OUTGOING_NETWORKS": "127.0.0.0/8",
        "STELE_EVENT_BROKERS": ",".join(sink.split("/")[2] for sink in kafka),
    }
    with serving(*store, folder=folder, environ=environ) as second:
        with serving(*store, folder=folder, environ=environ) as first:
            httpx.put(f"{first.url}/config", json={"compatibility": "NONE"}, timeout=60).raise_for_status()
            for receiver in receivers.values():
                answer = httpx.post(f"{first.url}/subscriptions", json=receiver.subscription, timeout=60)
                assert answer.status_code == 201, answer.text
            register(first.url, 0)
            wait_for_deliveries(first.url, 1)
            for receiver in receivers.values():
                receiver.stop()
            register(first.url, 1)
            time.sleep(0.7)
            os.killpg(first.process.pid, signal.SIGKILL)
            first.process.wait()
        register(second.url, 2)
        for receiver in receivers.values():
            receiver.start()
        register(second.url, 3)
        # If a broker takes a minute to start, the next attempt may be a minute later.
        return {name: receiver.wait_for(has_all, 180) for name, receiver in receivers.items()}


@pytest.fixture(scope="module")
def events_by_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, list[Event]]]:
    """Return events by transport, after faults of all brokers at once."""
    with deliver_among_faults(BROKERS, tmp_path_factory) as events:
        yield events


@contextmanager
def deliver_among_faults(
    transports: Iterable[str], folders: pytest.TempPathFactory
) -> Iterator[dict[str, list[Event]]]:
    """Run the receivers and the faults, and yield the events by transport."""
    with ExitStack() as stack:
        receivers = {name: stack.enter_context(receiver_of(name, folders.mktemp(name))) for name in transports}
        yield run_faults(receivers, folders.mktemp("registry"))


def test_every_change_comes_in_order_to_a_webhook(tmp_path_factory: pytest.TempPathFactory) -> None:
    """No event is lost or out of order when the sender is killed and the receiver is stopped."""
    with deliver_among_faults(["webhook"], tmp_path_factory) as events:
        check_order(events["webhook"])


@pytest.mark.servers
@pytest.mark.parametrize("transport", BROKERS)
def test_every_change_comes_in_order(events_by_broker: dict[str, list[Event]], transport: str) -> None:
    """No event is lost or out of order with any broker."""
    check_order(events_by_broker[transport])


def check_order(events: list[Event]) -> None:
    """Assert that every version of each subject arrived in order, and that a repeated event is unchanged."""
    for subject in SUBJECTS:
        assert list_versions(events, subject) == list(range(1, ROUNDS + 1))
    known = {(event["source"], event["id"]): event for event in events}
    assert all(known[event["source"], event["id"]] == event for event in events)
