"""What takes the events of a subscription in tests, whatever the transport: it can be stopped and started again."""

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
    """Takes events; subscription has the members of a subscription that sends here."""

    subscription: dict[str, Any]

    @abstractmethod
    def stop(self) -> None:
        """Take nothing more."""

    @abstractmethod
    def start(self) -> None:
        """Take events again, in the same place."""

    @abstractmethod
    def wait_for(self, is_enough: IsEnough, seconds: float) -> list[Event]:
        """Return the events that came, in order, once there are enough. Raises `TimeoutError`."""


class WebhookReceiver(Receiver):
    """A webhook that goes away with its server."""

    def __init__(self) -> None:
        self._hook = Webhook()
        self._hook.__enter__()
        self._hooks = [self._hook]
        self.subscription = {"sink": self._hook.url, "protocol": "HTTP"}

    def stop(self) -> None:
        """See `Receiver`."""
        self._hook.__exit__()

    def start(self) -> None:
        """See `Receiver`."""
        self._hook = Webhook(port=self._hook.port)
        self._hook.__enter__()
        self._hooks.append(self._hook)

    def wait_for(self, is_enough: IsEnough, seconds: float) -> list[Event]:
        """See `Receiver`."""
        until = time.monotonic() + seconds
        # A request that had begun when a webhook stopped is answered still.
        while not is_enough(events := [row.event for hook in self._hooks for row in hook.deliveries]):
            if time.monotonic() > until:
                raise TimeoutError(f"{len(events)} events came")
            time.sleep(0.05)
        return events


class BrokerReceiver(Receiver):
    """A broker of `tests.support.brokers`."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.subscription = {
            "sink": broker.sink,
            "protocol": broker.protocol,
            "protocolsettings": broker.settings,
            "sinkCredential": CREDENTIAL,
        }

    def stop(self) -> None:
        """See `Receiver`."""
        self._broker.stop()

    def start(self) -> None:
        """See `Receiver`."""
        self._broker.start()

    def wait_for(self, is_enough: IsEnough, seconds: float) -> list[Event]:
        """See `Receiver`."""
        messages = self._broker.drain(lambda rows: is_enough([row.event for row in rows]), seconds)
        return [message.event for message in messages]


class KafkaReceiver(Receiver):
    """A topic of a real broker of Kafka."""

    def __init__(self, broker: KafkaBroker) -> None:
        self._broker = broker
        admin = AdminClient({"bootstrap.servers": broker.address})
        admin.create_topics([NewTopic("changes", 1, 1)])["changes"].result(240)
        self.subscription = {"sink": f"kafka://{broker.address}/changes", "protocol": "KAFKA"}

    def stop(self) -> None:
        """See `Receiver`."""
        self._broker.kill()

    def start(self) -> None:
        """See `Receiver`."""
        self._broker.restart()

    def wait_for(self, is_enough: IsEnough, seconds: float) -> list[Event]:
        """See `Receiver`."""
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
    """A receiver of a transport: `webhook`, `kafka`, or a broker of `tests.support.brokers`."""
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
