"""The Pravega dialect of a real server: several workers, one registry."""

from __future__ import annotations

import base64
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.support.server_process import call, serving

PROPERTIES = {
    "serializationFormat": {"serializationFormat": "Avro"},
    "compatibility": {"policy": "AllowAny"},
    "allowMultipleTypes": True,
}


def schema(name: str) -> dict[str, Any]:
    """Return a schema as requests carry it."""
    text = f'{{"type":"record","name":"{name}","fields":[]}}'
    data = base64.b64encode(text.encode()).decode()
    return {"type": name, "serializationFormat": {"serializationFormat": "Avro"}, "schemaData": data}


def test_ids_are_dense_over_several_workers(tmp_path: Path) -> None:
    """27: with many clients and two processes, ids are dense and unique: one per schema, one encoding id per pair."""
    with serving("--store", f"sqlite:///{tmp_path / 'db'}", "--workers", "2", folder=tmp_path) as server:
        groups = f"{server.url}/v1/groups"
        with ThreadPoolExecutor(8) as pool:
            body = {"groupName": "a/b", "groupProperties": PROPERTIES}
            statuses = [answer.status for answer in pool.map(lambda _: call(groups, "POST", body), range(8))]
            assert sorted(statuses) == [201] + [409] * 7
            group = f"{groups}/a%2Fb"
            names = [f"R{number}" for number in range(20)] * 2
            infos = [row.body for row in pool.map(lambda n: call(f"{group}/schemas", "POST", schema(n)), names)]
            assert sorted({info["id"] for info in infos}) == list(range(20))
            assert infos[:20] == infos[20:]
            bodies = [{"versionInfo": info, "codecType": ""} for info in infos[:5] * 3]
            encoding_ids = [
                row.body["encodingId"] for row in pool.map(lambda b: call(f"{group}/encodings", "PUT", b), bodies)
            ]
            assert sorted(set(encoding_ids)) == list(range(5))
            assert encoding_ids[:5] == encoding_ids[5:10] == encoding_ids[10:]


def test_the_dialect_stands_beside_the_others(tmp_path: Path) -> None:
    """A group is a subject of the Confluent dialect. Each dialect keeps its part of /v1 and its OpenAPI document."""
    with serving("--store", "memory:", folder=tmp_path) as server:
        assert call(f"{server.url}/ping").status == 200
        assert call(f"{server.url}/v1/metadata/id").body["scope"]
        body = {"groupName": "g", "groupProperties": PROPERTIES}
        assert call(f"{server.url}/v1/namespace/ns/groups", "POST", body).status == 201
        assert call(f"{server.url}/v1/namespace/ns/groups/g/schemas", "POST", schema("R")).status == 201
        assert call(f"{server.url}/contexts/.ns/subjects/g/versions").body == [1]
        assert call(f"{server.url}/v1/groups/g").status == 404
        assert "/v1/groups/{group}" in call(f"{server.url}/_docs/pravega/openapi.json").body["paths"]
        assert 'dialect="pravega"' in call(f"{server.url}/metrics").body
