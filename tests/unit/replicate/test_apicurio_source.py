"""Apicurio as a source, against a test double that answers like release 3; `tests/interop` runs the real server."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

import httpx
import pytest

from stele.errors import Refused, RegistryUnreachable
from stele.protocol.replication import ReplicaState
from stele.replicate import apicurio_source
from stele.replicate.apicurio_source import ApicurioSource
from stele.replicate.replicator import Replicator
from stele.replicate.stele_registry import HttpApi, SteleRegistry
from stele.testing import registry
from stele.testing.registry_box import RegistryBox

AUTHORITY = "http://apicurio.example"
ROOT = "/apis/registry/v3"


class ApicurioDouble:
    """Versions, and the responses of API 3 about them.

    Attributes:
        versions: Rows as in lists.
        asked: Paths of the requests since it was last cleared.
    """

    def __init__(self) -> None:
        self.versions: list[dict[str, Any]] = []
        self.asked: list[str] = []
        self._contents: dict[int, tuple[bytes, list[dict[str, Any]]]] = {}
        self._highest = 0
        self._clock = 0

    def add(self, group: str, artifact: str, version: str, text: str, **more: Any) -> dict[str, Any]:
        """Add a version; references and other members may be given."""
        references = more.pop("references", [])
        content = int(hashlib.sha256(f"{text}{references}".encode()).hexdigest()[:6], 16) + 1
        self._contents[content] = (text.encode(), references)
        self._highest += 1
        row = {
            "globalId": self._highest,
            "contentId": content,
            "version": version,
            "artifactId": artifact,
            "artifactType": "AVRO",
            "state": "ENABLED",
            "createdOn": self._tick(),
            **({} if group == "default" else {"groupId": group}),
            **more,
        }
        row["modifiedOn"] = row["createdOn"]
        self.versions.append(row)
        return row

    def set_state(self, row: dict[str, Any], state: str) -> None:
        """Change the state of a version."""
        row.update(state=state, modifiedOn=self._tick())

    def remove(self, artifact: str, version: str = "") -> None:
        """Delete an artifact, or one version of it."""
        self.versions = [
            row for row in self.versions if row["artifactId"] != artifact or version not in ("", row["version"])
        ]

    def _tick(self) -> str:
        self._clock += 1
        return f"2026-11-24T15:{self._clock // 60:02}:{self._clock % 60:02}Z"

    def answer(self, request: httpx.Request) -> httpx.Response:
        """Answer a request."""
        path = request.url.raw_path.decode().partition("?")[0].removeprefix(ROOT)
        self.asked.append(path)
        match [unquote(part) for part in path.split("/")[1:]]:
            case ["search", "versions"]:
                return self._list(self.versions, request.url.params)
            case ["groups", group, "artifacts", artifact, "versions"]:
                rows = self._find(group, artifact)
                return self._list(rows, request.url.params) if rows else httpx.Response(404)
            case ["groups", group, "artifacts", artifact, "versions", version]:
                rows = [row for row in self._find(group, artifact) if version in (row["version"], "branch=latest")]
                return httpx.Response(200, json=rows[-1]) if rows else httpx.Response(404)
            case ["ids", "contentIds", number]:
                return httpx.Response(200, content=self._contents[int(number)][0])
            case ["ids", "contentIds", number, "references"]:
                return httpx.Response(200, json=self._contents[int(number)][1])
        return httpx.Response(404)

    def _find(self, group: str, artifact: str) -> list[dict[str, Any]]:
        return [row for row in self.versions if (row.get("groupId", "default"), row["artifactId"]) == (group, artifact)]

    def _list(self, rows: list[dict[str, Any]], query: httpx.QueryParams) -> httpx.Response:
        group = query.get("groupId")
        versions = [row for row in rows if group in (None, row.get("groupId", "default"))]
        versions.sort(key=lambda row: row[query["orderby"]], reverse=query["order"] == "desc")
        start, limit = int(query.get("offset", 0)), int(query["limit"])
        return httpx.Response(200, json={"count": len(versions), "versions": versions[start : start + limit]})


@pytest.fixture(scope="module")
def box() -> Iterator[RegistryBox]:
    """The target."""
    with registry(public_url="http://b.example") as target:
        yield target


@pytest.fixture
def b(box: RegistryBox) -> RegistryBox:
    """The target, emptied."""
    box.reset()
    return box


def open_source(double: ApicurioDouble) -> ApicurioSource:
    """Return the double as a source, opened by the address of its server."""
    client = httpx.Client(transport=httpx.MockTransport(double.answer))
    return ApicurioSource(client, "http://apicurio.test", AUTHORITY)


def test_names_states_and_references_arrive(b: RegistryBox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups, named versions, references to names and to the newest version, states and types are replicated."""
    monkeypatch.setattr(apicurio_source, "_PAGE", 2)
    double = ApicurioDouble()
    double.add(
        "team", "base/x", "1.0", '{"type":"enum","name":"E","symbols":["A"]}', labels={"k": "v"}, description="d"
    )
    use = {"groupId": "team", "artifactId": "base/x", "version": "1.0", "name": "E"}
    text = '{"type":"record","name":"R","fields":[{"name":"e","type":"E"}]}'
    double.add("default", "user", "1", text, references=[use])
    double.add("default", "late", "1", text, references=[{**use, "version": None}])
    double.add("default", "api", "7", "openapi: 3.0.2", artifactType="OPENAPI")
    double.add("default", "draft", "1", '"int"', state="DRAFT")
    double.add("default", "off", "1", '"int"', state="DISABLED")
    replicator = Replicator(open_source(double), SteleRegistry(HttpApi(b.client), b.url))
    assert replicator.synchronize()[:3] == (5, 1, 0)  # one of them is soft-deleted
    there = {row.subject: row for row in replicator.target.read_target_versions(None, ())}
    assert set(there) == {"base/x", "user", "late", "api", "off"}
    assert (there["base/x"].version, there["base/x"].labels) == (1, {"k": "v"})
    assert there["base/x"].uri == f"{AUTHORITY}/groups/team/artifacts/base%2Fx/versions/1.0"
    assert there["user"].references == there["late"].references
    assert there["user"].references[0].version == there["base/x"].version
    assert (there["api"].version, there["api"].custom_format) == (7, "OPENAPI")
    assert there["off"].state is ReplicaState.DELETED
    assert there["user"].schema_id == double.versions[1]["contentId"]
    double.asked.clear()
    assert replicator.synchronize()[:3] == (0, 0, 5)
    assert {path.split("/")[1] for path in double.asked} == {"search", "groups"}  # nothing that never changes


def test_a_look_is_two_requests_and_sees_all_changes() -> None:
    """A check takes two requests and detects every change, even a version that was replaced by an equal one."""
    double = ApicurioDouble()
    rows = [double.add("default", f"a{number}", "1", f'"{number}"') for number in range(30)]
    source = open_source(double)
    position = source.wait_for_changes("", 0).position
    double.asked.clear()
    assert source.wait_for_changes(position, 0).subjects == frozenset()
    assert double.asked == ["/search/versions"] * 2

    def make_again() -> None:
        double.remove("a8")
        double.add("default", "a8", "1", '"8"')

    for change in (
        lambda: double.add("default", "a0", "2", '"new"'),
        lambda: double.remove("a7"),
        lambda: double.set_state(rows[3], "DISABLED"),
        make_again,
    ):
        change()
        changes = source.wait_for_changes(position, 0)
        assert changes.subjects is None
        position = changes.position


def test_deletions_and_new_lives(b: RegistryBox) -> None:
    """Deleted versions are removed, recreated ones are new versions, and a name keeps its number."""
    double = ApicurioDouble()
    double.add("default", "a", "one", '"int"')
    double.add("default", "a", "two", '"long"')
    double.add("default", "z", "1", '"int"')
    replicator = Replicator(open_source(double), SteleRegistry(HttpApi(b.client), b.url))
    assert replicator.synchronize().registered == 3
    before = {(row.subject, row.version): row.uid for row in replicator.target.read_target_versions(None, ())}
    double.remove("a", "one")
    double.remove("z")
    double.add("default", "a", "three", '"bytes"')
    double.add("default", "z", "1", '"int"')
    assert replicator.synchronize()[:4] == (2, 2, 1, 0)
    after = {(row.subject, row.version): row.uid for row in replicator.target.read_target_versions(None, ())}
    assert set(after) == {("a", 2), ("a", 4), ("z", 1)}
    assert (after["a", 2], after["z", 1] != before["z", 1]) == (before["a", 2], True)


def test_a_shifted_page_takes_nothing_along(b: RegistryBox) -> None:
    """A version that is missing in a list is requested by name before it counts as deleted."""
    double = ApicurioDouble()
    double.add("default", "a", "1", '"int"')
    replicator = Replicator(open_source(double), SteleRegistry(HttpApi(b.client), b.url))
    replicator.synchronize()
    row = replicator.target.read_target_versions(None, ())[0]
    assert replicator.source.find_fates([row]) == {row.uid: ReplicaState.ACTIVE}
    double.remove("a")
    double.add("default", "a", "1", '"int"')
    assert replicator.source.find_fates([row]) == {}


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (httpx.Response(200, json=[]), RegistryUnreachable),
        (httpx.Response(503), RegistryUnreachable),
        (httpx.Response(401), Refused),
    ],
)
def test_what_is_no_apicurio_is_told(answer: httpx.Response, error: type[Exception]) -> None:
    """Unexpected responses raise errors of Stele."""
    source = ApicurioSource(httpx.Client(transport=httpx.MockTransport(lambda _: answer)), "http://x/apis/registry/v3")
    with pytest.raises(error):
        source.read(None, None, texts=True)
