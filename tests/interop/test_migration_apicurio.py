"""`stele import confluent` from another vendor's registry: Apicurio, from Maven Central, over its Confluent API."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.support.apicurio import run_apicurio
from tests.system.migration.boxes import box
from typer.testing import CliRunner

from stele.cli.app import app

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]

KIND = {"Content-Type": "application/vnd.schemaregistry.v1+json"}


@pytest.fixture(scope="module")
def apicurio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A client for raw requests to the Confluent API of Apicurio, which keeps its data in memory."""
    with (
        run_apicurio(tmp_path_factory.mktemp("apicurio"), "2.6.13.Final") as url,
        httpx.Client(base_url=f"{url}/apis/ccompat/v7", headers=KIND, timeout=60) as http,
    ):
        yield http


def _post(http: httpx.Client, subject: str, schema: Any, **more: Any) -> None:
    text = schema if isinstance(schema, str) else json.dumps(schema)
    answer = http.post(f"/subjects/{subject}/versions", content=json.dumps({"schema": text, **more}))
    assert answer.status_code == 200, answer.text


def _record(name: str, *fields: str) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": f, "type": "int", "default": 0} for f in fields]}


def test_apicurio_moves(apicurio: httpx.Client, tmp_path: Path) -> None:
    """Ids, numbers, texts, references, types and levels equal those of the source. Missing facts are reported."""
    _post(apicurio, "orders-value", _record("Order", "a"))
    _post(apicurio, "orders-value", _record("Order", "a", "b"))
    _post(apicurio, "base", {"type": "enum", "name": "E", "symbols": ["A", "B"]})
    reference = {"name": "E", "subject": "base", "version": 1}
    user = {"type": "record", "name": "U", "fields": [{"name": "e", "type": "E"}]}
    _post(apicurio, "user", user, references=[reference])
    _post(apicurio, "proto", 'syntax = "proto3"; message M { int32 a = 1; }', schemaType="PROTOBUF")
    _post(apicurio, "doc", {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}, schemaType="JSON")
    _post(apicurio, "gone", _record("Gone", "a"))
    assert apicurio.delete("/subjects/gone").status_code == 200
    assert apicurio.put("/config/orders-value", content='{"compatibility": "FULL"}').status_code == 200
    words = [
        "import",
        "confluent",
        "--from",
        str(apicurio.base_url).rstrip("/"),
        "--store",
        f"sqlite:///{tmp_path}/a.db",
    ]
    done = CliRunner().invoke(app, [*words, "-o", "json"])
    assert done.exit_code == 0, (done.stdout, done.stderr)
    report = json.loads(done.stdout)
    assert (report["versions"], report["same"], report["differences"], report["refused"]) == (6, 6, [], [])
    assert report["notes"] == [
        "gone version 1 is listed as deleted but cannot be read: it is not imported",
        "the source serves no DEK registry",
        "the source serves no associations",
        "the source serves no exporters",
    ]
    with box(f"sqlite:///{tmp_path}/a.db") as there:
        subjects = sorted(apicurio.get("/subjects").json())
        assert there.http.get("/subjects").json() == subjects
        for subject in subjects:
            numbers = apicurio.get(f"/subjects/{subject}/versions").json()
            assert there.http.get(f"/subjects/{subject}/versions").json() == numbers
            for number in numbers:
                path = f"/subjects/{subject}/versions/{number}"
                theirs, ours = apicurio.get(path).json(), there.http.get(path).json()
                assert {name: ours.get(name) or [] for name in theirs} == theirs
        assert there.http.get("/config/orders-value").json() == apicurio.get("/config/orders-value").json()
    again = CliRunner().invoke(app, [*words, "--verify"])
    assert again.exit_code == 0, again.stdout
