"""The URL of a store in Kafka: the settings of the client, and errors without the password."""

from __future__ import annotations

from pathlib import Path

import pytest

from stele.errors import InvalidRequest
from stele.storage.drivers import find_driver
from stele.storage.kafka.messages import Claim, print_key, read_key
from stele.storage.kafka.url import parse_url


@pytest.fixture(autouse=True)
def no_login(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the credentials from the environment of the tests."""
    for name in ("STELE_STORE_USER", "STELE_STORE_PASSWORD", "STELE_STORE_PASSWORD_FILE"):
        monkeypatch.delenv(name, raising=False)


def test_brokers_and_topic() -> None:
    """Brokers without a port get the default one; the name of the store has no password and no parameters."""
    address = parse_url("kafka://a,b:9093/stele?replication.factor=3&client.id=x")
    assert (address.brokers, address.topic, address.replication_factor) == ("a:9092,b:9093", "stele", 3)
    assert dict(address.client_settings) == {"client.id": "x"}
    assert find_driver("kafka:").name_store("kafka://me:sesame@a/stele?client.id=x") == "kafka://a:9092/stele"


def test_login(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """User and password come from the URL, the environment or a file, and are sent over TLS by default."""
    secret = tmp_path / "secret"
    secret.write_text("ses@me\n")
    assert parse_url("kafka://me:s%40x@a/t").client_settings["sasl.password"] == "s@x"
    monkeypatch.setenv("STELE_STORE_USER", "me")
    monkeypatch.setenv("STELE_STORE_PASSWORD_FILE", str(secret))
    assert dict(parse_url("kafka://a/t?sasl.mechanism=SCRAM-SHA-512").client_settings) == {
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "me",
        "sasl.password": "ses@me",
        "security.protocol": "SASL_SSL",
    }


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("kafka:", "is written kafka://"),
        ("kafka://a", "is written kafka://"),
        ("kafka:///t", "is written kafka://"),
        ("kafka://a,,b/t", "is written kafka://"),
        ("kafka://a/t/u", "is written kafka://"),
        ("kafka://a/..", "is written kafka://"),
        ("kafka://me:sesame@a/t?sasl.mechanisms=x", "no parameter 'sasl.mechanisms'.*did you mean"),
        ("kafka://me:sesame@a/t?transactional.id=x", "no parameter 'transactional.id'"),
        ("kafka://a/t?replication.factor=0", "a number from 1"),
    ],
)
def test_refused_urls(url: str, why: str) -> None:
    """The error for a wrong URL is one sentence without the password."""
    with pytest.raises(InvalidRequest, match=why) as refused:
        parse_url(url)
    assert "sesame" not in str(refused.value)


def test_keys_of_others_are_none() -> None:
    """Keys of other programs are ignored, in any form."""
    key = Claim(5, 1, "a", 2)
    assert print_key(key) == b'{"keytype":"RECORDS","seq":5,"count":1,"node":"a","attempt":2,"magic":1}'
    assert read_key(print_key(key), "here") == key
    for other in (None, b"", b"junk", b"{}", b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}', b"\xff"):
        assert read_key(other, "here") is None
