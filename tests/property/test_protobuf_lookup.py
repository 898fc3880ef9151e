"""A Protobuf schema is found in every form it can be sent in, and an import keeps its numbers and text."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conformance.apis.in_process import client_of
from tests.property.test_protobuf import proto_sources, source_text
from tests.support.examples import scale_examples

from stele.apis.confluent import ConfluentOptions, application
from stele.core.ports import TextForm
from stele.formats.protobuf import PROTOBUF
from stele.service.registry import Registry
from stele.storage import open_log


class Server:
    """The Confluent dialect on an empty node, asked from synchronous tests."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self.node = self._runner.run(self._open_node())
        self._client = client_of(application(self.node, ConfluentOptions()))
        self._subjects = 0

    @staticmethod
    async def _open_node() -> Registry:
        return await Registry.open(await open_log("memory:"))

    def new_subject(self) -> str:
        """A name that no test has used."""
        self._subjects += 1
        return f"s{self._subjects}"

    def send(self, method: str, path: str, **body: Any) -> httpx.Response:
        """Send a request."""
        return self._runner.run(self._client.request(method, path, json=body or None))

    def send_schema(self, path: str, schema: str, **body: Any) -> dict[str, Any]:
        """Register or look up a Protobuf schema, which must succeed."""
        answer = self.send("POST", path, schemaType="PROTOBUF", schema=schema, **body)
        assert answer.status_code == 200, f"{path}: {answer.text}\n{schema}"
        result: dict[str, Any] = answer.json()
        return result

    def close(self) -> None:
        """End the node."""
        self._runner.run(self.node.close())
        self._runner.close()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server for all tests of the module."""
    shared_server = Server()
    yield shared_server
    shared_server.close()


def assert_found(server: Server, subject: str, forms: list[str], schema_id: int, *queries: str) -> None:
    """Every form is found as the one version of the subject."""
    for form in forms:
        for query in queries:
            result = server.send_schema(f"/subjects/{subject}{query}", form)
            assert (result["id"], result["version"]) == (schema_id, 1), f"{query}\n{form}"


def list_forms(source: bytes) -> list[str]:
    """A schema as its author wrote it, as Confluent prints it, and as a descriptor in base64."""
    parsed = PROTOBUF.parse(source, {})
    serialized = PROTOBUF.render(parsed, "serialized")
    assert serialized is not None
    return [source.decode(), PROTOBUF.canonical(parsed, TextForm.PRINTED).decode(), serialized]


@settings(max_examples=scale_examples(15), deadline=None)
@given(source=proto_sources(), first=st.integers(0, 2))
def test_every_form_of_a_schema_is_found(server: Server, source: tuple[list[str], list[list[str]]], first: int) -> None:
    """lookup(parse∘print(x)) is x from source and descriptor, with and without normalize, registered or imported."""
    forms = list_forms(source_text(source))
    plain, normalized, imported = (server.new_subject() for _ in range(3))
    registration = server.send_schema(f"/subjects/{plain}/versions", forms[first])
    assert_found(server, plain, [*forms, registration["schema"]], registration["id"], "", "?normalize=true")
    assert server.send_schema(f"/subjects/{plain}/versions", forms[0])["version"] == 1

    registration = server.send_schema(f"/subjects/{normalized}/versions?normalize=true", forms[first])
    assert_found(server, normalized, [*forms, registration["schema"]], registration["id"], "?normalize=true")

    assert server.send("PUT", f"/mode/{imported}", mode="IMPORT").status_code == 200
    registration = server.send_schema(
        f"/subjects/{imported}/versions", forms[first], id=1_000_000 + registration["id"], version=1
    )
    assert server.send("PUT", f"/mode/{imported}", mode="READWRITE").status_code == 200
    assert_found(server, imported, forms, registration["id"], "", "?normalize=true")


STORED_ORDER = (
    'syntax = "proto3";\n\nmessage M {\n  int32 b = 2;\n\n  oneof o {\n    E a = 1;\n  }\n}\nenum E {\n  Z = 0;\n}\n'
)
MIGRATED = {
    "a missing import": (
        'syntax = "proto3";\n\nimport "absent.proto";\n\nmessage M {\n  google.protobuf.Timestamp at = 1;\n}\n',
        'syntax = "proto3"; import "absent.proto"; message M { google.protobuf.Timestamp at = 1; }',
    ),
    "a missing type": (
        'syntax = "proto3";\n\nimport "absent.proto";\n\nmessage M {\n  absent.Other o = 1;\n  int32 a = 2;\n}\n',
        'syntax = "proto3"; import "absent.proto"; message M { absent.Other o = 1; int32 a = 2; }',
    ),
    "a number twice": (
        'syntax = "proto3";\n\nmessage M {\n  int32 a = 1;\n  string b = 1;\n}\n',
        'syntax = "proto3"; message M { int32 a = 1; string b = 1; }',
    ),
    "undeclared options": (
        'syntax = "proto3";\n\nmessage M {\n  int32 a = 1 [(buf.validate.field).int32.gt = 0];\n}\n',
        'syntax = "proto3"; message M { int32 a = 1 [(buf.validate.field).int32.gt=0]; }',
    ),
    "its own order": (
        STORED_ORDER,
        'syntax = "proto3"; enum E { Z = 0; } message M { oneof o { E a = 1; } int32 b = 2; }',
    ),
    "entries of a map": (
        (
            'syntax = "proto3";\n\nmessage M {\n  repeated .M.AEntry a = 1;\n\n  message AEntry {\n'
            "    option map_entry = true;\n\n    string key = 1;\n    int32 value = 2;\n  }\n}\n"
        ),
        'syntax = "proto3"; message M { map<string, int32> a = 1; }',
    ),
}

UNCHECKED = {"a missing type", "a number twice"}
"""Cases that can be registered only in the mode IMPORT or without `validateNewSchemas`."""


@pytest.mark.parametrize("case", sorted(MIGRATED))
def test_what_confluent_stores_can_be_migrated(server: Server, case: str) -> None:
    """Texts of Confluent keep id, version, GUID and text, and the author's file is found as that version."""
    stored, original = MIGRATED[case]
    subject = server.new_subject()
    schema_id = 5_000_000 + int(subject[1:])
    assert server.send("PUT", f"/mode/{subject}", mode="IMPORT").status_code == 200
    registration = server.send_schema(f"/subjects/{subject}/versions", stored, id=schema_id, version=7)
    assert server.send("PUT", f"/mode/{subject}", mode="READWRITE").status_code == 200
    version = server.send("GET", f"/subjects/{subject}/versions/7").json()
    assert (version["id"], version["schema"], version["guid"]) == (schema_id, stored, registration["guid"])
    for query in ("", "?normalize=true"):
        if case in UNCHECKED:
            server.send("PUT", f"/config/{subject}", validateNewSchemas=False)
        assert server.send_schema(f"/subjects/{subject}{query}", original)["version"] == 7
        assert server.send_schema(f"/subjects/{subject}{query}", stored)["version"] == 7
    again = server.send_schema(f"/subjects/{subject}/versions", original)
    assert (again["id"], again["version"]) == (schema_id, 7)
    if case not in {*UNCHECKED, "entries of a map"}:
        other = server.send_schema(f"/subjects/{server.new_subject()}/versions", original)
        assert (other["schema"], other["guid"]) == (stored, registration["guid"])
