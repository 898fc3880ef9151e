"""Reading registries of other makes, each simulated by a function that answers like them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from stele.client import Retry, SchemaRegistryClient
from stele.errors import RegistryUnreachable
from stele.migrate import registry_reader
from stele.protocol.confluent import Config

Answer = Callable[[httpx.Request], tuple[int, Any]]
MISSING = (404, {"error_code": 404, "message": "HTTP 404 Not Found"})


def client(answer: Answer) -> SchemaRegistryClient:
    """Return a client of a registry that is simulated by a function."""

    def handle(request: httpx.Request) -> httpx.Response:
        status, body = answer(request)
        return httpx.Response(status, json=body)

    return SchemaRegistryClient(
        "http://other", transport=httpx.MockTransport(handle), retry=Retry(rounds=1), sleep=lambda seconds: None
    )


def list_entry(subject: str, number: int, schema_id: int, **more: Any) -> dict[str, Any]:
    """Return a version in the form of lists."""
    return {"subject": subject, "version": number, "id": schema_id, "schema": f'"t{schema_id}"', **more}


def karapace(request: httpx.Request) -> tuple[int, Any]:
    """Answer like Karapace: no contexts, no pages, no deleted flags, no modes of its own, extra members."""
    rows = [list_entry("a", 1, 1), list_entry("b", 1, 2, schemaType="JSON", references=[])]
    match request.url.path:
        case "/schemas":
            return 200, rows if request.url.params.get("deleted") == "true" else rows[:1]
        case "/subjects":
            return 200, ["a", "b", "ghost"]
        case "/config":
            return 200, {"compatibilityLevel": "FULL"}
        case "/config/a":
            return 200, {"compatibilityLevel": "NONE", "more": 1}
        case path if path.startswith("/mode"):
            return 200, {"mode": "READWRITE"}
        case "/schemas/ids/2":
            return 200, {"schema": "x", "maxId": 9}
        case "/subjects/ghost/versions" | "/contexts":
            return 404, "Not Found"
        case _:
            return 404, {"error_code": 40408, "message": "none"}


def test_a_server_without_pages_and_contexts() -> None:
    """A repeated page ends a list, deletions are found by comparing lists, and a mode of all levels is a default."""
    dump = registry_reader.read_registry(client(karapace))
    assert [(row.subject, row.id, row.schema_type, row.deleted) for row in dump.versions] == [
        ("a", 1, "AVRO", False),
        ("b", 2, "JSON", True),
    ]
    assert dump.modes == {}
    assert dump.configs == {"": Config(compatibility_level="FULL"), "a": Config(compatibility_level="NONE")}
    assert (dump.contexts, dump.max_ids) == ((".",), {".": 9})


def redpanda(request: httpx.Request) -> tuple[int, Any]:
    """Answer like Redpanda: no list of schemas, settings and modes by subject, contexts."""
    deleted = request.url.params.get("deleted") == "true"
    match request.url.path:
        case "/subjects":
            return 200, ["a/x", ":.t:a"] if deleted else ["a/x"]
        case "/subjects/a/x/versions":
            return 200, [1, 3] if deleted else [3]
        case "/subjects/:.t:a/versions":
            return (200, [1]) if deleted else (404, {"error_code": 40401, "message": "gone"})
        case "/subjects/a/x/versions/1" | "/subjects/a/x/versions/3" | "/subjects/:.t:a/versions/1":
            number = int(request.url.path.rpartition("/")[2])
            metadata = {"properties": {"b": "1", "a": "2"}}
            return 200, list_entry(request.url.path.split("/versions")[0][10:], number, number, metadata=metadata)
        case "/contexts":
            return 200, [".", ".t", ".empty"]
        case "/schemas":
            return 405, {"error_code": 405, "message": "no"}
        case "/mode":
            return 200, {"mode": "READONLY"}
        case "/mode/:.t:a":
            return 200, {"mode": "IMPORT"}
        case "/config":
            return 200, {"compatibilityLevel": "BACKWARD"}
        case _:
            return MISSING


def test_a_server_without_a_list_of_schemas() -> None:
    """Versions are read one by one; the two lists of numbers show which ones are deleted."""
    dump = registry_reader.read_registry(client(redpanda))
    assert [(row.subject, row.version, row.deleted) for row in dump.versions] == [
        (":.t:a", 1, True),
        ("a/x", 1, True),
        ("a/x", 3, False),
    ]
    assert list(dump.versions[0].metadata.properties or {}) == ["a", "b"]  # type: ignore[union-attr]  # it has some
    assert dump.contexts == (".", ".empty", ".t")
    assert dump.modes == {"": "READONLY", ":.t:a": "IMPORT"}


def test_many_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages are requested until one is not full, and the reported progress increases."""
    monkeypatch.setattr(registry_reader, "PAGE", 3)
    rows = [list_entry(f"s{number}", 1, number + 1) for number in range(8)]
    offsets: list[int] = []

    def answer_page(request: httpx.Request) -> tuple[int, Any]:
        if request.url.path != "/schemas":
            return karapace(request) if request.url.path != "/subjects" else (200, [])
        offset = int(request.url.params["offset"])
        offsets.append(offset)
        return 200, rows[offset : offset + int(request.url.params["limit"])]

    progress: list[tuple[str, int, int | None]] = []
    dump = registry_reader.read_registry(
        client(answer_page), lambda verb, done, total: progress.append((verb, done, total))
    )
    assert len(dump.versions) == 8
    assert offsets == [0, 3, 6, 0, 3, 6]
    assert progress[:3] == [("listed", 3, None), ("listed", 6, None), ("listed", 8, None)]


@pytest.mark.parametrize("most", [1, 2, 4, 7, 8])
def test_pages_shorter_than_asked_for(most: int) -> None:
    """A registry with its own page limit (`schema.search.max.limit`) is read to its end."""
    rows = [list_entry("s", number, number) for number in range(1, 8)]

    def answer_page(request: httpx.Request) -> tuple[int, Any]:
        if request.url.path != "/schemas":
            return 200, []
        offset = int(request.url.params["offset"])
        return 200, rows[offset : offset + most]

    with client(answer_page) as source:
        versions = registry_reader._list_versions(source, deleted=True, progress=lambda *_: None)
    assert [row.version for row in versions] == list(range(1, 8))


def test_a_silent_server() -> None:
    """A server that stops answering ends the reading with an error; a partial registry is never returned."""

    def dead(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("nobody there")

    quiet = SchemaRegistryClient(
        "http://user:secret@other", transport=httpx.MockTransport(dead), retry=Retry(rounds=1), sleep=lambda _: None
    )
    with pytest.raises(RegistryUnreachable) as caught:
        registry_reader.read_registry(quiet)
    assert "secret" not in str(caught.value)
