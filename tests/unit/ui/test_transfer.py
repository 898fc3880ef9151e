"""Import and export on the page: a plan that writes nothing, then the import of exactly that plan, or an error."""

from __future__ import annotations

import gzip
import json
import re
from base64 import b64decode
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from tests.support.access_world import World
from tests.unit.ui.conftest import ADDRESS, JSON, make_order, open_client, open_server, register

from stele.core import zstd
from stele.core.access import AccessRule, AccessRules
from stele.migrate.archive import write_archive
from stele.service.access import AccessControl
from stele.service.registry import Registry
from stele.storage import open_log
from stele.ui.work import dumps, version_import

REFERENCE = {"name": "org.shop.Address", "subject": "address", "version": 1}
ORDER = make_order({"name": "address", "type": "org.shop.Address"})


@pytest.fixture(scope="module")
def dump() -> bytes:
    """A dump of a registry with a reference, a namespace, a soft-deleted version and a gap in its ids."""
    for client in open_client():
        register(client, "gone", '"string"')
        client.delete("/subjects/gone")
        client.delete("/subjects/gone?permanent=true")
        register(client, "address", ADDRESS)
        register(client, "orders", ORDER, references=[REFERENCE])
        register(client, "orders", make_order())
        client.delete("/subjects/orders/versions/2")
        register(client, "orders", make_order(), prefix="/contexts/.team")
        return client.get("/ui/transfer/download").content
    raise AssertionError


@pytest.fixture
def server() -> Iterator[httpx.Client]:
    """A client of an empty server."""
    yield from open_client()


def send(client: httpx.Client, path: str, **fields: Any) -> Any:
    """Return what the JSON twin answers to a form."""
    return client.post(f"/ui/{path}.json", content=json.dumps(fields), headers=JSON).json()


def carry_out(client: httpx.Client, plan: dict[str, Any]) -> Any:
    """Return the result of a plan that is carried out."""
    return send(client, "transfer/import", plan=plan["plan"], content=plan["content"])


def list_versions(client: httpx.Client) -> list[tuple[str, int, int]]:
    """Return every version of a registry, including deleted ones."""
    rows = client.get("/schemas?deleted=true&subjectPrefix=:*:").json()
    return sorted((row["subject"], row["version"], row["id"]) for row in rows)


def test_a_plan_writes_nothing_and_is_carried_out_as_shown(server: httpx.Client, dump: bytes) -> None:
    """The page sends the plan with the file again; versions keep numbers, ids and state, and modes are as before."""
    page = server.post("/ui/transfer", files={"dump": ("schemas.dump", dump)})
    assert page.status_code == 200
    assert list_versions(server) == []
    fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page.text))
    assert fields.keys() == {"plan", "content"}
    assert "Import 4 versions" in page.text
    sent = {name: (None, value) for name, value in fields.items()}
    done = server.post("/ui/transfer/import", files=sent)
    assert done.status_code == 200, done.text
    assert "What was imported" in done.text
    assert list_versions(server) == [(":.team:orders", 1, 1), ("address", 1, 2), ("orders", 1, 3), ("orders", 2, 4)]
    assert server.get("/subjects/orders/versions/1").json()["references"] == [REFERENCE]
    assert server.get("/subjects/orders/versions").json() == [1]
    assert server.get("/mode").json() == {"mode": "READWRITE"}
    assert server.get("/mode/orders").status_code == 404
    again = send(server, "transfer", text=dump.decode())
    assert (again["new"], again["same"], again["conflicts"], again["plan"], again["content"]) == (0, 4, 0, "", "")


def test_another_plan_than_the_one_that_was_shown_is_not_carried_out(server: httpx.Client, dump: bytes) -> None:
    """If the registry has changed since the plan was shown, nothing is written and the page reports it."""
    plan = send(server, "transfer", text=dump.decode())
    assert plan["new"] == 4
    assert (
        "Look again" in send(server, "transfer/import", plan="other", content=plan["content"])["problems"][0]["message"]
    )
    register(server, "orders", '"int"', prefix="/contexts/.team")
    stale = carry_out(server, plan)
    assert "contradicts" in stale["problems"][0]["message"]
    assert stale["outcome"] is None
    assert stale["conflicts"] > 0
    assert [row[0] for row in list_versions(server)] == [":.team:orders"]


def test_modes_of_subjects_come_back(server: httpx.Client, dump: bytes) -> None:
    """A subject's own mode is set again after the import; versions of a subject that takes none are refused."""
    for mode, path in (("READWRITE", "orders"), ("READONLY", "address")):
        assert server.put(f"/mode/{path}", content=json.dumps({"mode": mode}), headers=JSON).status_code == 200
    outcome = carry_out(server, send(server, "transfer", text=dump.decode()))
    rows = {(row["name"], row["version"]): row["what"] for row in outcome["outcome"]["rows"]}
    assert rows["address", 1] == "refused"
    assert rows[":.team:orders", 1] == "written"
    assert outcome["problems"][0]["message"] == "2 of 4 versions were not written."
    assert server.get("/mode/orders").json() == {"mode": "READWRITE"}
    assert server.get("/mode/address").json() == {"mode": "READONLY"}


def test_an_import_ends_in_time(server: httpx.Client, dump: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the time limit of a request, the import stops, the page reports it, and the next plan has the rest."""
    monkeypatch.setattr(version_import, "_SHARE_OF_LIMIT", 0.0)
    outcome = carry_out(server, send(server, "transfer", text=dump.decode()))
    assert "time" in outcome["outcome"]["stopped"]
    assert outcome["outcome"]["left"] == 4
    monkeypatch.setattr(version_import, "_SHARE_OF_LIMIT", 0.7)
    assert carry_out(server, send(server, "transfer", text=dump.decode()))["outcome"]["written"] == 4


def test_packed_files_are_read(server: httpx.Client, dump: bytes) -> None:
    """A dump may be compressed by gzip or zstd; a plan carries it compressed."""
    plans = [
        json.loads(server.post("/ui/transfer.json", files={"dump": ("x", data)}).text)
        for data in (dump, gzip.compress(dump), zstd.compress(dump))
    ]
    assert len({plan["plan"] for plan in plans}) == 1
    assert gzip.decompress(b64decode(plans[0]["content"])) == dump


def test_an_archive_is_imported(server: httpx.Client, tmp_path: Path) -> None:
    """An archive of `stele export` can be imported, too; a note names the parts that pages leave out."""
    path = tmp_path / "registry.stele.zst"
    for other, client in open_server():
        register(client, "orders", make_order())
        client.put("/config/orders", content='{"compatibility": "NONE"}', headers=JSON)
        other.run(write_archive(other.registry._log, path))
    files = {"dump": ("registry.stele.zst", path.read_bytes())}
    plan = json.loads(server.post("/ui/transfer.json", files=files).text)
    assert (plan["new"], plan["conflicts"]) == (1, 0)
    assert "stele import" in plan["notes"][0]
    assert carry_out(server, plan)["outcome"]["written"] == 1
    assert list_versions(server) == [("orders", 1, 1)]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"  \n",
        b"{nonsense",
        b"\x00\xff\xfe",
        b"\x1f\x8b\x08broken",
        b"\x28\xb5\x2f\xfdbroken",
        b'{"archive":',
        b'{"archive":1}\n{}',
        gzip.compress(b'{"archive":', mtime=0)[:-6],
        zstd.compress(b'{"archive":"stele"}\n<script>alert(1)</script>'),
    ],
)
def test_what_is_no_dump_is_answered_as_text_on_the_page(server: httpx.Client, data: bytes) -> None:
    """A damaged or unrelated file is reported at the field as text, without a plan."""
    for path in ("transfer", "transfer/import"):
        answer = server.post(f"/ui/{path}", files={"dump": ("x", data)})
        assert answer.status_code == 422, answer.text
        assert 'id="problem-dump"' in answer.text
        assert "<script>alert" not in answer.text
        assert "The plan" not in answer.text
    assert send(server, "transfer/import", content="no base64!", plan="x")["problems"]


def test_sizes_are_bounded(server: httpx.Client, dump: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file with too many versions or too many unpacked bytes is rejected; the error names the alternative."""
    monkeypatch.setattr(dumps, "MOST_UNPACKED", 1000)
    for pack in (gzip.compress, zstd.compress):
        (problem,) = json.loads(server.post("/ui/transfer.json", files={"dump": ("x", pack(bytes(2000)))}).text)[
            "problems"
        ]
        assert "stele import" in problem["message"]
    monkeypatch.setattr(dumps, "MOST_VERSIONS", 3)
    (problem,) = send(server, "transfer", text=dump.decode())["problems"]
    assert "pages can take 3" in problem["message"]


def test_a_file_that_no_form_can_carry_names_the_command(dump: bytes) -> None:
    """A plan that is longer than a request may be names the command that imports it; a longer request is rejected."""
    for client in open_client(max_request_bytes=dumps.MOST_UNPACKED // 1024):
        result = send(client, "transfer", text=dump.decode())
        assert result["new"] == 4
        assert result["plan"]
        assert result["content"] == ""
        page = client.post("/ui/transfer", files={"dump": ("x", dump)}).text
        assert "too long to be imported from here" in page
        assert client.post("/ui/transfer", files={"dump": ("x", bytes(70_000))}).status_code == 413


def test_read_only_pages_plan_and_import_nothing(dump: bytes) -> None:
    """Read-only pages show the plan with a disabled button and its reason; an import is rejected."""
    for client in open_client(ui_read_only=True):
        plan = send(client, "transfer", text=dump.decode())
        assert plan["new"] == 4
        assert "read-only" in plan["import_refusal"]
        refused = client.post("/ui/transfer/import.json", content=json.dumps(plan | {"rows": []}), headers=JSON)
        assert refused.status_code == 403
        assert list_versions(client) == []


# --- rights -----------------------------------------------------------------------------------------------------------

RIGHTS = ("register", "import", "change-policy", "force", "delete")


@pytest_asyncio.fixture
async def world() -> AsyncIterator[World]:
    """An empty registry with callers who lack one right each, and one who lacks none."""
    registry = await Registry.open(await open_log("memory:"))
    rules = [
        AccessRule(f"user:no-{missing}", tuple(right for right in ("read", *RIGHTS) if right != missing))
        for missing in RIGHTS
    ]
    rules += [AccessRule("user:ann", ("read", *RIGHTS)), AccessRule("user:reader", ("reader",))]
    registry.access = AccessControl(AccessRules(rules, default_allow=False))
    yield World(registry)
    await registry.close()


@pytest.mark.asyncio
async def test_every_right_is_asked_for(world: World, dump: bytes) -> None:
    """A caller who lacks one right sees its name, and an import by that caller writes nothing."""
    body = {"text": dump.decode()}
    for right in RIGHTS:
        caller = f"no-{right}"
        plan = (await world.ask(caller, "POST", "/ui/transfer.json", body)).json()
        assert f"`{right}`" in plan["import_refusal"], right
        page = await world.ask(caller, "POST", "/ui/transfer", body, accept="text/html")
        assert f"You need the right {right} on the subject" in page.text
        sent = {"plan": plan["plan"], "content": plan["content"]}
        refused = await world.ask(caller, "POST", "/ui/transfer/import.json", sent)
        assert refused.status_code == 403, right
        assert not any(namespace.subjects for namespace in world.registry.state.namespaces.values())
    assert (await world.ask("", "POST", "/ui/transfer.json", body)).status_code == 401
    plan = (await world.ask("ann", "POST", "/ui/transfer.json", body)).json()
    assert plan["import_refusal"] == ""
    done = await world.ask(
        "ann", "POST", "/ui/transfer/import.json", {"plan": plan["plan"], "content": plan["content"]}
    )
    assert done.json()["outcome"]["written"] == 4
