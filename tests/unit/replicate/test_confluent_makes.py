"""Confluent-compatible registries without some features: pages, entity tags, lists, deleted versions, IMPORT mode."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator

import httpx
import pytest

from stele.client import Retry, Schema, SchemaRegistryClient
from stele.errors import RegistryUnreachable
from stele.protocol.replication import ConflictCode, ImportAnswer, SubjectName
from stele.replicate import confluent_changes, replicator
from stele.replicate.confluent_source import ConfluentSource
from stele.replicate.confluent_target import ConfluentTarget
from stele.replicate.dump_target import ProcessMemory
from stele.replicate.foreign_api import ForeignApi
from stele.replicate.plan import ReplicationPlan
from stele.replicate.replicator import ReplicationOutcome, Replicator, SourceEmptied
from stele.replicate.stele_registry import HttpApi, SteleRegistry
from stele.testing import registry
from stele.testing.registry_box import RegistryBox

AUTHORITY = "http://confluent.example"
Change = Callable[[httpx.Request], httpx.Response | None]


@pytest.fixture(scope="module")
def boxes() -> Iterator[list[RegistryBox]]:
    """A registry that answers like Karapace, and a registry of Stele."""
    with (
        registry(public_url="http://a.example", confluent_profile="karapace") as first,
        registry(public_url="http://b.example") as second,
    ):
        yield [first, second]


class OtherMake(httpx.BaseTransport):
    """A registry with fewer features than Stele: without some routes, parameters and entity tags.

    Attributes:
        asked: Requests since it was last cleared, each with the bytes and status of the response.
    """

    def __init__(
        self,
        box: RegistryBox,
        *,
        missing: tuple[tuple[str, str], ...],
        ignored: tuple[str, ...],
        has_tags: bool = False,
    ) -> None:
        self._inner = box.transport
        self._missing = missing
        self._ignored = ignored
        self._has_tags = has_tags
        self.asked: list[tuple[str, int, int]] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Answer a request."""
        if any(request.method == method and request.url.path.startswith(path) for method, path in self._missing):
            return httpx.Response(405 if request.method == "PUT" else 404, json="Not Found", request=request)
        query = [pair for pair in request.url.params.multi_items() if pair[0] not in self._ignored]
        headers = {name: value for name, value in request.headers.items() if name != "accept-encoding"}
        url = request.url.copy_with(params=query)
        answer = self._inner.handle_request(httpx.Request(request.method, url, headers=headers, content=request.read()))
        body = answer.read()
        self.asked.append((request.url.path, len(body), answer.status_code))
        response_headers = {"content-type": answer.headers.get("content-type", "")}
        if self._has_tags:
            response_headers["etag"] = answer.headers.get("etag", "")
        return httpx.Response(answer.status_code, headers=response_headers, content=body, request=request)


def karapace(box: RegistryBox, *more: str) -> OtherMake:
    """Return a registry like Karapace: no pages, no contexts, no mode but READWRITE.

    `more` names further parameters that it ignores.
    """
    ours = (("POST", "/subjects:import"), ("POST", "/config:batchGet"))
    missing = (("PUT", "/mode"), ("DELETE", "/mode"), ("GET", "/contexts"), *ours)
    return OtherMake(box, missing=missing, ignored=("offset", "limit", "subjectPrefix", "aliases", *more))


def registry_with_pages(box: RegistryBox) -> OtherMake:
    """Return a registry with pages and without entity tags, like Confluent's."""
    return OtherMake(box, missing=(), ignored=())


def registry_without_lists(box: RegistryBox) -> OtherMake:
    """Return a registry without `/schemas`, like Redpanda's and Apicurio's."""
    return OtherMake(box, missing=(("GET", "/schemas"),), ignored=())


def open_source(box: RegistryBox, make: OtherMake) -> ConfluentSource:
    """Return a source of that make."""
    client = SchemaRegistryClient(box.url, transport=make, retry=Retry(rounds=1), cache_size=0)
    api = ForeignApi(httpx.Client(transport=make), box.url)
    return ConfluentSource(client, api, box.url, AUTHORITY)


def stele(box: RegistryBox) -> SteleRegistry:
    """Return a registry of Stele."""
    return SteleRegistry(HttpApi(box.client), box.url)


def test_karapace_is_followed(a: RegistryBox, b: RegistryBox) -> None:
    """Versions, deletions and recreated subjects are replicated from a registry without pages and entity tags."""
    replicator = Replicator(open_source(a, karapace(a)), stele(b))
    a.register_all({"x": '"int"', "y": '"long"'})
    position = replicator.source.wait_for_changes("", 0).position
    assert replicator.synchronize().registered == 2
    assert replicator.source.wait_for_changes(position, 0).subjects == frozenset()
    a.client.delete_subject("y")
    changes = replicator.source.wait_for_changes(position, 0)
    assert changes.subjects == {SubjectName("", "y")}
    assert replicator.synchronize(sorted(changes.subjects)).removed == 1
    assert (b.client.subjects(), b.client.subjects(deleted=True)) == (["x"], ["x", "y"])
    a.client.delete_subject("x")
    for subject in ("x", "y"):
        a.client.delete_subject(subject, permanent=True)
    a.register_all({"x": '"bytes"'})
    outcome = replicator.synchronize()
    assert (outcome.registered, outcome.removed, outcome.conflicts) == (1, 2, ())
    assert b.client.version("x").text == '"bytes"'


def test_a_registry_that_hides_deleted_versions(a: RegistryBox, b: RegistryBox) -> None:
    """If `deleted=true` is ignored, a soft-deleted version looks like a deleted one, and is removed."""
    replicator = Replicator(open_source(a, karapace(a, "deleted")), stele(b))
    a.register_all({"x": '"int"', "y": '"long"'})
    assert replicator.synchronize().registered == 2
    a.client.delete_subject("y")
    assert replicator.synchronize().removed == 1
    assert b.client.subjects(deleted=True) == ["x"]


class Nameless(OtherMake):
    """A registry whose list of schemas has no subjects and numbers, like that of Apicurio 3.3."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Answer a request."""
        answer = super().handle_request(request)
        if request.url.path != "/schemas":
            return answer
        return httpx.Response(200, json=[{"schema": row["schema"]} for row in answer.json()], request=request)


def test_a_list_without_names_is_no_list(a: RegistryBox, b: RegistryBox) -> None:
    """Versions are read one by one if the rows of the list have no names."""
    a.register_all({"x": '"int"', "y": '"long"'})
    replicator = Replicator(open_source(a, Nameless(a, missing=(), ignored=())), stele(b))
    assert replicator.synchronize().registered == 2
    assert b.client.version("y").text == '"long"'


def test_a_target_without_the_mode_refuses_and_says_why(a: RegistryBox, b: RegistryBox) -> None:
    """Without IMPORT mode nothing is written, and each version is a conflict with the reason."""
    b.register_all({"x": '"int"', "y": '"long"'})
    client = SchemaRegistryClient(a.url, transport=karapace(a), retry=Retry(rounds=1), cache_size=0)
    target = ConfluentTarget(client, a.url, AUTHORITY, ProcessMemory())
    outcome = Replicator(stele(b), target).synchronize()
    assert outcome.registered == 0
    assert {(row.subject, row.code) for row in outcome.conflicts} == {
        ("x", ConflictCode.REFUSED),
        ("y", ConflictCode.REFUSED),
    }
    assert "IMPORT" in outcome.conflicts[0].why
    assert a.client.subjects() == []


# --- what a look costs ------------------------------------------------------------------------------------------------


def fill(box: RegistryBox, count: int) -> None:
    """Register so many subjects."""
    for number in range(count):
        box.client.register(f"s-{number}", Schema(f'{{"type":"fixed","name":"Name{number}","size":{number + 1}}}'))


def test_a_tagged_list_does_not_come_again(a: RegistryBox) -> None:
    """A registry with entity tags answers a check without any body."""
    fill(a, 5)
    make = OtherMake(a, missing=(), ignored=(), has_tags=True)
    source = open_source(a, make)
    position = source.wait_for_changes("", 0).position
    make.asked.clear()
    assert source.wait_for_changes(position, 0).subjects == frozenset()
    assert {(size, status) for _, size, status in make.asked} == {(0, 304)}
    a.client.delete_version("s-3", 1)
    assert source.wait_for_changes(position, 0).subjects == {SubjectName("", "s-3")}


def test_one_list_is_enough_where_its_rows_say_what_is_deleted(a: RegistryBox, b: RegistryBox) -> None:
    """If rows show deletion, a check and a comparison request one list only; each change names its subject."""
    fill(b, 5)
    make = OtherMake(b, missing=(), ignored=(), has_tags=True)
    replicator = Replicator(open_source(b, make), stele(a))
    position = replicator.source.wait_for_changes("", 0).position
    assert replicator.synchronize().registered == 5
    pages = ["/schemas"] * 2  # The first page may be short, so a second one is asked for.
    assert [path for path, _, _ in make.asked if path == "/schemas"] == 2 * pages
    for subject, change in (
        ("s-3", lambda: b.client.delete_version("s-3", 1)),
        ("s-3", lambda: b.client.delete_version("s-3", 1, permanent=True)),
        ("a", lambda: b.client.register("a", Schema('"int"'))),
        ("s-0", lambda: b.client.register("s-0", Schema('{"type":"fixed","name":"Name0","aliases":["b"],"size":1}'))),
    ):
        change()
        make.asked.clear()
        changes = replicator.source.wait_for_changes(position, 0)
        assert [path for path, _, _ in make.asked] == pages
        assert changes.subjects == {SubjectName("", subject)}
        position = changes.position
        replicator.synchronize(sorted(changes.subjects))
    expected = ["a", "s-0", "s-1", "s-2", "s-4"]
    assert sorted(a.client.subjects(deleted=True)) == b.client.subjects(deleted=True) == expected


class OneRound:
    """An observer that stops before the first pause."""

    def __init__(self) -> None:
        self.registered: list[int] = []
        self.pauses: list[float] = []
        self.parts: list[int] = []

    def claim(self) -> bool:
        """Return True, so that changes are applied."""
        return True

    def note_part(self, outcome: ReplicationOutcome) -> None:
        """Record the count of a part."""
        self.parts.append(outcome.registered)

    def note_pass(self, outcome: ReplicationOutcome, subjects: frozenset[SubjectName] | None) -> None:
        """Record the count of a comparison."""
        self.registered.append(outcome.registered)

    def note_waiting(self, position: str) -> None:
        """Do nothing."""

    def sleep(self, seconds: float) -> None:
        """Record the pause and stop."""
        self.pauses.append(seconds)
        raise KeyboardInterrupt


def test_a_polled_source_is_compared_once_at_the_start(
    a: RegistryBox, b: RegistryBox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first check is followed by one comparison, and time spent at the target does not lengthen the pause."""
    fill(b, 3)
    observer = OneRound()
    apply = SteleRegistry.apply

    def apply_slowly(target: SteleRegistry, plan: ReplicationPlan) -> ImportAnswer:
        time.sleep(1.2)
        return apply(target, plan)

    monkeypatch.setattr(SteleRegistry, "apply", apply_slowly)
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        Replicator(open_source(b, registry_with_pages(b)), stele(a)).follow(observer)
    rest = time.monotonic() - began - 1.2
    assert observer.registered == [3]
    (pause,) = observer.pauses
    assert 1.0 <= pause <= max(1.0, rest)


def test_a_polled_source_is_compared_once_in_five_minutes(
    a: RegistryBox, b: RegistryBox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The periodic comparison keeps the position of the last check: unchanged lists cause no further comparison."""
    fill(b, 3)
    observer = OneRound()

    def sleep(seconds: float) -> None:
        if observer.pauses:
            raise KeyboardInterrupt
        observer.pauses.append(seconds)
        monkeypatch.setattr(replicator, "RECHECK_SECONDS", 0.0)

    monkeypatch.setattr(observer, "sleep", sleep)
    with pytest.raises(KeyboardInterrupt):
        Replicator(open_source(b, registry_with_pages(b)), stele(a)).follow(observer)
    assert observer.registered == [3, 0]


def test_what_was_applied_counts_though_the_rest_fails(
    a: RegistryBox, b: RegistryBox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The observer gets the counts of each part when it is applied, so that a later failure loses none."""
    fill(b, 3)
    observer = OneRound()
    monkeypatch.setattr(replicator, "_ROWS_AT_ONCE", 2)
    answers = [SteleRegistry.apply]

    def apply_once(target: SteleRegistry, plan: ReplicationPlan) -> ImportAnswer:
        if not answers:
            raise RegistryUnreachable("it went away")
        return answers.pop()(target, plan)

    monkeypatch.setattr(SteleRegistry, "apply", apply_once)
    with pytest.raises(RegistryUnreachable):
        Replicator(open_source(b, registry_with_pages(b)), stele(a)).follow(observer)
    assert (observer.parts, observer.registered) == ([2], [])


def test_a_paged_list_is_looked_at_by_its_end(a: RegistryBox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without tags a check reads a small part of the lists and detects registrations and deletions at once.

    Other changes are detected by later checks.
    """
    fill(a, 40)
    make = registry_with_pages(a)
    source = open_source(a, make)
    position = source.wait_for_changes("", 0).position
    whole = sum(size for path, size, _ in make.asked if path == "/schemas")
    make.asked.clear()
    assert source.wait_for_changes(position, 0).subjects == frozenset()
    assert sum(size for path, size, _ in make.asked if path == "/schemas") < whole / 10
    for subject, change in (
        ("s-0", lambda: a.client.register("s-0", Schema('{"type":"fixed","name":"Name0","aliases":["b"],"size":1}'))),
        ("s-0", lambda: a.client.delete_version("s-0", 1)),
        ("s-0", lambda: a.client.delete_version("s-0", 1, permanent=True)),
        ("new", lambda: a.client.register("new", Schema('"int"'))),
    ):
        change()
        changes = source.wait_for_changes(position, 0)
        assert changes.subjects == {SubjectName("", subject)}
        position = changes.position
    a.client.register("t", Schema('"int"'))
    a.client.register("t", Schema('"long"'))
    position = source.wait_for_changes(position, 0).position
    a.client.delete_version("s-5", 1)
    a.client.delete_version("s-5", 1, permanent=True)
    a.client.register("s-5", Schema('"bytes"'))
    monkeypatch.setattr(confluent_changes, "WHOLE_SECONDS", 0.0)
    assert source.wait_for_changes(position, 0).subjects == {SubjectName("", "s-5")}
    assert source.wait_for_changes("elsewhere", 0).subjects is None


class ShortPages(OtherMake):
    """A registry that returns at most two schemas at a time, by its setting `schema.search.max.limit`."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Answer a request."""
        if "limit" in request.url.params:
            limit = min(int(request.url.params["limit"]), 2)
            request = httpx.Request(request.method, request.url.copy_set_param("limit", limit), headers=request.headers)
        return super().handle_request(request)


def test_pages_shorter_than_asked_for(a: RegistryBox, b: RegistryBox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is replicated and every change is detected, also after the first page."""
    monkeypatch.setattr(confluent_changes, "WHOLE_SECONDS", 0.0)
    fill(a, 5)
    replicator = Replicator(open_source(a, ShortPages(a, missing=(), ignored=(), has_tags=True)), stele(b))
    position = replicator.source.wait_for_changes("", 0).position
    assert replicator.synchronize().registered == 5
    for subject in ("s-4", "s-0", "s-2"):
        a.client.delete_version(subject, 1)
        changes = replicator.source.wait_for_changes(position, 0)
        assert changes.subjects == {SubjectName("", subject)}
        position = changes.position


@pytest.mark.parametrize("make", [karapace, registry_with_pages, registry_without_lists])
def test_a_source_that_lists_nothing_is_compared_as_a_whole(
    a: RegistryBox, b: RegistryBox, make: Callable[[RegistryBox], OtherMake]
) -> None:
    """A registry of any make that lost its data does not remove replicas."""
    for number in range(40):
        for count in (1, 2, 3):
            fields = [{"name": f"f{field}", "type": "int", "default": number} for field in range(count)]
            a.client.register(f"s-{number}", Schema(json.dumps({"type": "record", "name": "R", "fields": fields})))
    replicator = Replicator(open_source(a, make(a)), stele(b))
    position = replicator.source.wait_for_changes("", 0).position
    assert replicator.synchronize().registered == 120
    a.reset()
    assert replicator.source.wait_for_changes(position, 0).subjects is None
    with pytest.raises(SourceEmptied):
        replicator.synchronize()
    assert len(b.client.subjects()) == 40


def test_without_lists_changed_subjects_are_named(a: RegistryBox, b: RegistryBox) -> None:
    """From a registry without `/schemas` a check requests numbers only, and only changed subjects are read."""
    fill(a, 5)
    make = registry_without_lists(a)
    replicator = Replicator(open_source(a, make), stele(b))
    position = replicator.source.wait_for_changes("", 0).position
    assert replicator.synchronize().registered == 5
    make.asked.clear()
    assert replicator.source.wait_for_changes(position, 0).subjects == frozenset()
    assert all(path == "/subjects" or path.endswith("/versions") for path, _, _ in make.asked)
    a.client.delete_subject("s-2")
    a.register_all({"new": '"int"'})
    changes = replicator.source.wait_for_changes(position, 0)
    assert changes.subjects == {SubjectName("", "s-2"), SubjectName("", "new")}
    outcome = replicator.synchronize(sorted(changes.subjects))
    assert (outcome.registered, outcome.removed) == (1, 1)
    assert replicator.source.wait_for_changes("elsewhere", 0).subjects is None
