"""Shell completion."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from typer.testing import CliRunner

from stele.cli.app import app
from stele.cli.connect import Connection
from stele.client import Schema, SchemaRegistryClient
from stele.server.in_process import InProcessServer, InProcessTransport
from stele.server.log_config import configure_logs
from stele.server.settings import load_settings


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[SchemaRegistryClient]:
    """A registry that every connection leads to."""
    configure_logs("error", "console")
    server = InProcessServer(load_settings({"store": "memory:"}))

    def open_client(connection: Connection, **options: object) -> SchemaRegistryClient:
        return SchemaRegistryClient("http://x", transport=InProcessTransport(server))

    monkeypatch.setattr(Connection, "open_client", open_client)
    with SchemaRegistryClient("http://x", transport=InProcessTransport(server)) as client:
        yield client
    server.stop()


def complete(*words: str) -> list[str]:
    """Return what bash offers for the last word."""
    line = " ".join(("stele", *words))
    environ = {"_STELE_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words))}
    return CliRunner().invoke(app, [], env=environ, prog_name="stele").stdout.split()


def test_subjects_and_versions(registry: SchemaRegistryClient) -> None:
    """Completion offers the subjects that begin with the typed text, and the versions of the typed subject."""
    registry.register("orders-value", Schema('"int"'))
    registry.register("payments-value", Schema('"int"'))
    assert complete("schema", "get", "ord") == ["orders-value"]
    assert complete("subject", "delete", "orders-value", "--version", "l") == ["latest"]
    assert complete("schema", "get", "orders-value", "--version", "1") == ["1"]
    assert complete("schema", "get", "nobody", "--version", "1") == []


def test_silence_of_a_registry_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """An unreachable registry completes nothing and prints nothing."""
    monkeypatch.setenv("STELE_URL", "http://127.0.0.1:1")
    assert complete("schema", "get", "ord") == []


def test_names_of_commands() -> None:
    """Names of commands are completed."""
    assert complete("ba") == ["backtest", "backup"]
