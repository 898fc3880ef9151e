"""One server in this process, with schemas of several formats, for all tests of the pages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from stele.server.in_process import InProcessServer, InProcessTransport
from stele.server.settings import ServerSettings

JSON = {"content-type": "application/json"}
ADDRESS = {
    "type": "record",
    "name": "Address",
    "namespace": "org.shop",
    "fields": [{"name": "city", "type": "string", "doc": "Town or city."}],
}
_ID = {"name": "id", "type": "long", "doc": "Number of the order."}
_EMAIL = {"name": "email", "type": ["null", "string"], "default": None}
_STATUS = {"name": "status", "type": "string"}


def make_order(*fields: dict[str, Any]) -> dict[str, Any]:
    """Return a record schema with these fields after its id."""
    return {"type": "record", "name": "Order", "namespace": "org.shop", "doc": "An order.", "fields": [_ID, *fields]}


def open_server(**settings: Any) -> Iterator[tuple[InProcessServer, httpx.Client]]:
    """Yield a server with these settings and its client, and close both at the end."""
    server = InProcessServer(ServerSettings(store="memory:", **settings))
    with httpx.Client(transport=InProcessTransport(server), base_url="http://127.0.0.1:8081") as client:
        yield server, client
    server.stop()


def open_client(**settings: Any) -> Iterator[httpx.Client]:
    """Yield a client of a server with these settings, and close both at the end."""
    for _, client in open_server(**settings):
        yield client


def register(client: httpx.Client, subject: str, schema: Any, prefix: str = "", **body: Any) -> None:
    """Register a version of a subject."""
    text = schema if isinstance(schema, str) else json.dumps(schema)
    sent = json.dumps({"schema": text, **body})
    response = client.post(f"{prefix}/subjects/{subject}/versions", content=sent, headers=JSON)
    assert response.status_code == 200, response.text


@pytest.fixture(scope="package")
def client() -> Iterator[httpx.Client]:
    """A client of a server with content for every page; tests change nothing in it."""
    for client in open_client():
        reference = {"name": "org.shop.Address", "subject": "address", "version": 1}
        register(client, "address", ADDRESS)
        register(client, "orders", make_order())
        register(client, "orders", make_order(_EMAIL))
        address = {"name": "address", "type": ["null", "org.shop.Address"], "default": None}
        register(client, "orders", make_order(_EMAIL, address), references=[reference])
        client.put("/config/orders", content='{"compatibility": "NONE"}', headers=JSON)
        register(client, "orders", make_order(_STATUS, address), references=[reference])
        register(client, "payments", 'syntax = "proto3";\nmessage Payment { int64 id = 1; }', schemaType="PROTOBUF")
        register(client, "clicks", {"type": "object", "properties": {"url": {"type": "string"}}}, schemaType="JSON")
        register(client, "gone", '"string"')
        client.delete("/subjects/gone")
        register(client, "orders", make_order(), prefix="/contexts/.team")
        yield client
