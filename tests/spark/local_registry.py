"""The registry of the Spark tests: Stele itself, in this process, on a port."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import httpx

from stele.client import Schema, SchemaReference
from stele.testing.registry_box import RegistryBox


class LocalRegistry(RegistryBox):
    """A registry that takes any schema, so that tests choose their versions freely."""

    def __init__(self) -> None:
        super().__init__(port=0)
        self._call("PUT", "/config", {"compatibility": "NONE"})
        self.heal()

    def add(self, subject: str, document: Any, *references: SchemaReference) -> int:
        """Register an Avro schema; return its id."""
        return self.add_text(subject, json.dumps(document), "AVRO", *references)

    def add_text(self, subject: str, text: str, schema_type: str, *references: SchemaReference) -> int:
        """Register a schema of any type; return its id."""
        if schema_type == "THRIFT":  # a type that RocketMQ's dialect has and Confluent's lacks
            path = "/schema-registry/v1/cluster/default/tenant/default/subject"
            name = quote(subject, safe="")
            self._call("POST", f"{path}/{name}/schema/{name}", {"schemaIdl": text, "schemaType": schema_type})
            return int(self._call("GET", f"/subjects/{name}/versions/latest")["id"])
        return self.client.register(subject, Schema(text, schema_type, references)).id

    def add_encoding(self, group: str, version: int, codec: str) -> int:
        """Assign a Pravega encoding id to a version and a codec of a subject, and return it."""
        groups = f"/v1/groups/{quote(group, safe='')}"
        if codec:
            self._call("POST", f"{groups}/codecTypes", {"name": codec})
        info = self._call("GET", f"{groups}/schemas/versions")["schemas"][version - 1]["versionInfo"]
        return int(self._call("PUT", f"{groups}/encodings", {"versionInfo": info, "codecType": codec})["encodingId"])

    def get_guid(self, schema_id: int) -> str:
        """Return the GUID of a schema's id."""
        return str(self._call("GET", f"/schemas/ids/{schema_id}")["guid"])

    def break_down(self, path: str = "*") -> None:
        """Answer 503 to the requests for a path, or to all of them, until `heal` is called."""
        self.fail(path, status=503, times=-1)

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        answer = httpx.request(method, self.url + path, json=body, timeout=120).raise_for_status()
        return answer.json() if answer.content else None
