"""Replication from and to another vendor's registry: Apicurio 3, by its own API (3 and 2) and its Confluent API."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from tests.support.apicurio import run_apicurio

from stele.client import Schema, SchemaRegistryClient
from stele.protocol.replication import ConflictCode, ReplicaState
from stele.replicate.apicurio_source import ApicurioSource
from stele.replicate.confluent_source import ConfluentSource
from stele.replicate.confluent_target import ConfluentTarget
from stele.replicate.dump_target import ProcessMemory
from stele.replicate.foreign_api import ForeignApi
from stele.replicate.replicator import Replicator
from stele.replicate.stele_registry import HttpApi, SteleRegistry
from stele.testing import registry
from stele.testing.registry_box import RegistryBox

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]

AUTHORITY = "http://apicurio.example"
MESSAGE = 'syntax = "proto3"; message M { int32 a = 1; }'
USER = 'syntax = "proto3"; import "m.proto"; message U { M a = 1; }'


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of the Apicurio server."""
    with run_apicurio(tmp_path_factory.mktemp("apicurio"), "3.0.9") as address:
        yield address


@pytest.fixture
def http(url: str) -> Iterator[httpx.Client]:
    """Client for Apicurio's own API. The registry is emptied first."""
    with httpx.Client(base_url=f"{url}/apis/registry/v3", timeout=60) as client:
        for row in client.get("/search/artifacts?limit=500").json()["artifacts"]:
            path = artifact_path(row.get("groupId", "default"), row["artifactId"])
            assert client.delete(path).is_success
        yield client


@pytest.fixture
def b() -> Iterator[RegistryBox]:
    """A Stele registry."""
    with registry(public_url="http://b.example") as box:
        yield box


def artifact_path(group: str, artifact: str) -> str:
    """Return the path of an artifact."""
    return f"/groups/{quote(group, safe='')}/artifacts/{quote(artifact, safe='')}"


def add(http: httpx.Client, group: str, artifact: str, kind: str, text: str, **more: Any) -> None:
    """Create an artifact with its first version, or add a version to it."""
    media = "application/x-protobuf" if kind == "PROTOBUF" else "application/json"
    content = {"content": text, "contentType": media, "references": more.pop("references", [])}
    version = {"content": content, **more}
    path = artifact_path(group, artifact)
    if http.get(path).is_success:
        answer = http.post(f"{path}/versions", json=version)
    else:
        body = {"artifactId": artifact, "artifactType": kind, "firstVersion": version}
        answer = http.post(f"/groups/{quote(group, safe='')}/artifacts", json=body)
    assert answer.is_success, answer.text


def stele(box: RegistryBox) -> SteleRegistry:
    """Return the Stele registry of a box."""
    return SteleRegistry(HttpApi(box.client), box.url)


def record(name: str, *fields: str) -> str:
    """Return a record schema."""
    rows = [{"name": field, "type": "int", "default": 0} for field in fields]
    return json.dumps({"type": "record", "name": name, "fields": rows})


def follow(http: httpx.Client, client: httpx.Client, url: str, box: RegistryBox) -> None:
    """Change the registry step by step, and check the replica after each change."""
    replicator = Replicator(ApicurioSource(client, url, AUTHORITY), stele(box))
    add(http, "default", "a/b c", "AVRO", record("R"), version="1.0", description="first", labels={"k": "v"})
    add(http, "default", "a/b c", "AVRO", record("R", "x"), version="1.1")
    add(http, "team", "m", "PROTOBUF", MESSAGE)
    use = {"groupId": "team", "artifactId": "m", "version": "1", "name": "m.proto"}
    add(http, "default", "user", "PROTOBUF", USER, references=[use])
    add(http, "default", "api", "OPENAPI", json.dumps({"openapi": "3.0.2", "info": {"title": "t", "version": "1"}}))
    if url.endswith("v3"):  # API 2 answers 500 while there is a draft.
        add(http, "default", "later", "AVRO", record("D"), isDraft=True)
    position = replicator.source.wait_for_changes("", 0).position
    assert replicator.synchronize()[:4] == (5, 0, 0, 0)
    there = {(row.namespace, row.subject): row for row in replicator.target.read_target_versions(None, ())}
    assert set(there) == {("", "a/b c"), ("", "api"), ("", "user"), ("team", "m")}
    assert there["", "user"].references[0].place == ("team", "m")
    assert (there["", "api"].format, there["", "api"].custom_format) == ("opaque", "OPENAPI")
    contents = {row["artifactId"]: row["contentId"] for row in http.get("/search/versions").json()["versions"]}
    assert there["team", "m"].schema_id == contents["m"]
    assert box.client.version("user").text == USER
    assert replicator.synchronize()[:3] == (0, 0, 5)
    assert Replicator(ApicurioSource(client, url, AUTHORITY), stele(box)).synchronize().same == 5
    if url.endswith("v3"):
        assert replicator.source.wait_for_changes(position, 0).subjects == frozenset()
    # Deleted and created again between two polls: another version with the same text.
    before = there["", "user"].uid
    http.delete(artifact_path("default", "user")).raise_for_status()
    add(http, "default", "user", "PROTOBUF", USER, references=[use])
    changes = replicator.source.wait_for_changes(position, 0)
    assert changes.subjects is None
    assert replicator.synchronize()[:2] == (1, 1)
    after = {row.subject: row.uid for row in replicator.target.read_target_versions(None, ())}
    assert after["user"] != before
    # One version disabled, another one deleted.
    path = artifact_path("default", "a/b c") + "/versions"
    http.put(f"{path}/1.0/state", json={"state": "DISABLED"}).raise_for_status()
    assert replicator.source.wait_for_changes(changes.position, 0).subjects is None
    assert replicator.synchronize().removed == 1
    states = [row.state for row in replicator.target.read_target_versions(None, ()) if row.subject == "a/b c"]
    assert sorted(states) == [ReplicaState.ACTIVE, ReplicaState.DELETED]
    http.delete(f"{path}/1.1").raise_for_status()
    assert replicator.synchronize().removed == 1
    assert replicator.synchronize()[:3] == (0, 0, 4)


def test_apicurio_3_is_followed(http: httpx.Client, url: str, b: RegistryBox) -> None:
    """Versions of any name, references, states, deletions and re-creations are replicated through API 3."""
    with httpx.Client(timeout=60) as client:
        follow(http, client, f"{url}/apis/registry/v3", b)


def test_apicurio_2_is_followed(http: httpx.Client, url: str, b: RegistryBox) -> None:
    """The same changes are replicated through API 2."""
    with httpx.Client(timeout=60) as client:
        follow(http, client, f"{url}/apis/registry/v2", b)


def test_its_confluent_api_is_a_source(http: httpx.Client, url: str, b: RegistryBox) -> None:
    """Ids, numbers and deletions are replicated.

    Changes are detected by version numbers, because this API has no list of schemas.
    """
    base = f"{url}/apis/ccompat/v7"
    client = SchemaRegistryClient(base, timeout=60, cache_size=0)
    source = ConfluentSource(client, ForeignApi(httpx.Client(timeout=60), base), base, AUTHORITY)
    replicator = Replicator(source, stele(b))
    client.register("orders", Schema(record("Order", "a")))
    client.register("orders", Schema(record("Order", "a", "b")))
    client.register("other", Schema('"string"'))
    position = source.wait_for_changes("", 0).position
    assert replicator.synchronize().registered == 3
    assert b.client.version("orders", 2).id == client.version("orders", 2).id
    assert source.wait_for_changes(position, 0).subjects == frozenset()
    client.delete_subject("other")
    client.register("orders", Schema(record("Order", "a", "b", "c")))
    changes = source.wait_for_changes(position, 0)
    assert changes.subjects == {("", "orders"), ("", "other")}
    assert replicator.synchronize(sorted(changes.subjects))[:2] == (1, 1)
    assert replicator.synchronize().same == 3
    replicator.source.close()


def test_its_confluent_api_as_a_target_refuses(http: httpx.Client, url: str, b: RegistryBox) -> None:
    """The server claims to set the mode but does not: nothing is written, and each version is a conflict."""
    base = f"{url}/apis/ccompat/v7"
    b.register_all({"mine": record("Mine")})
    client = SchemaRegistryClient(base, timeout=60, cache_size=0)
    target = ConfluentTarget(client, base, AUTHORITY, ProcessMemory())
    outcome = Replicator(stele(b), target).synchronize()
    assert [(row.subject, row.code) for row in outcome.conflicts] == [("mine", ConflictCode.REFUSED)]
    assert client.subjects() == []
    client.close()
