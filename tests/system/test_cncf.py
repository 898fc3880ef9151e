"""The CNCF dialect of a real server: its own port, several workers, restarts."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import httpx
from tests.support.server_process import free_port, serving

AVRO = b'{"type":"record","name":"R","fields":[]}'


def test_workers_agree_and_a_restart_forgets_nothing(tmp_path: Path) -> None:
    """5, 10, 19: two processes store one version per document and one owner per URI; a restart keeps all of it."""
    flags = ["--store", f"sqlite:///{tmp_path / 'db'}", "--workers", "2"]
    binary = bytes(range(256))
    with serving(*flags, folder=tmp_path) as server, httpx.Client(base_url=server.url, timeout=60) as client:
        with ThreadPoolExecutor(8) as pool:
            group_statuses = list(pool.map(lambda _: client.put("/schemagroups/g", json={}).status_code, range(8)))
            assert sorted(group_statuses) == [200] * 7 + [201]
            path = "/schemagroups/g/schemas/s?format=avro"
            posts = list(pool.map(lambda _: client.post(path, content=AVRO), range(16)))
            assert {answer.headers["schema-version"] for answer in posts} == {"1"}
            rivals = [f"/schemagroups/g/schemas/r{number}?format=avro&id=urn:x:only" for number in range(8)]
            statuses = [answer.status_code for answer in pool.map(lambda url: client.post(url, content=AVRO), rivals)]
            assert sorted(statuses) == [200] + [409] * 7
        headers = {"content-type": "application/x-thing; a=b"}
        client.post("/schemagroups/g/schemas/b%C3%A9?format=thing", content=binary, headers=headers)
        credential = {"credentialType": "PLAIN", "identifier": "i", "secret": "s"}
        body = {"sink": "https://a/b", "protocol": "HTTP", "sinkCredential": credential}
        place = client.post("/subscriptions", json=body).headers["location"]
        subscription = client.get(place).json()
    with serving(*flags, folder=tmp_path) as server, httpx.Client(base_url=server.url, timeout=60) as client:
        response = client.get("/schemagroups/g/schemas/b%C3%A9")
        assert (response.content, response.headers["content-type"]) == (binary, headers["content-type"])
        assert client.get("/schema", params={"uri": "urn:x:only"}).content == AVRO
        assert client.get(httpx.URL(place).path).json() == subscription
        changed = client.put(httpx.URL(place).path, json={**subscription, "config": {}})
        assert changed.status_code == 200, "the secret is still there, or the credential would be refused"


def test_a_port_of_its_own(tmp_path: Path) -> None:
    """The registry answers on the dialect's port, below its prefix and on the shared port; links name the one used."""
    port = free_port()
    flags = ("--store", "memory:", "--listen", f"cncf={port}")
    with serving(*flags, folder=tmp_path) as server, httpx.Client(timeout=60) as http:
        own = f"http://127.0.0.1:{port}"
        assert http.put(f"{own}/schemagroups/g", json={"format": "avro"}).status_code == 201
        assert http.post(f"{own}/schemagroups/g/schemas/s", content=AVRO).status_code == 200
        for base in (own, server.url, f"{server.url}/cncf"):
            for path in ("/schemagroups/g/schemas/s", "/%24schemagroups/g/schemas/s"):
                answer = http.get(base + path)
                assert (answer.status_code, answer.content) == (200, AVRO)
                assert answer.headers["location"].startswith(f"{base}/")
                assert http.head(base + path).headers["content-length"] == str(len(AVRO))
            uri = http.get(f"{base}/schemagroups/g/schemas/s").headers["schema-version-uri"]
            assert http.get(f"{base}/schema?uri={quote(uri, safe='')}").content == AVRO
            assert "/schemagroups/{group}" in http.get(f"{base}/_docs/cncf/openapi.json").json()["paths"]
        assert http.get(f"{own}/$SCHEMAgroups/g").json()["SchemaType"] == "Avro"
        metrics = http.get(f"{server.url}/metrics").text
        assert 'dialect="cncf"' in metrics
        assert 'route="/schemagroups/{group' in metrics
        assert http.get(f"{server.url}/subjects").json() == [":.g:s"]


def test_links_name_the_public_address(tmp_path: Path) -> None:
    """Behind a proxy, links and version URIs begin with the public address from the settings."""
    public = {"STELE_PUBLIC_URL": "https://schemas.example/cncf/"}
    with serving("--store", "memory:", folder=tmp_path, environ=public) as server, httpx.Client(timeout=60) as http:
        http.put(f"{server.url}/schemagroups/g", json={"format": "avro"})
        http.post(f"{server.url}/schemagroups/g/schemas/s", content=AVRO)
        answer = http.get(f"{server.url}/schemagroups/g/schemas/s")
        assert answer.headers["location"].startswith("https://schemas.example/cncf/schemagroups/g/")
        uri = quote(answer.headers["schema-version-uri"], safe="")
        assert http.get(f"{server.url}/schema?uri={uri}").content == AVRO
