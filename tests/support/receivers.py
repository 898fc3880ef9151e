"""Receivers of the events of a subscription, one class per transport. A receiver can be stopped and started again."""

from __future__ import annotations

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from tests.support.brokers import BROKERS, CREDENTIAL, Broker
from tests.support.database_process import data_folder
from tests.support.kafka import KafkaBroker
from tests.support.webhook import Webhook

Event = dict[str, Any]
IsEnough = Callable[[list[Event]], bool]


class Receiver(ABC):
    """Receives events. `subscription` holds the members of a subscription that sends to it."""

    subscription: dict[str, Any]

    @abstractmethod
    def stop(self) -> None:
        """Stop receiving events."""

    @abstractmethod
    def start(self) -> None:
        """Receive events again, at the same address."""

    @abstractmethod
    def wait_for(self, is_enough: IsEnough, seconds: float) -> list[Event]:
        """Wait for enough events and return all events so far, in order. Raises `TimeoutError`."""


class WebhookReceiver(Receiver):
    """A webhook whose server stops and starts with it."""

    def __init__(self) -> None:
        self._hook = Webhook()
        self._hook.__enter__()
        self._hooks = [self._hook]
        self.subscription = {"sink": self._hook.url, "protocol": "HTTP"}

    def stop(self) -> None:
        """Stop the server; see `Receiver.stop`."""
        self._hook.__exit__()

    def start(self) -> None:
        """Start a server on the same port; see `Receiver.start`."""
        self._hook = Webhook(port=self._hook.port)
        self._hook.__enter__()
        self._hooks.append(self._hook)

    def wait_for(self, is_enough: IsEnough, seconds: float) -> list[Event]:
        """Return the events of all servers so far; see `Receiver.wait_for`."""
        until = time.monotonic() + seconds
        # A stopped webhook still answers requests that had begun.
        while not is_enough(events := [row.event for hook in self._hooks for row in hook.deliveries]):
            if time.monotonic() > until:
                raise TimeoutError(f"{len(events)} events came")
            time.sleep(0.05)
        return events


class BrokerReceiver(Receiver):
    """Receives events with a broker of `tests.support.brokers`."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.subscription = {
            "sink": broker.sink,
            "protocol": broker.protocol,
            "protocolsettings": broker.settings,
            "sinkCredential": CREDENTIAL,
        }

    def stop(self) -> None:
        """Stop the broker; see `Receiver.stop`."""
        self._broker.stop()

    def start(self) -> None:
        """Start the broker; see `Receiver.start`."""
        self._broker.start()

    def wait_for(self, is_enough: IsEnough, seconds: float) -> list[Event]:
        """Return the events of the broker; see `Receiver.wait_for`."""
        messages = self._broker.drain(lambda rows: is_enough([row.event for row in rows]), seconds)
        return [message.event for message in messages]


class KafkaReceiver(Receiver):
    """Receives events in a topic of a real Kafka broker."""

    def __init__(self, broker: KafkaBroker) -> None:
        self._broker = broker
        admin = AdminClient({"bootstrap.servers": broker.address})
        admin.create_topics([NewTopic("changes", 1, 1)])["changes"].result(240)
        self.subscription = {"sink": f"kafka://{broker.address}/changes", "protocol": "KAFKA"}

    def stop(self) -> None:
        """Kill the broker; see `Receiver.stop`."""
        self._broker.kill()

    def start(self) -> None:
        """Start the broker again; see `Receiver.start`."""
        self._broker.restart()

    def wait_for(self, is_enough: IsEnough, seconds: float) -> list[Event]:
        """Return the events of the topic; see `Receiver.wait_for`."""
        consumer = Consumer(
            {"bootstrap.servers": self._broker.address, "group.id": "reader", "auto.offset.reset": "earliest"}
        )
        consumer.subscribe(["changes"])
        events: list[Event] = []
        until = time.monotonic() + seconds
        try:
            while not is_enough(events):
                if time.monotonic() > until:
                    raise TimeoutError(f"{len(events)} events came")
                record = consumer.poll(0.5)
                if record is not None and record.error() is None:
                    events.append(json.loads(record.value() or b""))
        finally:
            consumer.close()
        return events


@contextmanager
def receiver_of(transport: str, folder: Path) -> Iterator[Receiver]:
    """Run a receiver for a transport: `webhook`, `kafka`, or a broker of `tests.support.brokers`."""
    if transport == "webhook":
        receiver = WebhookReceiver()
        try:
            yield receiver
        finally:
            receiver.stop()
    elif transport == "kafka":
        with KafkaBroker(folder) as broker:
            yield KafkaReceiver(broker)
    else:
        with data_folder(transport) as place, BROKERS[transport](place) as broker:
            yield BrokerReceiver(broker)
