"""A small fake registry for rules: versions with rule sets, and the keys of a DEK registry."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx

from stele.client import Retry, SchemaRegistryClient


class RuledRegistry:
    """Serves given versions, with ids from 1, and stores keys. `key_requests` counts the requests for keys."""

    def __init__(self) -> None:
        self.versions: dict[str, list[dict[str, Any]]] = {}
        self.keks: dict[str, dict[str, Any]] = {}
        self.deks: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
        self.ids = 0
        self.now = 0
        self.key_requests = 0
        self.down = False

    def add(self, subject: str, text: str, **more: Any) -> int:
        """Add a version and return its id. `more` are further members of its answers: schemaType, ruleSet, metadata."""
        self.ids += 1
        known = self.versions.setdefault(subject, [])
        known.append({"subject": subject, "version": len(known) + 1, "id": self.ids, "schema": text, **more})
        return self.ids

    def client(self) -> SchemaRegistryClient:
        """Return a client of this registry that caches no changeable answers."""
        transport = httpx.MockTransport(self.handle)
        return SchemaRegistryClient("http://registry", transport=transport, cache_ttl=0, retry=Retry(rounds=1))

    def handle(self, request: httpx.Request) -> httpx.Response:
        """Answer one request."""
        parts = [httpx.URL(f"http://x/{part}").path[1:] for part in request.url.path.strip("/").split("/")]
        if parts[0] == "dek-registry":
            self.key_requests += 1
            return httpx.Response(503) if self.down else self._keys(request, parts[2:])
        match request.method, parts:
            case "GET", ["schemas", "ids", schema_id]:
                return self._one(lambda entry: entry["id"] == int(schema_id))
            case "GET", ["schemas", "ids", schema_id, "versions"]:
                rows = [entry for rows in self.versions.values() for entry in rows if entry["id"] == int(schema_id)]
                return httpx.Response(200, json=[{key: row[key] for key in ("subject", "version")} for row in rows])
            case "GET", ["subjects", subject, "versions"]:
                return httpx.Response(200, json=[entry["version"] for entry in self.versions[subject]])
            case "GET", ["subjects", subject, "versions", number]:
                wanted = len(self.versions[subject]) if number == "latest" else int(number)
                return self._one(lambda entry: (entry["subject"], entry["version"]) == (subject, wanted))
            case "GET", ["subjects", subject, "metadata"]:
                pairs = dict(zip(request.url.params.get_list("key"), request.url.params.get_list("value"), strict=True))
                return self._one(
                    lambda entry: (
                        entry["subject"] == subject
                        and pairs.items() <= entry.get("metadata", {}).get("properties", {}).items()
                    )
                )
            case "POST", ["subjects", subject]:
                text = json.loads(request.content)["schema"]
                return self._one(lambda entry: (entry["subject"], entry["schema"]) == (subject, text))
        raise AssertionError(request.url)

    def _one(self, fits: Callable[[dict[str, Any]], bool]) -> httpx.Response:
        matches = [row for rows in self.versions.values() for row in rows if fits(row)]
        return httpx.Response(200, json=matches[-1]) if matches else _missing()

    def _keys(self, request: httpx.Request, parts: list[str]) -> httpx.Response:
        body = json.loads(request.content or "{}")
        match request.method, parts:
            case "POST", ["keks"]:
                if body["name"] in self.keks:
                    return httpx.Response(409, json={"error_code": 40971, "message": "taken"})
                self.keks[body["name"]] = {**body, "ts": self.now}
                return httpx.Response(200, json=self.keks[body["name"]])
            case "GET", ["keks", name]:
                return httpx.Response(200, json=self.keks[name]) if name in self.keks else _missing()
            case "POST", ["keks", name, "deks", subject]:
                known = self.deks.setdefault((name, subject, body["algorithm"]), [])
                if body["version"] <= len(known):
                    return httpx.Response(409, json={"error_code": 40971, "message": "taken"})
                known.append({**body, "kekName": name, "ts": self.now})
                return httpx.Response(200, json=known[-1])
            case "GET", ["keks", name, "deks", subject, "versions", number]:
                known = self.deks.get((name, subject, request.url.params["algorithm"]), [])
                at = len(known) if number == "-1" else int(number)
                return httpx.Response(200, json=known[at - 1]) if 0 < at <= len(known) else _missing()
        raise AssertionError(request.url)


def _missing() -> httpx.Response:
    return httpx.Response(404, json={"error_code": 40470, "message": "not there"})
