"""A registry in a thread: the few routes a client needs, over a dict that tests may look at and break."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import unquote
from uuid import UUID


class StubRegistry:
    """Schemas by subject; ids count up from 1 and are shared by equal texts."""

    def __init__(self) -> None:
        self.texts: dict[int, dict[str, Any]] = {}
        self.subjects: dict[str, list[int]] = {}
        self.encodings: dict[str, list[tuple[int, str]]] = {}
        self.asked: list[str] = []
        self.broken = False
        self.outage = ""
        stub = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer(*stub.get(self.path.partition("?")[0]))

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                self._answer(*stub.post(self.path.partition("?")[0], body))

            def _answer(self, status: int, body: Any) -> None:
                data = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        """Stop answering."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def add(self, subject: str, document: Any, *references: dict[str, Any]) -> int:
        """Register a schema; its id."""
        return self.add_text(subject, json.dumps(document), "AVRO", *references)

    def add_text(self, subject: str, text: str, schema_type: str, *references: dict[str, Any]) -> int:
        """Register a schema of any type; its id."""
        entry: dict[str, Any] = {"schema": text, "schemaType": schema_type}
        if references:
            entry["references"] = list(references)
        known = [number for number, other in self.texts.items() if other == entry]
        number = known[0] if known else len(self.texts) + 1
        self.texts[number] = entry
        held = self.subjects.setdefault(subject, [])
        if number not in held:
            held.append(number)
        return number

    @staticmethod
    def guid(number: int) -> str:
        """The guid of an id."""
        return str(UUID(int=number))

    def get(self, path: str) -> tuple[int, Any]:
        """What a GET answers."""
        self.asked.append(path)
        if self.broken or path == self.outage:
            return 503, {"error_code": 50300, "message": "closed for today"}
        if match := re.fullmatch(r"/subjects/([^/]+)/versions", path):
            held = self.subjects.get(unquote(match[1]))
            return (200, list(range(1, len(held) + 1))) if held else (404, _gone(40401, "Subject not found"))
        if match := re.fullmatch(r"/subjects/([^/]+)/versions/(\w+)", path):
            return self._version(unquote(match[1]), match[2])
        if match := re.fullmatch(r"/schemas/ids/(\d+)", path):
            found = self.texts.get(int(match[1]))
            return (200, found) if found else (404, _gone(40403, "Schema not found"))
        if match := re.fullmatch(r"/schemas/guids/([^/]+)", path):
            found = self.texts.get(UUID(match[1]).int)
            return (200, {**found, "guid": match[1]}) if found else (404, _gone(40403, "Schema not found"))
        if match := re.fullmatch(r"/v1/groups/([^/]+)/encodings/(\d+)", path):
            return self._encoding(unquote(match[1]), int(match[2]))
        return 404, _gone(404, "no such route")

    def _encoding(self, group: str, number: int) -> tuple[int, Any]:
        known = self.encodings.get(group, [])
        if number >= len(known):
            return 404, _gone(404, "no such encoding")
        schema, codec = known[number]
        data = b64encode(self.texts[schema]["schema"].encode()).decode()
        info = {"type": "", "serializationFormat": {"serializationFormat": "Avro"}, "schemaData": data}
        versions = self.subjects.get(group, [])
        version = {"id": versions.index(schema) if schema in versions else -1}
        return 200, {"schemaInfo": info, "versionInfo": version, "codecType": {"name": codec}}

    def post(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        """What a POST answers: registration, or a look-up."""
        if match := re.fullmatch(r"/subjects/([^/]+)/versions", path):
            return 200, {"id": self.add(match[1], json.loads(body["schema"]))}
        subject = path.rpartition("/")[2]
        for version, number in enumerate(self.subjects.get(subject, []), 1):
            if json.loads(self.texts[number]["schema"]) == json.loads(body["schema"]):
                return 200, {"subject": subject, "version": version, "id": number, **self.texts[number]}
        return 404, _gone(40403, "Schema not found")

    def _version(self, subject: str, version: str) -> tuple[int, Any]:
        held = self.subjects.get(subject)
        if not held:
            return 404, _gone(40401, "Subject not found")
        place = len(held) if version == "latest" else int(version)
        if not 1 <= place <= len(held):
            return 404, _gone(40402, "Version not found")
        number = held[place - 1]
        return 200, {
            "subject": subject,
            "version": place,
            "id": number,
            "guid": self.guid(number),
            **self.texts[number],
        }


def _gone(code: int, message: str) -> dict[str, Any]:
    return {"error_code": code, "message": message}
