"""Kafka over TLS with passwords: as the store of a registry, and as the sink of its events."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from confluent_kafka import Consumer
from tests.support.kafka import PASSWORD, USER, KafkaBroker
from tests.support.server_process import serving
from tests.support.time_limit import limit_time

from stele.errors import StoreError
from stele.storage import open_log

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """Run a broker that also has an address with TLS and passwords."""
    with KafkaBroker(tmp_path_factory.mktemp("kafka"), secure=True) as running:
        yield running


def _url(broker: KafkaBroker, topic: str, password: str = PASSWORD, **parameters: Any) -> str:
    settings = {"ssl.ca.location": broker.authority, **parameters}
    query = "&".join(f"{name}={value}" for name, value in settings.items() if value)
    return f"kafka://{USER}:{password}@{broker.secure_address}/{topic}?{query}"


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
async def test_a_store_behind_a_password(broker: KafkaBroker, mechanism: str) -> None:
    """Records are written and read over TLS; a second handle reads them, too."""
    url = _url(broker, f"store-{mechanism.lower()}", **{"sasl.mechanism": mechanism})
    log = await open_log(url)
    assert await log.append(0, [b"one", b"two"])
    other = await open_log(url)
    assert [entry.record for entry in await other.tail(0, 9)] == [b"one", b"two"]
    await log.close()
    await other.close()


@pytest.mark.parametrize(
    ("password", "parameters", "reason"),
    [
        ("sesame", {}, "does not accept user and password"),
        ("sesame", {"sasl.mechanism": "SCRAM-SHA-512"}, "does not accept user and password"),
        (PASSWORD, {"ssl.ca.location": None}, "cannot be reached over TLS: see the parameters ssl.ca.location"),
    ],
)
async def test_what_a_broker_refuses(
    broker: KafkaBroker, password: str, parameters: dict[str, Any], reason: str
) -> None:
    """A wrong password or an unknown authority fails within 8 s, with a one-line error without the password."""
    with limit_time(8, time.monotonic), pytest.raises(StoreError) as refusal:
        await open_log(_url(broker, "refused", password, **parameters))
    assert reason in str(refusal.value)
    assert "\n" not in str(refusal.value)
    assert password not in str(refusal.value)


def test_events_go_to_a_broker_behind_a_password(broker: KafkaBroker, tmp_path: Path) -> None:
    """A subscription with the right password delivers over TLS. One with a wrong password reports the reason."""
    environ = {"STELE_OUTGOING_NETWORKS": "127.0.0.0/8,::1/128", "SSL_CERT_FILE": str(broker.authority)}
    environ["STELE_EVENT_BROKERS"] = broker.secure_address
    with serving("--store", "memory:", folder=tmp_path, environ=environ) as server:
        ids = []
        for topic, password in (("events", PASSWORD), ("events-refused", "sesame")):
            credential = {"credentialType": "PLAIN", "identifier": USER, "secret": password}
            sink = f"kafka://{broker.secure_address}/{topic}"
            body = {"sink": sink, "protocol": "KAFKA", "sinkCredential": credential, "source": "https://r.example.org"}
            answer = httpx.post(f"{server.url}/subscriptions", json=body, timeout=60)
            assert answer.status_code == 201, answer.text
            ids.append(answer.json()["id"])
        body = {"schema": '"string"'}
        httpx.post(f"{server.url}/subjects/s/versions", json=body, timeout=60).raise_for_status()
        assert _has_event(broker, "events", b'"subject":"/schemagroups/default/schemas/s/versions/1"')
        until = time.monotonic() + 180
        # On a busy machine the first attempt may get no answer. The overview next shows the fourth attempt.
        while (refused := _find_subscription(server.url, ids[1]))["last_code"] != "unauthenticated":
            assert time.monotonic() < until, refused
            time.sleep(0.2)
        assert (refused["delivered"], refused["failures"] > 0) == (0, True)
        assert "sesame" not in json.dumps(refused)


def _find_subscription(url: str, name: str) -> dict[str, Any]:
    rows = httpx.get(f"{url}/api/subscriptions", timeout=60).json()["subscriptions"]
    return next(dict(row) for row in rows if row["id"] == name)


def _has_event(broker: KafkaBroker, topic: str, part: bytes) -> bool:
    """Return whether a message with these bytes arrives in a topic within two minutes."""
    settings = {"bootstrap.servers": broker.address, "group.id": "test", "auto.offset.reset": "earliest"}
    consumer = Consumer({**settings, "topic.metadata.refresh.interval.ms": 500})
    consumer.subscribe([topic])
    until = time.monotonic() + 120
    try:
        while time.monotonic() < until:
            message = consumer.poll(0.5)
            if message is not None and message.error() is None and part in (message.value() or b""):
                return True
        return False
    finally:
        consumer.close()
