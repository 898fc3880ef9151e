"""Statements 10 to 20 about the CNCF Schema Registry API, each tested with live registries that replicate each other.

A pushes to B, and C pulls from B under other names of groups. So what a statement claims for one registry is checked in
all of them. The page docs/protocols/cncf.md lists the statements; `test_every_statement_has_its_test` compares it with
this file.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import httpx
import pytest
from tests.support.webhook import Webhook
from tests.unit.server.authentication.test_password_file import bcrypt_line

from stele.replicate.replicator import Replicator, Scope
from stele.replicate.stele_registry import HttpApi, SteleRegistry
from stele.testing import registry
from stele.testing.registry_box import RegistryBox

PAGE = Path(__file__).parents[2] / "docs" / "protocols" / "cncf.md"
STATEMENTS = range(10, 21)
AVRO = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'
WIDER = AVRO.replace("int", "long")
TYPE = {"content-type": "application/json;format=avro"}
NETWORKS = ("127.0.0.0/8",)
UPDATED = "io.cloudevents.schemaregistry.updated.v1"
DELETED = "io.cloudevents.schemaregistry.deleted.v1"


class Chain(NamedTuple):
    """Three live registries, and clients of their HTTP APIs."""

    boxes: dict[str, RegistryBox]
    a: httpx.Client
    b: httpx.Client
    c: httpx.Client

    def make_group(self, name: str, **attributes: str) -> None:
        """Create a group at A."""
        answer = self.a.put(f"/schemagroups/{name}", json={"format": "avro", **attributes})
        assert answer.status_code == 201, answer.text

    def post(self, path: str, text: str = AVRO, **attributes: str) -> httpx.Response:
        """Register a document at A; the path is `group/schema`."""
        group, schema = path.split("/")
        place = f"/schemagroups/{group}/schemas/{schema}"
        answer = self.a.post(place, content=text, headers=TYPE, params=attributes)
        assert answer.status_code == 200, answer.text
        return answer

    def wait_until_equal(self, group: str) -> set[str]:
        """Wait until B and C have exactly the URIs that A has in a group, and return these."""
        wanted = list_uris(self.a, group)
        wait_for(lambda: (list_uris(self.b, group), list_uris(self.c, f"via.{group}")), (wanted, wanted))
        return wanted


@pytest.fixture(scope="module")
def chain() -> Iterator[Chain]:
    """Run three registries: A pushes everything to B, C pulls everything from B."""
    with (
        registry(port=0, public_url="http://a.example", outgoing_networks=NETWORKS) as a,
        registry(port=0, public_url="http://b.example", outgoing_networks=NETWORKS) as b,
        registry(port=0, public_url="http://c.example", outgoing_networks=NETWORKS) as c,
        httpx.Client(base_url=a.url, timeout=120) as at_a,
        httpx.Client(base_url=b.url, timeout=120) as at_b,
        httpx.Client(base_url=c.url, timeout=120) as at_c,
    ):
        start(at_a, "to-b", "push", b.url)
        start(at_c, "from-b", "pull", b.url, "via.${namespace}")
        yield Chain({"a": a, "b": b, "c": c}, at_a, at_b, at_c)


def start(client: httpx.Client, name: str, direction: str, url: str, namespace: str = "${namespace}") -> None:
    """Start a replication."""
    body = {"name": name, "direction": direction, "registry": {"url": url}, "namespace": namespace}
    answer = client.post("/api/replications", json=body)
    assert answer.status_code == 201, answer.text


def wait_for(find: Callable[[], Any], wanted: Any, seconds: float = 120.0) -> None:
    """Wait until `find` returns the wanted value."""
    until = time.monotonic() + seconds
    while (actual := find()) != wanted:
        assert time.monotonic() < until, (actual, wanted)
        time.sleep(0.05)


def list_uris(client: httpx.Client, group: str) -> set[str]:
    """Return the URIs of all versions of a group, each read separately."""
    uris = set()
    schemas = client.get(f"/schemagroups/{group}/schemas")
    for schema in schemas.json() if schemas.is_success else ():
        path = f"/schemagroups/{group}/schemas/{quote(schema, safe='')}"
        versions = client.get(f"{path}/versions")
        for number in versions.json() if versions.is_success else ():
            head = client.head(f"{path}/versions/{number}")
            if head.is_success:
                uris.add(head.headers["schema-version-uri"])
    return uris


def find_end(client: httpx.Client) -> str:
    """Return the position after the last event."""
    position, after = "0", ""
    while position != after:
        after = position
        position = client.get("/api/events", params={"after": after, "limit": 1000}).json()["next"]
    return position


def find_uri(client: httpx.Client, uri: str) -> int:
    """Return the status of a look-up by URI."""
    return client.get("/schema", params={"uri": uri}).status_code


def test_every_statement_has_its_test() -> None:
    """Statements 10 to 20 have a test here that is named by its number, and the page lists exactly those."""
    own = Path(__file__).read_text(encoding="utf-8")
    tests = dict(re.findall(r"^def test_(\d\d)(\w+)\(", own, re.MULTILINE))
    assert {int(number) for number in tests} == set(STATEMENTS)
    rows = dict(re.findall(r"^\| (\d\d) \|.*`test_\d\d(\w+)` \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    assert rows == tests


def test_10_versions_are_found_by_their_uris_everywhere(chain: Chain) -> None:
    """10: implied, relative, absolute and URN identifiers find a version in each registry; an unknown one does not."""
    chain.make_group("g10")
    chain.post("g10/implied")
    chain.post("g10/relative", authority="http://schemas.example/", id="/orders/2")
    chain.post("g10/absolute", authority="http://schemas.example/", id="http://other.example/41751")
    chain.post("g10/urn", authority="urn:example:schemas", id="a1b2c3d4")
    expected = {
        "http://a.example/schemagroups/g10/schemas/implied/versions/1",
        "http://schemas.example/orders/2",
        "http://other.example/41751",
        "urn:example:schemas:a1b2c3d4",
    }
    assert chain.wait_until_equal("g10") == expected
    for client in (chain.a, chain.b, chain.c):
        assert {find_uri(client, uri) for uri in expected} == {200}
        assert find_uri(client, "urn:example:schemas:none") == 404
        assert client.get("/schema").status_code == 400


def test_11_a_deleted_schema_loses_its_uris_everywhere(chain: Chain) -> None:
    """11: URIs of a deleted schema are found in no registry. A group remains after its last schema is deleted."""
    chain.make_group("g11")
    for name in ("one", "two"):
        chain.post(f"g11/{name}")
    before = chain.wait_until_equal("g11")
    assert chain.a.delete("/schemagroups/g11/schemas/one").status_code == 204
    left = chain.wait_until_equal("g11")
    assert left == {"http://a.example/schemagroups/g11/schemas/two/versions/1"}
    (deleted_uri,) = before - left
    assert [find_uri(client, deleted_uri) for client in (chain.a, chain.b, chain.c)] == [404] * 3
    assert chain.a.delete("/schemagroups/g11/schemas").status_code == 204
    assert chain.wait_until_equal("g11") == set()
    assert chain.a.get("/schemagroups/g11").json()["format"] == "avro"
    assert "g11" in chain.a.get("/schemagroups").json()


def test_12_a_refused_version_is_stored_nowhere(chain: Chain) -> None:
    """12: a document that breaks the policy gets 409 and is stored in no registry; later documents are replicated."""
    chain.make_group("g12")
    chain.post("g12/s")
    assert chain.a.put("/config/:.g12:s", json={"compatibility": "BACKWARD"}).is_success
    before = chain.wait_until_equal("g12")
    broken = AVRO.replace('"int"', '"string"')
    answer = chain.a.post("/schemagroups/g12/schemas/s", content=broken, headers=TYPE)
    assert answer.status_code == 409
    assert list_uris(chain.a, "g12") == before
    chain.post("g12/s", WIDER)
    assert len(chain.wait_until_equal("g12")) == 2
    assert all(broken not in chain.c.get(f"/schemagroups/via.g12/schemas/s/versions/{n}").text for n in (1, 2))


def test_13_a_description_arrives_with_its_version(chain: Chain) -> None:
    """13: a description from the query or a header is returned by the first registry and by its replicas."""
    chain.make_group("g13")
    chain.post("g13/query", description="Größe, by query")
    headers = {**TYPE, "schema-description": "by header"}
    answer = chain.a.post("/schemagroups/g13/schemas/header", content=AVRO, headers=headers)
    assert answer.status_code == 200
    chain.wait_until_equal("g13")
    for schema in ("query", "header"):
        texts = [
            client.get(f"/schemagroups/{group}/schemas/{schema}/versions/1").headers["schema-description"]
            for client, group in ((chain.a, "g13"), (chain.b, "g13"), (chain.c, "via.g13"))
        ]
        assert texts == [texts[0]] * 3
        assert schema in texts[0]


def test_14_an_import_names_its_source(chain: Chain) -> None:
    """14: an import fills in the source's base URI and absolute ids; a second one writes nothing."""
    chain.make_group("g14")
    chain.post("g14/s")
    with (
        registry(port=0, public_url="http://d.example") as target,
        httpx.Client(base_url=target.url, timeout=60) as client,
    ):
        ends = [SteleRegistry(HttpApi(box.client), box.url) for box in (chain.boxes["a"], target)]
        work = Replicator(ends[0], ends[1], Scope((":.g14:*",)))
        assert work.synchronize().registered == 1
        headers = client.head("/schemagroups/g14/schemas/s/versions/1").headers
        assert headers["schema-authority"] == "http://a.example"
        assert headers["schema-version-uri"] == "http://a.example/schemagroups/g14/schemas/s/versions/1"
        before = client.get("/api/journal").json()["next"]
        again = work.synchronize()
        assert (again.registered, again.removed, again.same, again.conflicts) == (0, 0, 1, ())
        assert client.get("/api/journal").json()["next"] == before


def test_15_a_pull_reaches_the_same_uris_under_other_names(chain: Chain) -> None:
    """15: C has the URIs of the groups that it pulled under other names, and keeps its own."""
    assert chain.c.put("/schemagroups/own15", json={"format": "avro"}).status_code == 201
    assert chain.c.post("/schemagroups/own15/schemas/s", content=AVRO, headers=TYPE).status_code == 200
    for group in ("g15a", "g15b"):
        chain.make_group(group)
        chain.post(f"{group}/s")
        chain.post(f"{group}/s", WIDER)
    for group in ("g15a", "g15b"):
        assert len(chain.wait_until_equal(group)) == 2
    assert {"own15", "via.g15a", "via.g15b"} <= set(chain.c.get("/schemagroups").json())
    assert list_uris(chain.c, "own15") == {"http://c.example/schemagroups/own15/schemas/s/versions/1"}


def test_16_a_push_brings_creations_and_deletions(chain: Chain) -> None:
    """16: B receives new and deleted versions by push, and a schema that is created again."""
    chain.make_group("g16")
    chain.post("g16/s")
    chain.post("g16/s", WIDER)
    assert len(chain.wait_until_equal("g16")) == 2
    assert chain.a.delete("/schemagroups/g16/schemas/s/versions/1").status_code == 204
    assert len(chain.wait_until_equal("g16")) == 1
    assert chain.a.delete("/schemagroups/g16/schemas/s").status_code == 204
    chain.post("g16/s", WIDER)
    (uri,) = chain.wait_until_equal("g16")
    assert [client.get("/schema", params={"uri": uri}).text for client in (chain.a, chain.b, chain.c)] == [WIDER] * 3


def test_17_each_change_is_one_event(chain: Chain) -> None:
    """17: a change causes one event with its path, the time in the element, a unique id, and no data."""
    position = find_end(chain.a)
    group, schema = "/schemagroups/g17", "/schemagroups/g17/schemas/s"
    details = f"/xregistry{schema}/versions"
    events: list[dict[str, Any]] = []

    def expect(kind: str, path: str) -> dict[str, Any]:
        nonlocal position
        page = chain.a.get("/api/events", params={"after": position}).json()
        position = page["next"]
        assert len(page["events"]) == 1, page
        (event,) = page["events"]
        assert (event["type"], event["subject"], event["source"]) == (kind, path, "http://a.example")
        assert event["specversion"] == "1.0"
        assert "data" not in event
        events.append(event)
        return dict(event)

    chain.make_group("g17")
    assert expect(UPDATED, group)["time"] == chain.a.get(group).json()["createdtimeutc"]
    chain.a.put(group, json={"format": "avro", "description": "other"})
    assert expect(UPDATED, group)["time"] == chain.a.get(group).json()["updatedtimeutc"]
    for number, text in ((1, AVRO), (2, WIDER)):
        chain.post("g17/s", text)
        created_at = chain.a.get(f"{details}/{number}$details").json()["createdat"]
        event_time = expect(UPDATED, f"{schema}/versions/{number}")["time"]
        assert datetime.fromisoformat(event_time) == datetime.fromisoformat(created_at)
    chain.post("g17/s", WIDER)
    assert chain.a.get("/api/events", params={"after": position}).json()["events"] == []
    chain.a.delete(f"{schema}/versions/1")
    expect(DELETED, f"{schema}/versions/1")
    chain.a.delete(schema)
    expect(DELETED, schema)
    chain.a.delete(group)
    expect(DELETED, group)
    assert len({event["id"] for event in events}) == len(events) == 7
    assert [event["time"] for event in events] == sorted(event["time"] for event in events)


def test_18_a_prefix_filter_gets_its_group_alone(chain: Chain) -> None:
    """18: a subscription in the older format at a replica gets the events of its group only, replicated ones too."""
    with Webhook() as hook:
        response = chain.b.post(
            "/subscriptions",
            headers={"content-type": "application/cloudevents-subscription+json"},
            json={
                "source": "http://b.example",
                "protocol": "HTTPS",
                "sink": hook.url,
                "filter": {"prefix": {"subject": "/schemagroups/g18/"}},
            },
        )
        assert response.status_code == 201, response.text
        assert response.json()["filters"] == [{"prefix": {"subject": "/schemagroups/g18/"}}]
        for name in ("g18", "g18-other"):
            chain.make_group(name)
            chain.post(f"{name}/s")
            chain.wait_until_equal(name)
        chain.post("g18/s", WIDER)
        chain.wait_until_equal("g18")
        path = "/schemagroups/g18/schemas/s/versions"
        # An event is sent again if the webhook answered too late.
        wait_for(
            lambda: list(
                dict.fromkeys(row.event["subject"] for row in hook.deliveries if "/versions/" in row.event["subject"])
            ),
            [f"{path}/1", f"{path}/2"],
        )
        assert all(row.event["subject"].startswith("/schemagroups/g18/") for row in hook.deliveries)
        assert chain.b.delete(f"/subscriptions/{response.json()['id']}").status_code == 200


def test_19_subscriptions_are_managed(chain: Chain) -> None:
    """19: a subscription is created, read, replaced, deleted; bad filters and sources get 400; no secret is shown."""
    body = {
        "sink": "http://127.0.0.1:9/none",
        "protocol": "HTTP",
        "types": [DELETED],
        "sinkCredential": {"credentialType": "PLAIN", "identifier": "i", "secret": "geheim"},
    }
    creation = chain.b.post("/subscriptions", json=body)
    place = f"/subscriptions/{creation.json()['id']}"
    assert (creation.status_code, creation.headers["location"]) == (201, f"http://b.example{place}")
    subscription = chain.b.get(place)
    listed = chain.b.get("/subscriptions")
    changed = chain.b.put(place, json={**subscription.json(), "types": [UPDATED]})
    assert [answer.status_code for answer in (subscription, listed, changed)] == [200] * 3
    assert changed.json()["types"] == [UPDATED]
    assert all("geheim" not in answer.text for answer in (creation, subscription, listed, changed))
    for filters in ([{"jsonpath": "$.type"}], [{"exact": {}}], [{"exact": {"type": "t"}, "prefix": {"type": "t"}}]):
        assert chain.b.post("/subscriptions", json={**body, "filters": filters}).status_code == 400
        assert chain.b.put(place, json={**body, "filters": filters}).status_code == 400
    elsewhere = {**body, "source": "http://a.example"}
    assert chain.b.post("/subscriptions", json=elsewhere).status_code == 400
    assert chain.b.put(place, json=elsewhere).status_code == 400
    ended = chain.b.delete(place)
    assert ended.status_code == 200
    assert [chain.b.request(method, place).status_code for method in ("GET", "DELETE")] == [404, 404]


def test_20_ids_of_groups_are_seen_by_all(chain: Chain, tmp_path: Path) -> None:
    """20: a user without the right to read a group sees its id in the list and no details, also in a replica."""
    chain.make_group("g20", description="hidden from ann")
    chain.post("g20/s")
    (tmp_path / "users").write_text(bcrypt_line("ann", "pw") + bcrypt_line("root", "zero"))
    (tmp_path / "rules").write_text("allow user:ann list registry\n")
    settings = {
        "authentication": ("basic",),
        "password_file": str(tmp_path / "users"),
        "access": "deny",
        "access_rules": str(tmp_path / "rules"),
        "super_users": ("user:root",),
    }
    with registry(port=0, public_url="http://d.example", outgoing_networks=NETWORKS, **settings) as box:
        root = httpx.Client(base_url=box.url, auth=("root", "zero"), timeout=60)
        ann = httpx.Client(base_url=box.url, auth=("ann", "pw"), timeout=60)
        with root, ann:
            start(root, "from-a", "pull", chain.boxes["a"].url)
            wait_for(lambda: root.get("/schemagroups/g20/schemas/s/versions/1").status_code, 200)
            assert "g20" in ann.get("/schemagroups").json()
            assert ann.get("/schemagroups/g20").json() == {"id": "g20"}
            assert ann.get("/schemagroups/none").status_code == 404
            for path in ("/schemas", "/schemas/s", "/schemas/s/versions/1"):
                assert ann.get(f"/schemagroups/g20{path}").status_code == 403, path
                assert root.get(f"/schemagroups/g20{path}").status_code == 200, path
            uri = "http://a.example/schemagroups/g20/schemas/s/versions/1"
            assert (find_uri(ann, uri), find_uri(root, uri)) == (403, 200)
