"""Imports of replicas from other registries, and documents that define replications."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from stele.testing import registry
from stele.testing.registry_box import RegistryBox

UID = "0123456789abcdef0123456789abcdef"
REPLICA = {
    "uid": UID,
    "subject": "s",
    "version": 1,
    "schemaId": 5,
    "uri": "http://x.example/1",
    "authority": "http://x.example",
    "format": "avro",
    "text": '"string"',
}


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RegistryBox]:
    """A registry that seals its secrets."""
    key = tmp_path_factory.mktemp("key") / "key"
    key.write_text("00" * 32)
    with registry(public_url="http://here.example", secrets_key=(f"file:{key}",)) as registry_box:
        yield registry_box


@pytest.fixture
def client(box: RegistryBox) -> httpx.Client:
    """A client of an empty registry."""
    box.reset()
    return httpx.Client(transport=box.transport, base_url=box.url)


def take_in(client: httpx.Client, **members: Any) -> dict[str, Any]:
    """Send an import, and return the answer."""
    answer = client.post("/api/versions/import", json=members)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def look_up(client: httpx.Client, *uids: str) -> list[dict[str, Any]]:
    """Return versions by uid."""
    return list(client.post("/api/versions/read", json={"uids": uids}).json()["versions"])


@pytest.mark.parametrize(
    "change",
    [
        {"uid": "xyz"},
        {"uid": UID.upper()},
        {"numbering": "odd"},
        {"version": "one"},
        {"state": "alive"},
    ],
)
def test_bodies_that_are_none(client: httpx.Client, change: dict[str, Any]) -> None:
    """A body of another shape is refused as a whole."""
    assert client.post("/api/versions/import", json={"versions": [{**REPLICA, **change}]}).status_code == 422


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"format": "cobol"}, "refused"),
        ({"text": "{"}, "refused"),
        ({"uri": "not a uri"}, "refused"),
        ({"authority": ""}, "refused"),
        ({"version": 0}, "refused"),
        ({"version": 2**40}, "refused"),
        ({"at": -1}, "refused"),
        ({"references": [{"name": "r", "namespace": "", "subject": "none", "version": 1}]}, "reference_missing"),
    ],
)
def test_versions_that_cannot_be_taken_in(client: httpx.Client, change: dict[str, Any], code: str) -> None:
    """An invalid version is refused with a code; the other versions of the request are imported."""
    other = {**REPLICA, "uid": "f" * 32, "subject": "t", "uri": "http://x.example/2", "schemaId": 6}
    answer = take_in(client, versions=[{**REPLICA, **change}, other])
    assert [(row["uid"], row["code"]) for row in answer["refused"]] == [(UID, code)]
    assert answer["registered"] == 1


def test_twice_is_as_good_as_once(client: httpx.Client) -> None:
    """A version that exists, is soft-deleted, or was removed is not imported again."""
    assert take_in(client, versions=[REPLICA])["registered"] == 1
    again = take_in(client, versions=[REPLICA])
    assert (again["registered"], again["removed"], again["refused"], again["mapped"]) == (0, 0, [], [])
    assert take_in(client, deleted=[UID])["removed"] == 1
    assert take_in(client, deleted=[UID], versions=[REPLICA])["removed"] == 0
    assert look_up(client, UID)[0]["state"] == "deleted"
    assert take_in(client, removed=[[UID, "purged"]])["removed"] == 1
    assert look_up(client, UID) == [{"uid": UID, "state": "purged", "authority": "http://x.example"}]
    assert take_in(client, versions=[REPLICA])["registered"] == 0
    assert client.get("/subjects?deleted=true").json() == []


def test_a_referenced_replica_stays(client: httpx.Client) -> None:
    """A replica to which another schema refers is not removed, and the reason is returned."""
    take_in(client, versions=[{**REPLICA, "text": '{"type":"fixed","name":"F","size":1}'}])
    body = {"schema": '{"type":"array","items":"F"}', "references": [{"name": "F", "subject": "s", "version": 1}]}
    assert client.post("/subjects/own/versions", json=body).status_code == 200
    answer = take_in(client, removed=[[UID, "purged"]])
    assert [row["code"] for row in answer["refused"]] == ["in_use"]
    assert client.get("/subjects/s/versions/1").status_code == 200


def test_long_requests_are_refused(client: httpx.Client) -> None:
    """A request with more than a thousand versions is refused."""
    assert client.post("/api/versions/read", json={"uids": [UID] * 1001}).status_code == 413


def test_pages_end_with_whole_subjects(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page begins after the last subject of the page before."""
    monkeypatch.setattr("stele.service.replication.reading._PAGE_ROWS", 2)
    rows = [
        {**REPLICA, "uid": f"{n:032x}", "subject": f"s{n // 3}", "version": n % 3 + 1, "uri": f"http://x.example/{n}"}
        for n in range(9)
    ]
    assert take_in(client, versions=rows)["registered"] == 9
    pages, after = [], None
    while not pages or after is not None:
        page = client.post("/api/versions/read", json={"after": after} if after else {}).json()
        pages.append([row["uid"] for row in page["versions"]])
        after = page["next"]
    assert [len(page) for page in pages] == [3, 3, 3]
    assert sorted(uid for page in pages for uid in page) == [row["uid"] for row in rows]


def test_secrets_are_sealed_and_hidden(box: RegistryBox, client: httpx.Client) -> None:
    """The password of the other registry is in no answer and not in the log."""
    other = {"url": "http://127.0.0.1:9", "user": "u", "password": "hunter2hunter2", "token": ""}
    body = {"name": "r", "direction": "pull", "registry": other, "state": "paused"}
    answer = client.post("/api/replications", json=body)
    assert answer.status_code == 201
    assert answer.json()["replication"]["registry"]["password"] == "[hidden]"
    stored = box._server.registry.state.collections["replications"].items["r",]
    assert b"hunter2" not in bytes(stored)
    assert client.post("/api/replications", json=body).status_code == 409


def test_no_requests_into_its_own_network(client: httpx.Client) -> None:
    """A registry at an address that the settings forbid gets no request, and the status says so."""
    body = {"name": "inner", "direction": "pull", "registry": {"url": "http://127.0.0.1:9"}}
    assert client.post("/api/replications", json=body).status_code == 201
    until = time.monotonic() + 120
    while (replication := client.get("/api/replications/inner").json())["status"].get("phase") != "failing":
        assert time.monotonic() < until, replication
        time.sleep(0.05)
    assert replication["status"]["last_error"] == "ForbiddenAddress"
    assert replication["status"]["errors"] == replication["status"]["failures"] >= 1
    client.delete("/api/replications/inner")


def test_a_server_without_public_url_replicates_nothing(tmp_path: Path) -> None:
    """A server without a public URL refuses replication and names the setting: its schemas would have any authority."""
    with registry() as plain, httpx.Client(transport=plain.transport, base_url=plain.url) as client:
        body = {"name": "r", "direction": "pull", "registry": {"url": "http://x.example"}}
        answer = client.post("/api/replications", json=body)
    assert answer.status_code == 422
    assert "public_url" in answer.json()["error"]["message"]
