"""How commands that talk to a registry find it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from stele.cli.output import exit_on_error
from stele.client import SchemaRegistryClient

DEFAULT_URLS = ["http://127.0.0.1:8081"]


@contextmanager
def connect(urls: list[str]) -> Iterator[SchemaRegistryClient]:
    """A client for the length of a command; its errors end the command with exit code 2."""
    with exit_on_error(), SchemaRegistryClient(urls) as client:
        yield client
