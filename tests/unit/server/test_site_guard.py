"""Pages of other sites cannot change or read anything, in any dialect."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import httpx
import pytest

from stele.errors import InvalidRequest
from stele.server.dialects import DIALECTS
from stele.server.in_process import InProcessServer, InProcessTransport
from stele.server.settings import ServerSettings, load_settings
from stele.server.site_guard import SiteGuard

LOOPBACK, PUBLIC = "127.0.0.1", "192.0.2.7"


@pytest.mark.parametrize(
    ("host", "hosts", "address", "is_known"),
    [
        (b"localhost:8081", [], LOOPBACK, True),
        (b"app.localhost", [], LOOPBACK, True),
        (b"LOCALHOST.", [], LOOPBACK, True),
        (b"127.0.0.1:8081", [], LOOPBACK, True),
        (b"[::1]:8081", [], "::1", True),
        (b"192.0.2.7", [], PUBLIC, True),
        (b"", [], LOOPBACK, True),
        (b"desk:8081", ["registry.example.org"], LOOPBACK, True),
        (b"evil.example", [], LOOPBACK, False),
        (b"evil.example", [], "::1", False),
        (b"127.0.0.1.evil.example", [], LOOPBACK, False),
        (b"localhost.evil.example", [], LOOPBACK, False),
        (b"evil.example@localhost.evil.example", [], LOOPBACK, False),
        (b"[::1", [], LOOPBACK, False),
        (b"evil.example", [], PUBLIC, True),
        (b"registry.example.org:8081", ["registry.example.org"], LOOPBACK, True),
        (b"Registry.Example.org", ["registry.example.ORG"], PUBLIC, True),
        (b"evil.example", ["registry.example.org"], PUBLIC, False),
        (b"a.example.org", ["*.example.org"], PUBLIC, True),
        (b"example.org", ["*.example.org"], PUBLIC, False),
        (b"aexample.org", ["*.example.org"], PUBLIC, False),
        (b"evil.example", ["*"], LOOPBACK, True),
    ],
)
def test_known_hosts(host: bytes, hosts: list[str], address: str, is_known: bool) -> None:
    """Addresses and localhost are always known, other names if they are listed or the connection is no loopback one."""
    guard = SiteGuard(hosts, [])
    for _ in range(2):  # first checked, then cached
        refusal = guard.find_refusal("GET", [(b"host", host)], address)
        assert (refusal is None) is is_known


@pytest.mark.parametrize(
    ("origin", "origins", "is_allowed"),
    [
        (b"http://127.0.0.1:8081", [], True),
        (b"https://127.0.0.1:8081", [], True),
        (b"http://127.0.0.1", [], False),
        (b"http://127.0.0.1:3000", [], False),
        (b"http://evil.example", [], False),
        (b"null", [], False),
        (b"\xff://x", [], False),
        (b"https://ui.example.org", ["https://ui.example.org"], True),
        (b"https://ui.example.org.evil", ["https://ui.example.org"], False),
        (b"null", ["*"], True),
    ],
)
def test_origins_of_changes(origin: bytes, origins: list[str], is_allowed: bool) -> None:
    """A change must come from a page of this server, from a page of a named origin, or without an origin."""
    guard, headers = SiteGuard([], origins), [(b"host", b"127.0.0.1:8081"), (b"origin", origin)]
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        assert (guard.find_refusal(method, headers, LOOPBACK) is None) is is_allowed
    for method in ("GET", "HEAD", "OPTIONS"):
        assert guard.find_refusal(method, headers, LOOPBACK) is None
    assert guard.find_refusal("POST", headers[:1], LOOPBACK) is None


def test_default_ports_are_the_same_origin() -> None:
    """An origin with the default port equals one without it."""
    guard = SiteGuard(["registry.example.org"], [])
    for host, origin in (
        (b"registry.example.org", b"https://registry.example.org"),
        (b"registry.example.org:443", b"https://registry.example.org"),
        (b"registry.example.org", b"http://registry.example.org:80"),
    ):
        assert guard.find_refusal("POST", [(b"host", host), (b"origin", origin)], PUBLIC) is None


def test_verdicts_about_hosts_are_bounded() -> None:
    """Many invented host names do not fill the memory."""
    guard = SiteGuard([], [])
    for number in range(1000):
        assert not guard.knows_host(b"h%d.example" % number, LOOPBACK)
    assert len(guard._known) <= 256


def test_names_in_the_settings() -> None:
    """Names are a comma-separated list; invalid names are refused."""
    assert load_settings({}, environ={"STELE_ALLOWED_HOSTS": "a.example, *.example.org"}).allowed_hosts == (
        "a.example",
        "*.example.org",
    )
    for wrong in ("http://a.example", "a.example:80", "*.*", "a*", ""):
        with pytest.raises(InvalidRequest, match="allowed_hosts"):
            load_settings({"allowed_hosts": [wrong]}, environ={})


class Change(NamedTuple):
    """A request that changes something, and a request that reads."""

    method: str
    path: str
    body: Any
    content_type: str
    read: str


AVRO = json.dumps({"type": "record", "name": "R", "fields": []})
CHANGES = {
    "confluent": Change(
        "POST", "/subjects/s/versions", {"schema": AVRO}, "application/vnd.schemaregistry.v1+json", "/subjects"
    ),
    "native": Change("PUT", "/api/policies/s", {"policy": "none"}, "application/json", "/api/policies/s"),
    "pravega": Change(
        "POST",
        "/v1/groups",
        {"groupName": "g", "groupProperties": {}},
        "application/json",
        "/v1/groups",
    ),
    "schema-repo": Change("PUT", "/schema-repo/s", "", "application/x-www-form-urlencoded", "/schema-repo"),
    "cncf": Change("PUT", "/schemagroups/g", {"format": "Avro"}, "application/json", "/schemagroups"),
    "rocketmq": Change(
        "POST",
        "/schema-registry/v1/subject/s/schema/S",
        {"schemaIdl": AVRO, "schemaType": "AVRO"},
        "application/json",
        "/schema-registry/v1/cluster/default/tenant/default/subjects",
    ),
    "xregistry": Change("PUT", "/xregistry/schemagroups/g", {}, "application/json", "/xregistry/schemagroups"),
    "openschema": Change(
        "POST", "/openschema/subjects/s/versions", {"schema": AVRO}, "application/json", "/openschema/subjects"
    ),
}


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    """A client of a server that listens on a loopback address."""
    server = InProcessServer(ServerSettings(store="memory:"))
    with httpx.Client(transport=InProcessTransport(server), base_url="http://127.0.0.1:8081") as client:
        yield client
    server.stop()


@pytest.mark.parametrize("dialect", [dialect.name for dialect in DIALECTS])
def test_every_dialect_refuses_in_its_own_shape(client: httpx.Client, dialect: str) -> None:
    """A page of another origin cannot change anything, and a foreign host name cannot read anything, cached or not."""
    change = CHANGES[dialect]
    body = change.body if isinstance(change.body, str) else json.dumps(change.body)
    before = client.get(change.read)
    assert before.status_code == 200, before.text
    foreign = [
        (change.method, change.path, {"origin": "https://evil.example"}),
        (change.method, change.path, {"host": "evil.example:8081"}),
        ("GET", change.read, {"host": "evil.example:8081"}),
    ]
    shapes = set()
    for method, path, headers in foreign:
        sent = {"content-type": change.content_type, **headers}
        answer = client.request(method, path, content=body if method != "GET" else None, headers=sent)
        assert answer.status_code == 403, (path, answer.text)
        assert "evil.example" in answer.text
        shapes.add(answer.headers["content-type"].partition(";")[0])
    assert len(shapes) == 1, shapes
    after = client.get(change.read)
    assert (after.status_code, after.content) == (200, before.content)


def test_pages_of_operation(client: httpx.Client) -> None:
    """Metrics and the start page are refused for foreign host names; probes are always answered."""
    foreign = {"host": "evil.example"}
    for path in ("/metrics", "/"):
        assert client.get(path, headers=foreign).status_code == 403
        assert client.get(path).status_code == 200
    for path in ("/health/live", "/health/ready"):
        assert client.get(path, headers=foreign).status_code == 200
