"""Replication between two and three registries in this process, with every kind of source and target."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from urllib.parse import quote

import httpx
import pytest

from stele.client import Retry, Schema, SchemaRegistryClient
from stele.errors import SteleError
from stele.protocol.confluent import SchemaReference as Reference
from stele.protocol.replication import ConflictCode, ImportAnswer, ReplicaImportRequest, ReplicaState, SubjectName
from stele.replicate import replicator
from stele.replicate.cncf_source import CncfSource
from stele.replicate.confluent_source import ConfluentSource
from stele.replicate.confluent_target import ConfluentTarget
from stele.replicate.dump_target import ProcessMemory
from stele.replicate.foreign_api import ForeignApi
from stele.replicate.plan import ReplicationPlan
from stele.replicate.registries import Changes
from stele.replicate.replicator import ReplicationOutcome, Replicator, Scope, SourceEmptied
from stele.replicate.stele_registry import HttpApi, SteleRegistry
from stele.replicate.xregistry_source import XRegistrySource
from stele.service.subject_patterns import Renaming
from stele.testing import registry
from stele.testing.registry_box import RegistryBox

ORDER = json.dumps({"type": "record", "name": "Order", "fields": [{"name": "id", "type": "string"}]})
PAID = json.dumps({"type": "record", "name": "Paid", "fields": [{"name": "order", "type": "Order"}]})
NAMES = ("a", "b", "c")


@pytest.fixture(scope="module")
def boxes() -> Iterator[list[RegistryBox]]:
    """Three registries, each with its own authority."""
    with (
        registry(public_url="http://a.example") as first,
        registry(public_url="http://b.example") as second,
        registry(public_url="http://c.example") as third,
    ):
        yield [first, second, third]


@pytest.fixture(autouse=True)
def _empty(boxes: list[RegistryBox]) -> None:
    for box in boxes:
        box.reset()


@pytest.fixture
def a(boxes: list[RegistryBox]) -> RegistryBox:
    """The first registry."""
    return boxes[0]


@pytest.fixture
def b(boxes: list[RegistryBox]) -> RegistryBox:
    """The second one."""
    return boxes[1]


@pytest.fixture
def c(boxes: list[RegistryBox]) -> RegistryBox:
    """The third one."""
    return boxes[2]


def stele(box: RegistryBox) -> SteleRegistry:
    """Return a registry by Stele's own API."""
    return SteleRegistry(HttpApi(box.client), box.url)


def replicate(source: RegistryBox, target: RegistryBox, scope: Scope | None = None) -> ReplicationOutcome:
    """Compare and apply once, and return the outcome."""
    return Replicator(stele(source), stele(target), scope or Scope()).synchronize()


def http(box: RegistryBox) -> httpx.Client:
    """Return an HTTP client of a registry."""
    return httpx.Client(transport=box.transport, base_url=box.url)


def uris(box: RegistryBox) -> dict[str, str]:
    """Return the uids of all active versions by URI."""
    rows = stele(box).read(None, None, texts=False).rows
    return {row.uri: row.uid for row in rows if row.state is ReplicaState.ACTIVE}


def test_a_replica_keeps_everything(a: RegistryBox, b: RegistryBox) -> None:
    """Uids, URIs, authorities, ids, numbers, references, texts and soft-deleted versions are kept.

    A second run does nothing.
    """
    a.client.register("order", Schema(ORDER))
    a.client.register("paid", Schema(PAID, references=(Reference("Order", "order", 1),)))
    a.client.register("old", Schema('"int"'))
    a.client.delete_subject("old")
    assert replicate(a, b).registered == 3
    one, other = (stele(box).read(None, None, texts=True).rows for box in (a, b))
    assert one == other
    assert {row.authority for row in other} == {"http://a.example"}
    assert b.client.subjects() == ["order", "paid"]
    assert b.client.subjects(deleted=True) == ["old", "order", "paid"]
    assert replicate(a, b) == ReplicationOutcome(same=3, position=replicate(a, b).position)


def test_import_makes_authority_and_id_explicit(a: RegistryBox, b: RegistryBox) -> None:
    """CNCF 14: an empty authority becomes the source's base URI, an id the absolute URI; a second run does nothing."""
    with http(a) as client:
        client.put("/schemagroups/g", json={"format": "avro"})
        client.post("/schemagroups/g/schemas/s", content=b'"string"', headers={"content-type": "application/json;x=1"})
    replicate(a, b)
    uri = "http://a.example/schemagroups/g/schemas/s/versions/1"
    with http(b) as client:
        answer = client.get("/schemagroups/g/schemas/s")
        assert answer.headers["schema-authority"] == "http://a.example"
        assert answer.headers["schema-version-id"] == answer.headers["schema-version-uri"] == uri
        assert answer.headers["content-type"] == "application/json;x=1"
        assert client.get(f"/schema?uri={quote(uri, safe='')}").content == b'"string"'
    assert replicate(a, b).registered == 0


@pytest.mark.parametrize(
    ("authority", "version_id", "uri"),
    [
        (
            "http://schemas.example.com/",
            "/mygroup/schemas/my/versions/2",
            "http://schemas.example.com/mygroup/schemas/my/versions/2",
        ),
        ("http://schemas.example.org/", "http://schemas.example.org/41751", "http://schemas.example.org/41751"),
        ("urn:example:schemas", "a1b2c3d4", "urn:example:schemas:a1b2c3d4"),
        ("", "342", "http://a.example/342"),
    ],
)
def test_uris_of_the_specification(a: RegistryBox, b: RegistryBox, authority: str, version_id: str, uri: str) -> None:
    """Each URI in the table of section 2.2.2 finds its schema in the replica."""
    headers = {"schema-version-id": version_id, "schema-format": "avro"}
    headers |= {"schema-authority": authority} if authority else {}
    with http(a) as client:
        client.put("/schemagroups/g", json={})
        assert client.post("/schemagroups/g/schemas/s", content=b'"string"', headers=headers).is_success
    replicate(a, b)
    with http(b) as client:
        answer = client.get(f"/schema?uri={quote(uri, safe='')}")
        assert (answer.status_code, answer.headers["schema-version-uri"]) == (200, uri)
        assert answer.headers["schema-authority"].rstrip("/") == (authority or "http://a.example").rstrip("/")


def test_pull_reaches_the_same_uris_under_other_names(a: RegistryBox, b: RegistryBox) -> None:
    """CNCF 15: the set of version URIs is the same although groups and schemas have other names."""
    a.register_all({"orders": ORDER, "payments": '"long"'})
    scope = Scope((":*:",), Renaming("from-${subject}", "west.${namespace}"))
    replicate(a, b, scope)
    assert uris(b) == uris(a)
    assert b.client.subjects(subject_prefix=":.west:") == [":.west:from-orders", ":.west:from-payments"]
    a.client.delete_subject("orders")
    assert replicate(a, b, scope).removed == 1
    assert uris(b) == uris(a)


def test_scope_takes_what_it_refers_to_along(a: RegistryBox, b: RegistryBox) -> None:
    """A pattern selects subjects; the schemas they refer to are replicated with them."""
    a.client.register("order", Schema(ORDER))
    a.client.register("paid", Schema(PAID, references=(Reference("Order", "order", 1),)))
    a.client.register("left", Schema('"int"'))
    replicate(a, b, Scope(("pa*",)))
    assert b.client.subjects() == ["order", "paid"]


def test_deletions_stay_deleted(a: RegistryBox, b: RegistryBox, c: RegistryBox) -> None:
    """A permanently deleted version does not return from another replica that still has it."""
    a.register_all({"x": '"int"', "y": '"int"'})
    replicate(a, b)
    replicate(b, c)
    a.client.delete_subject("x")
    a.client.delete_subject("x", permanent=True)
    replicate(a, b)
    assert replicate(c, b).registered == 0
    assert replicate(c, a).registered == 0
    assert b.client.subjects(deleted=True) == ["y"]
    assert replicate(b, c).removed == 1
    assert uris(a) == uris(b) == uris(c)


@pytest.mark.parametrize("permanent", [True, False])
def test_recreation_between_two_looks(a: RegistryBox, b: RegistryBox, c: RegistryBox, permanent: bool) -> None:
    """A recreated subject counts as a new one, even with the same schema, and also at the replica of a relay."""
    a.register_all({"x": '"int"'})
    replicate(a, b)
    replicate(b, c)
    before = uris(a)
    for text in ('"int"', '"long"'):
        a.client.delete_subject("x")
        if permanent:
            a.client.delete_subject("x", permanent=True)
        a.client.register("x", Schema(text))
    assert set(uris(a).values()).isdisjoint(before.values())
    replicate(a, b)
    replicate(c, b)
    assert replicate(b, c).conflicts == ()
    assert uris(a) == uris(b) == uris(c)
    assert c.client.version("x").text == '"long"'


class _LateTarget(SteleRegistry):
    """A target that another replication writes to, between the comparison and the first import."""

    def __init__(self, box: RegistryBox, late: ReplicaImportRequest) -> None:
        super().__init__(HttpApi(box.client), box.url)
        self._late: ReplicaImportRequest | None = late

    def apply(self, plan: ReplicationPlan) -> ImportAnswer:
        if self._late is not None:
            late, self._late = self._late, None
            self._api.import_versions(late)
        return super().apply(plan)


def test_another_replication_brings_what_is_deleted_meanwhile(a: RegistryBox, b: RegistryBox) -> None:
    """A deleted version that another replication imports late is replaced at once by the recreated one."""
    a.client.register("s", Schema('"string"'))
    old = stele(a).read(None, None, texts=True).rows
    a.client.delete_subject("s")
    a.client.delete_subject("s", permanent=True)
    a.client.register("s", Schema('"int"'))
    target = _LateTarget(b, ReplicaImportRequest([], old, [], []))
    outcome = Replicator(stele(a), target).synchronize()
    assert uris(b) == uris(a)
    assert (outcome.registered, outcome.removed, outcome.conflicts) == (1, 1, ())


def test_an_ended_incarnation_stays_readable_by_id(a: RegistryBox, b: RegistryBox) -> None:
    """A schema deleted through the CNCF API is archived at the replica, too, and readable by id."""
    with http(a) as client, http(b) as replica:
        client.put("/schemagroups/g", json={"format": "avro"})
        uid = client.post("/schemagroups/g/schemas/s", content=b'"string"').headers["schema-id"]
        replicate(a, b)
        client.delete("/schemagroups/g/schemas/s")
        assert replicate(a, b).removed == 1
        assert replica.get("/schemagroups/g/schemas").json() == []
        assert replica.get(f"/$schemaGroups/$schemas/{uid}").content == b'"string"'


def test_a_source_that_lost_its_data_takes_nothing_along(a: RegistryBox, b: RegistryBox) -> None:
    """An empty source does not remove 100 replicas; once it has a version again, the removals are applied."""
    a.register_all([(f"s{number}", '"int"') for number in range(100)])
    replicate(a, b)
    a.reset()
    with pytest.raises(SourceEmptied, match="100 replicas"):
        replicate(a, b)
    assert len(b.client.subjects()) == 100
    a.register_all({"new": '"int"'})
    outcome = replicate(a, b)
    assert (outcome.registered, outcome.removed) == (1, 100)


def test_conflicts_are_told_and_nothing_is_merged(a: RegistryBox, b: RegistryBox) -> None:
    """A subject of the same name under another authority is a conflict and stays unchanged, on both sides."""
    a.register_all({"orders": '"int"', "fine": '"int"'})
    b.register_all({"orders": '"string"'})
    outcome = replicate(a, b)
    assert [(row.subject, row.code) for row in outcome.conflicts] == [("orders", ConflictCode.AUTHORITY_DIFFERS)]
    assert outcome.registered == 1
    assert b.client.version("orders").text == '"string"'
    assert replicate(b, a).conflicts[0].code is ConflictCode.AUTHORITY_DIFFERS
    assert a.client.version("orders").text == '"int"'


def test_a_replica_is_closed_to_others(a: RegistryBox, b: RegistryBox) -> None:
    """Other clients cannot add versions to a replica.

    A version deleted there is a conflict and is not registered again.
    """
    a.register_all({"x": '"int"'})
    replicate(a, b)
    with http(b) as client:
        assert client.post("/subjects/x/versions", json={"schema": '"long"'}).status_code == 422
    b.client.delete_subject("x")
    assert [row.code for row in replicate(a, b).conflicts] == [ConflictCode.DELETED_AT_TARGET]
    assert b.client.subjects() == []


def test_schema_ids_are_kept_or_mapped(a: RegistryBox, b: RegistryBox) -> None:
    """A free id is kept; a taken one is replaced by another, and counted."""
    b.register_all({"own": '"string"'})
    a.register_all({"x": '"int"', "y": '"long"'})
    outcome = replicate(a, b)
    assert (outcome.registered, outcome.mapped) == (2, 1)
    assert b.client.version("y").id == a.client.version("y").id == 2
    assert (a.client.version("x").id, b.client.version("x").id) == (1, 3)
    assert replicate(a, b).same == 2


def test_ring_and_star(a: RegistryBox, b: RegistryBox, c: RegistryBox) -> None:
    """Three registries that replicate in a ring, each with its own subject, end with the same URIs."""
    for box, name in zip((a, b, c), NAMES, strict=True):
        box.register_all({f"of-{name}": '"int"'})
    for _ in range(2):
        for source, target in ((a, b), (b, c), (c, a)):
            replicate(source, target)
    assert uris(a) == uris(b) == uris(c)
    assert len(uris(a)) == 3
    assert all(replicate(*pair).registered == 0 for pair in ((a, b), (b, c), (c, a), (a, c)))


# --- other makes ------------------------------------------------------------------------------------------------------


def confluent_source(box: RegistryBox) -> ConfluentSource:
    """Return a registry by the Confluent API."""
    return ConfluentSource(box.client, ForeignApi(http(box), box.url), box.url, "http://confluent.example")


def test_a_confluent_source_is_followed_by_looking(a: RegistryBox, b: RegistryBox) -> None:
    """Each check replicates registrations, soft and permanent deletions, and recreated versions."""
    a.client.register("order", Schema(ORDER))
    a.client.register("paid", Schema(PAID, references=(Reference("Order", "order", 1),)))
    replicator = Replicator(confluent_source(a), stele(b))
    assert replicator.synchronize().registered == 2
    assert b.client.version("paid").references == a.client.version("paid").references
    row = stele(b).read(None, None, texts=False).rows[0]
    assert (row.uri, row.authority) == (
        "http://confluent.example/subjects/order/versions/1",
        "http://confluent.example",
    )
    changes = replicator.source.wait_for_changes("", 0)
    assert changes.subjects is None
    assert replicator.source.wait_for_changes(changes.position, 0).subjects == frozenset()
    a.client.delete_subject("paid")
    assert replicator.source.wait_for_changes(changes.position, 0).subjects == {("", "paid")}
    assert replicator.synchronize().removed == 1
    assert b.client.subjects() == ["order"]
    a.client.delete_subject("paid", permanent=True)
    assert replicator.synchronize().removed == 1
    a.client.register("paid", Schema(PAID, references=(Reference("Order", "order", 1),)))
    assert replicator.synchronize().registered == 1
    assert (b.client.version("paid").id, replicator.synchronize().same) == (a.client.version("paid").id, 2)


def test_a_version_that_comes_back_as_it_was_is_a_new_life(a: RegistryBox, b: RegistryBox) -> None:
    """A version that returns with the same text, number and id after its deletion is replicated again, once."""
    replicator = Replicator(confluent_source(a), stele(b))
    for _ in range(3):
        with http(a) as client:
            client.put("/mode/x?force=true", json={"mode": "IMPORT"})
            client.post("/subjects/x/versions", json={"schema": '"int"', "version": 1, "id": 7})
        assert replicator.synchronize().registered == 1
        assert (b.client.version("x").id, replicator.synchronize().same) == (7, 1)
        a.client.delete_subject("x")
        a.client.delete_subject("x", permanent=True)
        assert replicator.synchronize().removed == 1


def test_a_confluent_target_is_written_in_import_mode(a: RegistryBox, b: RegistryBox) -> None:
    """Ids and numbers are kept; replicated versions are replaced like in the source, other versions stay unchanged."""
    a.client.register("clash", Schema('"boolean"'))
    a.client.register("order", Schema(ORDER))
    a.client.register("paid", Schema(PAID, references=(Reference("Order", "order", 1),)))
    b.register_all({"own": '"bytes"'})
    target = ConfluentTarget(b.client, b.url, "http://b.example", ProcessMemory())
    replicator = Replicator(stele(a), target)
    outcome = replicator.synchronize()
    assert outcome.registered == 2
    assert [row.subject for row in outcome.conflicts] == ["clash"]  # its id is that of `own`; that API maps no ids
    assert b.client.version("paid") == a.client.version("paid")
    a.client.delete_subject("paid")
    a.client.delete_subject("paid", permanent=True)
    a.client.register("paid", Schema('"double"'))
    outcome = replicator.synchronize()
    assert b.client.version("paid").text == '"double"'
    assert b.client.version("own").text == '"bytes"'
    a.client.register("own", Schema('"float"'))
    assert ConflictCode.AUTHORITY_DIFFERS in {row.code for row in replicator.synchronize().conflicts}
    assert b.client.version("own").text == '"bytes"'


def test_a_cncf_source_is_walked(a: RegistryBox, b: RegistryBox) -> None:
    """Groups, documents, content types, URIs and deletions are replicated through the CNCF API alone."""
    with http(a) as client:
        client.put("/schemagroups/g", json={"format": "avro"})
        for text in (b'"string"', b'{"type":"enum","name":"E","symbols":["A"]}'):
            client.post("/schemagroups/g/schemas/s", content=text, headers={"content-type": "application/json"})
        client.put("/schemagroups/raw", json={})
        headers = {"schema-format": "homemade", "schema-description": "bytes"}
        client.post("/schemagroups/raw/schemas/r", content=b"\xff\x00", headers=headers)
        replicator = Replicator(CncfSource(http(a), a.url, "http://a.example"), stele(b))
        assert replicator.synchronize().registered == 3
        assert uris(b) == uris(a)
        with http(b) as replica:
            answer = replica.get("/schemagroups/raw/schemas/r")
            assert (answer.content, answer.headers["schema-description"]) == (b"\xff\x00", "bytes")
        assert replicator.synchronize().same == 3
        client.delete("/schemagroups/g/schemas/s")
        assert replicator.synchronize().removed == 2
        assert uris(b) == uris(a)


class FailingGateway(httpx.BaseTransport):
    """Passes some requests on to a registry, and answers 404 to all others, like a gateway whose backend is down."""

    def __init__(self, box: RegistryBox) -> None:
        self._inner = box.transport
        self.left = 1_000

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Answer a request."""
        self.left -= 1
        if self.left < 0:
            return httpx.Response(404, text="default backend - 404", request=request)
        return self._inner.handle_request(request)


@pytest.mark.parametrize("kind", ["stele", "confluent", "cncf", "xregistry"])
def test_a_gateway_without_its_registry_takes_nothing_away(a: RegistryBox, b: RegistryBox, kind: str) -> None:
    """A source whose gateway answers 404, from any request on, counts as unavailable, and nothing is removed."""
    a.register_all({"x": '"int"', "y": '"long"'})
    gateway = FailingGateway(a)
    client = SchemaRegistryClient(a.url, transport=gateway, retry=Retry(rounds=1), cache_size=0)
    plain = httpx.Client(transport=gateway)
    sources = {
        "stele": lambda: SteleRegistry(HttpApi(client), a.url),
        "confluent": lambda: ConfluentSource(client, ForeignApi(plain, a.url), a.url, "http://a.example"),
        "cncf": lambda: CncfSource(plain, a.url, "http://a.example"),
        "xregistry": lambda: XRegistrySource(plain, f"{a.url}/xregistry", "http://a.example"),
    }
    replicator = Replicator(sources[kind](), stele(b))
    assert replicator.synchronize().registered == 2
    before = uris(b)
    for passed in range(100):
        gateway.left = passed
        try:
            outcome = replicator.synchronize()
        except SteleError:
            assert uris(b) == before, passed
            continue
        assert (outcome.same, outcome.removed) == (2, 0), passed
        break
    assert passed > 0


class UntilRegistered:
    """Ends the replication after it has registered something, or after some time."""

    def __init__(self) -> None:
        self.conflicts: list[int] = []
        self._until = time.monotonic() + 120

    def claim(self) -> bool:
        """Return True: there is no other node."""
        return True

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)

    def note_part(self, outcome: ReplicationOutcome) -> None:
        """Do nothing."""

    def note_pass(self, outcome: ReplicationOutcome, subjects: frozenset[SubjectName] | None) -> None:
        """Record the conflicts."""
        self.conflicts.append(len(outcome.conflicts))
        if outcome.registered:
            raise KeyboardInterrupt

    def note_waiting(self, position: str) -> None:
        """Stop after a time limit."""
        assert time.monotonic() < self._until, self.conflicts


def test_a_conflict_that_ends_at_the_target_ends_soon(
    a: RegistryBox, b: RegistryBox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A conflict that ends at the target, without an event of the source, is found by repeated comparisons."""
    monkeypatch.setattr(replicator, "_RETRY_SECONDS", 0.2)
    a.client.register("orders", Schema(ORDER))
    b.client.register("copy-of-orders", Schema('"string"'))
    observer = UntilRegistered()
    following = Replicator(stele(a), stele(b), Scope(renaming=Renaming("copy-of-${subject}")))
    wait_for_changes = SteleRegistry.wait_for_changes
    waits: list[float] = []
    in_the_way = ["copy-of-orders"]

    def wait(source: SteleRegistry, position: str, seconds: float) -> Changes:
        waits.append(seconds)
        if len(observer.conflicts) == 3 and in_the_way:
            subject = in_the_way.pop()
            b.client.delete_subject(subject)
            b.client.delete_subject(subject, permanent=True)
        return wait_for_changes(source, position, seconds)

    monkeypatch.setattr(SteleRegistry, "wait_for_changes", wait)
    with pytest.raises(KeyboardInterrupt):
        following.follow(observer)
    assert (observer.conflicts[:3], observer.conflicts[-1]) == ([1, 1, 1], 0)
    assert waits[0] <= 0.2 < max(waits) <= 0.8
    assert json.loads(b.client.version("copy-of-orders").text) == json.loads(ORDER)
