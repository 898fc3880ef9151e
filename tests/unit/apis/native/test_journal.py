"""The endpoint of the journal: every change once, in order, page by page, without secret or purged content."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import AsyncIterator
from typing import Any, get_args

import httpx
import msgspec
import pytest
import pytest_asyncio
from tests.conformance.apis.in_process import client_of

from stele.core import events as ev
from stele.core.metadata import DataRule, DataRuleSet, Metadata
from stele.core.model import Binding, Reference, Settings, SettingsLevel, SubjectKey
from stele.core.policy import BACKWARD
from stele.server.dialects import build_dispatcher
from stele.server.metrics import Metrics
from stele.server.settings import ServerSettings
from stele.service import journal
from stele.service.collections import Changes, Items, edit_collection
from stele.service.registry import Registry
from stele.storage.memory import MemoryLog, MemoryStore

SECRET = "s3cr3t"
KEY = SubjectKey("team", "orders")
SHA = hashlib.sha256(b"x").digest()
RULES = DataRuleSet(domain_rules=(DataRule(name="r", params={"token": SECRET}, expr=SECRET),))
FREE: dict[str, Any] = {"description": SECRET, "labels": {"a": SECRET}, "dialect_data": {"a": SECRET}}
EVENTS: list[ev.Event] = [
    ev.NamespaceCreated("team", **FREE),
    ev.NamespaceChanged("team", **FREE),
    ev.NamespaceDeleted("team"),
    ev.SubjectCreated(KEY, b"u" * 16, 1, 1, format="avro", **FREE),
    ev.SubjectChanged(KEY, **FREE),
    ev.IncarnationEnded(KEY),
    ev.VersionRegistered(
        KEY,
        b"u" * 16,
        3,
        3,
        7,
        SHA,
        "avro",
        text=SECRET.encode(),
        references=(Reference("n", "", "s", 1),),
        metadata=Metadata(properties={"password": SECRET}, sensitive=("password",)),
        rule_set=RULES,
        replaces=(1, 3),
        origin_uri=f"https://user:{SECRET}@host/",
        **FREE,
    ),
    ev.VersionsSoftDeleted(KEY, (1, 2)),
    ev.VersionsPurged(KEY, ()),
    ev.SettingsChanged(
        SettingsLevel("team", "orders"), Settings(policy=BACKWARD, default_rule_set=RULES, dialect_data={"a": SECRET})
    ),
    ev.ModeChanged(SettingsLevel()),
    ev.CodecAdded(KEY, "gzip", {"password": SECRET}),
    ev.EncodingAssigned(KEY, 1, b"u" * 16, "gzip"),
    ev.BindingAdded(Binding("c", "topic", "orders", "value", KEY, 2)),
    ev.BindingRemoved(("c", "topic", "orders", "value")),
    ev.ItemsChanged("keys", ((("kek", "main"), SECRET.encode()), (("kek", "old"), None))),
    ev.RulesetAdopted("avro", "confluent", 2),
    ev.IdsSkipped(10_000, 100),
]


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def node() -> AsyncIterator[tuple[Registry, httpx.AsyncClient]]:
    """A node, and a client of the whole server over it."""
    registry = await Registry.open(MemoryLog())
    async with client_of(build_dispatcher(registry, ServerSettings(), Metrics())) as client:
        yield registry, client
    await registry.close()


@pytest_asyncio.fixture(loop_scope="module")
async def client(node: tuple[Registry, httpx.AsyncClient]) -> httpx.AsyncClient:
    """A client of the server over an empty registry."""
    registry, client = node
    await registry.reset(MemoryLog())
    return client


async def register(client: httpx.AsyncClient, subject: str, text: str = '"string"') -> int:
    """Register an Avro schema and return its id."""
    answer = await client.post(f"/subjects/{subject}/versions", json={"schema": text})
    assert answer.status_code == 200, answer.text
    return int(answer.json()["id"])


async def read(client: httpx.AsyncClient, **parameters: Any) -> dict[str, Any]:
    """Return one page of the journal."""
    answer = await client.get("/api/journal", params=parameters)
    assert answer.status_code == 200, answer.text
    page: dict[str, Any] = answer.json()
    return page


def kinds(page: dict[str, Any]) -> list[tuple[str, str | None, int | None]]:
    """Return kind, subject and version of the changes that name a subject."""
    return [(row["kind"], row["subject"], row["version"]) for row in page["entries"] if row["subject"]]


async def test_every_event_can_be_read() -> None:
    """Every kind of event gives at least one row."""
    assert {type(event) for event in EVENTS} == set(get_args(ev.Event))
    for event in EVENTS:
        rows = journal.list_entries(5, ev.LogRecord(ev.EventMetadata(b"u" * 16, 9, "ada", "native"), (event,)))
        assert rows
        assert [(row.seq, row.at, row.actor, row.via) for row in rows] == [(5, 9, "ada", "native")] * len(rows)


async def test_nothing_secret_is_told() -> None:
    """Texts, descriptions, properties, rules, documents and addresses of events are not in the rows."""
    rows = journal.list_entries(1, ev.LogRecord(ev.EventMetadata(b"u" * 16, 1), tuple(EVENTS)))
    body = msgspec.json.encode(rows)
    assert SECRET.encode() not in body
    assert base64.b64encode(SECRET.encode()) not in body
    assert [row.part for row in rows] == list(range(len(rows)))


async def test_one_row_for_each_version() -> None:
    """Soft-deleted, purged and replaced versions have a row each, and so has a subject purged without versions."""
    rows = journal.list_entries(1, ev.LogRecord(ev.EventMetadata(b"u" * 16, 1), (EVENTS[6], EVENTS[7], EVENTS[8])))
    assert [(row.kind, row.version, row.schema_id) for row in rows] == [
        ("registered", 3, 7),
        ("purged", 1, None),
        ("soft_deleted", 1, None),
        ("soft_deleted", 2, None),
        ("purged", None, None),
    ]
    assert rows[0].details == {
        "format": "avro",
        "sha256": SHA.hex(),
        "references": [{"name": "n", "namespace": "", "subject": "s", "version": 1}],
    }


async def test_a_life_is_told_in_order(client: httpx.AsyncClient) -> None:
    """Registration, settings and both kinds of deletion are listed in order, with dialect, schema id and details."""
    number = await register(client, "orders")
    await client.put("/config/orders", json={"compatibility": "NONE"})
    await client.delete("/subjects/orders")
    await client.delete("/subjects/orders?permanent=true")
    page = await read(client)
    assert kinds(page) == [
        ("subject_created", "orders", None),
        ("registered", "orders", 1),
        ("settings_changed", "orders", None),
        ("soft_deleted", "orders", 1),
        ("purged", "orders", 1),
    ]
    registered = next(row for row in page["entries"] if row["kind"] == "registered")
    assert (registered["schema_id"], registered["namespace"], registered["via"]) == (number, "", "confluent")
    settings = next(row for row in page["entries"] if row["kind"] == "settings_changed")
    assert settings["details"]["policy"]["kind"] == "allow_any"
    assert page["next"] == page["end"] == page["entries"][-1]["seq"]


async def test_pages_join_without_gap_or_repeat(client: httpx.AsyncClient) -> None:
    """Pages of one record have the same rows as one page; `after` is exclusive; a page after the end is empty."""
    for number in range(5):
        await register(client, f"s{number}")
    whole = await read(client, limit=1000)
    after, entries = 0, []
    while after < whole["end"]:
        page = await read(client, after=after, limit=1)
        assert page["next"] == after + 1
        entries += page["entries"]
        after = page["next"]
    assert entries == whole["entries"]
    assert await read(client, after=after) == {"entries": [], "next": after, "end": after}
    assert await read(client, after=10**18) == {"entries": [], "next": 10**18, "end": after}
    assert (await read(client, limit=0))["entries"] == []


async def test_a_space_or_a_subject_alone(client: httpx.AsyncClient) -> None:
    """Namespace and subject filter the changes, '' is the default namespace, and pages skip other changes."""
    await register(client, "a")
    await register(client, ":.team:a")
    await register(client, "b")
    end = (await read(client))["end"]
    page = await read(client, subject="a", namespace="team")
    assert {(row["namespace"], row["subject"]) for row in page["entries"]} == {("team", "a")}
    assert page["next"] == page["end"] == end
    assert {row["namespace"] for row in (await read(client, namespace=""))["entries"]} == {""}
    assert {row["namespace"] for row in (await read(client, subject="a"))["entries"]} == {"", "team"}


def _one_more(items: Items) -> tuple[Changes, None]:
    return {("n",): items.get(("n",), b"") + b"x"}, None


async def test_what_another_node_wrote_is_there() -> None:
    """A page contains all records that were durable at the request, from any node."""
    store = MemoryStore()
    nodes = [await Registry.open(MemoryLog(store)) for _ in range(2)]
    for number in range(20):
        await edit_collection(nodes[number % 2], "numbers", _one_more)
        page = await journal.read_page(nodes[(number + 1) % 2], 0, 1000)
        changed = [entry for entry in page.entries if entry.kind == "item_changed"]
        assert len(changed) == number + 1
        assert page.next == page.end
    for node in nodes:
        await node.close()


async def test_texts_by_digest_until_purged(client: httpx.AsyncClient) -> None:
    """A text is returned as long as a version has it; purged and unknown texts are left out."""
    await register(client, "orders")
    sha = next(row for row in (await read(client))["entries"] if row["kind"] == "registered")["details"]["sha256"]
    absent = "0" * 64
    answer = (await client.get("/api/texts", params={"sha256": [sha, absent, sha]})).json()
    assert answer == {"texts": [{"sha256": sha, "text": '"string"', "base64": None}], "omitted": []}
    await client.delete("/subjects/orders")
    await client.delete("/subjects/orders?permanent=true")
    assert (await client.get("/api/texts", params={"sha256": sha})).json() == {"texts": [], "omitted": []}
    assert '"string"' not in (await client.get("/api/journal")).text


async def test_a_long_answer_stops(client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts beyond the size of a response are listed by digest for the next request; one text is always returned."""
    monkeypatch.setattr(journal, "_ENOUGH", 1)
    await register(client, "a")
    await register(client, "b", '"bytes"')
    shas = [row["details"]["sha256"] for row in (await read(client))["entries"] if row["kind"] == "registered"]
    answer = (await client.get("/api/texts", params={"sha256": shas})).json()
    assert [row["sha256"] for row in answer["texts"]] == shas[:1]
    assert answer["omitted"] == shas[1:]


@pytest.mark.parametrize(
    "target",
    [
        "/api/journal?after=-1",
        "/api/journal?after=x",
        "/api/journal?after=99999999999999999999",
        "/api/journal?limit=1001",
        "/api/journal?limit=%C2%B2",
        "/api/texts?sha256=00",
        "/api/texts?sha256=zz",
        "/api/texts?" + "&".join(["sha256=" + "0" * 64] * 101),
    ],
)
async def test_bad_questions_are_refused(client: httpx.AsyncClient, target: str) -> None:
    """A number out of range and an invalid digest are answered with 422."""
    answer = await client.get(target)
    assert answer.status_code == 422, answer.text
    assert answer.json()["error"]["kind"] == "invalid_request"
