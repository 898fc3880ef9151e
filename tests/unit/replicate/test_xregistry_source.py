"""xRegistry servers as sources: Stele's own dialect, and a server with the minimum of the specification."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from stele.errors import Refused, RegistryUnreachable
from stele.protocol.replication import ReplicaState
from stele.replicate.replicator import Replicator
from stele.replicate.stele_registry import HttpApi, SteleRegistry
from stele.replicate.xregistry_source import XRegistrySource
from stele.testing import registry
from stele.testing.registry_box import RegistryBox

AUTHORITY = "http://x.example"
GROUP = "/xregistry/schemagroups/g/schemas"


@pytest.fixture(scope="module")
def boxes() -> Iterator[list[RegistryBox]]:
    """A source and a target."""
    with registry(public_url="http://a.example") as first, registry(public_url="http://b.example") as second:
        yield [first, second]


@pytest.fixture
def http(a: RegistryBox) -> Iterator[httpx.Client]:
    """A client of the source."""
    with httpx.Client(transport=a.transport, base_url=a.url) as client:
        yield client


def follow(a: RegistryBox, b: RegistryBox) -> Replicator:
    """Return a replication that reads only the xRegistry API of the source."""
    client = httpx.Client(transport=a.transport)
    source = XRegistrySource(client, f"{a.url}/xregistry", AUTHORITY)
    return Replicator(source, SteleRegistry(HttpApi(b.client), b.url))


def put(http: httpx.Client, path: str, text: str, **attributes: object) -> None:
    """Write a version."""
    body = {"format": "Avro/1.12", "schema": text, **attributes}
    answer = http.put(f"{GROUP}/{path}$details", json=body)
    assert answer.is_success, answer.text


def numbers(b: RegistryBox, subject: str) -> dict[int, str]:
    """Return the texts of a subject at the target, by number."""
    named = f":.g:{subject}"
    return {number: b.client.version(named, number).text for number in b.client.versions(named)}


def test_versions_arrive_with_what_they_have(a: RegistryBox, b: RegistryBox, http: httpx.Client) -> None:
    """Groups, ids, documents, URIs, labels and unknown formats are replicated; a second run does nothing."""
    put(http, "s/versions/1", '"string"', description="first", labels={"a": "b"})
    put(http, "s/versions/2", '"bytes"')
    a.register_all({"orders": '"int"'})
    http.put(f"{GROUP}/raw/versions/1", content=b"\xff\x00", headers={"xRegistry-format": "Homemade/1"})
    http.put(f"{GROUP}/far/versions/1$details", json={"format": "Avro/1.12", "schemaurl": "http://else.example/x"})
    replicator = follow(a, b)
    assert replicator.synchronize().registered == 4
    rows = {(row.namespace, row.subject, row.version): row for row in replicator.target.read_target_versions(None, ())}
    assert set(rows) == {("", "orders", 1), ("g", "raw", 1), ("g", "s", 1), ("g", "s", 2)}
    row = rows["g", "s", 1]
    assert (row.uri, row.authority) == (f"{AUTHORITY}/schemagroups/g/schemas/s/versions/1", AUTHORITY)
    assert (row.description, row.labels, row.written_format) == ("first", {"a": "b"}, "Avro/1.12")
    assert (rows["g", "raw", 1].format, rows["g", "raw", 1].custom_format) == ("opaque", "Homemade/1")
    assert numbers(b, "s") == {1: '"string"', 2: '"bytes"'}
    again = replicator.synchronize()
    assert (again.registered, again.removed, again.same, again.conflicts) == (0, 0, 4, ())
    other = follow(a, b).synchronize()
    assert (other.registered, other.removed, other.same) == (0, 0, 4)


def test_names_get_numbers_that_stay(a: RegistryBox, b: RegistryBox, http: httpx.Client) -> None:
    """Versions whose ids are no numbers are numbered in order, and keep their numbers when others are deleted."""
    put(http, "s/versions/v1.0", '"string"')
    put(http, "s/versions/v1.1", '"bytes"')
    replicator = follow(a, b)
    assert replicator.synchronize().registered == 2
    assert numbers(b, "s") == {1: '"string"', 2: '"bytes"'}
    http.delete(f"{GROUP}/s/versions/v1.0")
    put(http, "s/versions/v1.2", '"string"', ancestorid="v1.1")
    outcome = replicator.synchronize()
    assert (outcome.registered, outcome.removed, outcome.conflicts) == (1, 1, ())
    assert numbers(b, "s") == {2: '"bytes"', 3: '"string"'}
    assert follow(a, b).synchronize().same == 2


def test_deletions_new_lives_and_replaced_documents(a: RegistryBox, b: RegistryBox, http: httpx.Client) -> None:
    """Deleted versions are removed, even if equal ones were created again; a replaced document is another version."""
    put(http, "s/versions/1", '"string"')
    put(http, "t/versions/1", '"string"')
    replicator = follow(a, b)
    replicator.synchronize()
    uids = {row.subject: row.uid for row in replicator.target.read_target_versions(None, ())}
    http.delete(f"{GROUP}/s")
    put(http, "s/versions/1", '"string"')
    put(http, "t/versions/1", '"string"', labels={"new": "label"})
    outcome = replicator.synchronize()
    assert (outcome.registered, outcome.removed, outcome.conflicts) == (1, 1, ())
    after = {row.subject: row.uid for row in replicator.target.read_target_versions(None, ())}
    assert (after["s"] != uids["s"], after["t"]) == (True, uids["t"])
    put(http, "t/versions/1", '"long"')
    outcome = replicator.synchronize()
    assert (outcome.registered, outcome.removed) == (1, 1)
    assert numbers(b, "t") == {1: '"long"'}
    http.delete("/xregistry/schemagroups/g")
    assert replicator.synchronize().removed == 2
    assert b.client.subjects(deleted=True) == []


def test_looks_cost_little_while_nothing_changes(a: RegistryBox, b: RegistryBox, http: httpx.Client) -> None:
    """A check of unchanged lists transfers no body; each kind of change is detected."""
    put(http, "s/versions/1", '"string"')
    bodies: list[int] = []
    source = XRegistrySource(
        httpx.Client(transport=a.transport, event_hooks={"response": [lambda row: bodies.append(row.status_code)]}),
        f"{a.url}/xregistry",
    )
    position = source.wait_for_changes("", 0).position
    bodies.clear()
    assert source.wait_for_changes(position, 0).subjects == frozenset()
    assert set(bodies) == {304}
    put(http, "s/versions/1", '"string"', labels={"a": "b"})
    changed = source.wait_for_changes(position, 0)
    assert changed.subjects is None
    put(http, "s/versions/2", '"bytes"')
    later = source.wait_for_changes(changed.position, 0)
    assert later.subjects is None
    http.delete(f"{GROUP}/s/versions/1")
    assert source.wait_for_changes(later.position, 0).subjects is None


# --- another server ---------------------------------------------------------------------------------------------------


def answer_plainly(request: httpx.Request) -> httpx.Response:
    """Answer like a server without tags, pages and `binary`, with one cross reference."""
    path = request.url.path.removeprefix("/reg")
    version = {"versionid": "v1", "epoch": 3, "createdat": "2026-01-02T03:04:05Z", "format": "JsonSchema/draft-07"}
    if path == "/capabilities":
        return httpx.Response(200, json={"flags": ["inline", "filter"]})
    if path == "/schemagroups":
        return httpx.Response(200, json={"contoso.erp": {"schemagroupid": "contoso.erp"}})
    if path == "/schemagroups/contoso.erp/schemas":
        assert "binary" not in request.url.query.decode()
        schema = {"schemaid": "order", "meta": {"epoch": 1}, "versions": {"v1": version}}
        linked = {"schemaid": "same", "meta": {"xref": "/schemagroups/contoso.erp/schemas/order"}}
        return httpx.Response(200, json={"order": schema, "same": {**linked, "versions": {"v1": version}}})
    if path == "/schemagroups/contoso.erp/schemas/order/versions/v1":
        return httpx.Response(200, content=b'{ "type": "object" }', headers={"content-type": "application/json"})
    return httpx.Response(404)


def test_a_plain_server_is_enough(b: RegistryBox) -> None:
    """Without pages, tags and inlined documents everything is replicated; a cross reference makes no copy."""
    source = XRegistrySource(httpx.Client(transport=httpx.MockTransport(answer_plainly)), "http://x.example/reg")
    replicator = Replicator(source, SteleRegistry(HttpApi(b.client), b.url))
    assert replicator.synchronize().registered == 1
    assert b.client.subjects() == [":.contoso.erp:order"]
    version = b.client.version(":.contoso.erp:order")
    assert (version.text, version.version, version.schema_type) == ('{ "type": "object" }', 1, "JSON")
    assert replicator.synchronize().same == 1
    row = replicator.target.read_target_versions(None, ())[0]
    assert source.find_fates([row]) == {}
    position = source.wait_for_changes("", 0).position
    assert source.wait_for_changes(position, 0).subjects == frozenset()


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (httpx.Response(200, json={"flags": ["filter"]}), Refused),
        (httpx.Response(200, content=b"<html>"), RegistryUnreachable),
        (httpx.Response(500), RegistryUnreachable),
        (httpx.Response(403), Refused),
    ],
)
def test_what_is_no_such_server_is_told(answer: httpx.Response, error: type[Exception]) -> None:
    """Unexpected responses raise errors of Stele."""
    source = XRegistrySource(httpx.Client(transport=httpx.MockTransport(lambda _: answer)), "http://x.example")
    with pytest.raises(error):
        source.read(None, None, texts=True)


def test_a_lost_page_takes_nothing_along(a: RegistryBox, b: RegistryBox, http: httpx.Client) -> None:
    """A version that is missing in a list is requested by name before it counts as deleted."""
    put(http, "s/versions/1", '"string"')
    replicator = follow(a, b)
    replicator.synchronize()
    row = replicator.target.read_target_versions(None, ())[0]
    assert replicator.source.find_fates([row]) == {row.uid: ReplicaState.ACTIVE}
