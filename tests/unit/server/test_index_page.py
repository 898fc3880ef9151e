"""The page at `/`."""

from __future__ import annotations

import json
from collections.abc import Iterator

import httpx
import pytest

from stele.server.dialects import DIALECTS
from stele.server.in_process import InProcessServer, InProcessTransport
from stele.server.settings import load_settings

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


@pytest.fixture(scope="module")
def http() -> Iterator[httpx.Client]:
    """A server."""
    server = InProcessServer(load_settings({"store": "memory:", "listen": ["pravega=9999"]}))
    with httpx.Client(transport=InProcessTransport(server), base_url="http://127.0.0.1:8081") as client:
        yield client
    server.stop()


def test_a_browser_gets_a_page(http: httpx.Client) -> None:
    """The page names every API with its document, and its links are relative, since a proxy may add a prefix."""
    answer = http.get("/", headers={"accept": BROWSER})
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    for dialect in DIALECTS:
        assert f'href="_docs/{dialect.name}/openapi.json"' in answer.text
        assert http.get(f"/_docs/{dialect.name}/openapi.json").status_code == 200
    assert 'href="health/ready"' in answer.text
    assert '<a href="ui">Browse the schemas</a>' in answer.text
    assert http.get("/ui").status_code == 200
    assert http.head("/", headers={"accept": BROWSER}).headers["content-length"] == answer.headers["content-length"]


def test_a_program_gets_the_same_as_json(http: httpx.Client) -> None:
    """Accept: application/json returns the index, and its paths exist."""
    index = json.loads(http.get("/", headers={"accept": "application/json"}).content)
    assert (index["status"], index["reason"], index["store"], index["schemas"]) == ("ready", "", "memory", 0)
    assert index["counts"] == {"schemas": 0, "subjects": 0, "versions": 0, "ids": 0, "position": 0}
    assert [dialect["name"] for dialect in index["dialects"]] == [dialect.name for dialect in DIALECTS]
    assert all(http.get(path).status_code == 200 for path in index["health"].values())


@pytest.mark.parametrize(
    "accept", ["*/*", "application/vnd.schemaregistry.v1+json, application/vnd.schemaregistry+json, application/json"]
)
def test_clients_of_the_confluent_api_get_its_answer(http: httpx.Client, accept: str) -> None:
    """Clients that check whether a registry is there get the empty object of the Confluent API."""
    assert http.get("/", headers={"accept": accept}).json() == {}


def test_a_port_of_one_dialect_has_no_index(http: httpx.Client) -> None:
    """On the port of one dialect, `/` is answered by the dialect."""
    assert http.get("http://127.0.0.1:9999/", headers={"accept": BROWSER}).status_code == 404
