"""Pages of exporters and replications: their content, the effect of their forms, and the rights that they need."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest
import pytest_asyncio
from hypothesis import given
from hypothesis import strategies as st
from tests.support.access_world import World
from tests.unit.ui.conftest import JSON, open_client, open_server

from stele.core.access import AccessRule, AccessRules
from stele.server.in_process import InProcessServer
from stele.service.access import AccessControl
from stele.service.registry import Registry
from stele.service.replication.documents import Phase, ReplicationStatus, StoredConflict, save_status
from stele.storage import open_log
from stele.ui.links import split_lines

CONFIG = {"schema.registry.url": "http://127.0.0.1:1", "basic.auth.user.info": "ann:s3cret"}
OTHER = {"name": "main", "url": "http://127.0.0.1:1", "password": "s3cret", "user": "ann", "paused": "true"}
READ_ONLY = "These pages are read-only (setting ui_read_only)."


@pytest.fixture(scope="module")
def running() -> Iterator[tuple[InProcessServer, httpx.Client]]:
    """A server with a public URL that delivers nothing, and its client. Each test uses names of its own."""
    yield from open_server(event_delivery=False, public_url="https://registry.example.org")


@pytest.fixture
def client(running: tuple[InProcessServer, httpx.Client]) -> httpx.Client:
    """The client of that server."""
    return running[1]


def send(client: httpx.Client, path: str, **fields: Any) -> httpx.Response:
    """Return the response to a form that is sent as a browser sends it."""
    return client.post(path, data=fields)


# --- exporters --------------------------------------------------------------------------------------------------------


def test_an_exporter_is_what_the_api_would_have_made(client: httpx.Client) -> None:
    """The form creates an exporter; the page, its twin and the API show the same, without credentials."""
    response = send(
        client,
        "/ui/exporters",
        name="east.1",
        context_type="CUSTOM",
        context="copies",
        subjects="orders-*\r\n\r\n:.team:x \r\n",
        subject_rename_format="east_${subject}",
        config=json.dumps(CONFIG),
    )
    assert (response.status_code, response.headers["location"]) == (303, "/ui/exporters/east.1?done=created")
    known = client.get("/exporters/east.1").json()
    assert known["subjects"] == ["orders-*", ":.team:x "]
    assert (known["contextType"], known["context"]) == ("CUSTOM", "copies")
    row = client.get("/ui/exporters/east.1/state.json").json()["exporter"]
    assert row["config"] == known["config"] == {**CONFIG, "basic.auth.user.info": "[hidden]"}
    for path in ("/ui/exporters", "/ui/exporters.json", "/ui/exporters/east.1", "/ui/events"):
        text = client.get(path).text
        assert "east.1" in text, path
        assert "s3cret" not in text, path


def test_saving_an_exporter_keeps_what_is_hidden(client: httpx.Client) -> None:
    """Sending the unchanged form changes nothing; missing fields keep their values; each field can be changed."""
    path = "/ui/exporters/kept"
    assert client.post("/exporters", json={"name": "kept", "config": CONFIG, "subjects": ["a", "b"]}).is_success
    before = client.get("/exporters/kept").json()
    fields = client.get(f"{path}/state.json").json()["entered"]
    assert send(client, path, **{**fields, "action": "save"}).headers["location"] == f"{path}?done=changed"
    assert send(client, path, action="save").status_code == 303
    assert client.get("/exporters/kept").json() == before
    assert send(client, path, action="save", subjects="c", subject_rename_format="x-${subject}").status_code == 303
    after = client.get("/exporters/kept").json()
    assert (after["subjects"], after["subjectRenameFormat"]) == (["c"], "x-${subject}")
    assert send(client, path, action="save", name="other").status_code == 422, "an exporter keeps its name"


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"name": "a b"}, "name"),
        ({"name": ""}, "name"),
        ({"name": "twice"}, "name"),
        ({"subjects": "a\u0085b"}, "subjects"),
        ({"config": "{"}, ""),
        ({"config": '{"a": 1}'}, ""),
        ({"config": "[" * 5_000}, ""),
        ({"context_type": "OTHER"}, ""),
        ({"context_type": "CUSTOM"}, ""),
        ({"context": "b"}, ""),
        ({"context_type": "CUSTOM", "context": "a:b"}, ""),
        ({"subjects": "s" * 2_000_000}, ""),
    ],
)
def test_what_is_wrong_with_an_exporter_stands_at_its_field(
    client: httpx.Client, fields: dict[str, str], field: str
) -> None:
    """A rejected form is shown again with its values and the reason at the field; nothing is created."""
    client.post("/exporters", json={"name": "twice"})
    known = client.get("/exporters").json()
    body = {"name": "new", **fields}
    answer = client.post("/ui/exporters.json", content=json.dumps(body), headers=JSON)
    assert answer.status_code == 422
    result = answer.json()
    assert [each["field"] for each in result["problems"]] == [field]
    assert {name: result["entered"][name] for name in body} == body
    page = send(client, "/ui/exporters", **body)
    assert page.status_code == 422
    assert 'role="alert"' in page.text
    assert client.get("/exporters").json() == known


def test_exporters_pause_resume_reset_and_end(client: httpx.Client) -> None:
    """Each button has the effect of the API's endpoint."""
    assert client.post("/exporters", json={"name": "e", "subjects": ["none"], "config": CONFIG}).is_success
    path = "/ui/exporters/e"
    assert 'value="pause"' in client.get(path).text
    assert send(client, path, action="pause").headers["location"] == f"{path}?done=paused"
    assert client.get("/exporters/e/status").json()["state"] == "PAUSED"
    page = client.get(f"{path}?done=paused").text
    assert 'value="resume"' in page
    assert "Paused. Nothing is lost" in page
    assert send(client, path, action="resume").status_code == 303
    assert client.get("/exporters/e/status").json()["state"] != "PAUSED"
    assert send(client, path, action="reset").headers["location"] == f"{path}?done=reset"
    assert client.get("/exporters/e/status").json()["offset"] == 0
    assert send(client, path, action="dance").status_code == 422
    assert send(client, path, action="delete").headers["location"] == "/ui/exporters?done=ended"
    assert client.get(path).status_code == client.get("/exporters/e").status_code == 404
    assert send(client, path, action="pause").status_code == send(client, path, action="delete").status_code == 404


# --- replications -----------------------------------------------------------------------------------------------------


def test_a_replication_is_what_the_api_would_have_made(client: httpx.Client) -> None:
    """The form creates a replication; the page, its twin and the API show the same, without credentials."""
    fields = {"subjects": "orders-*\r\n:.team:*", "namespace": "copies", "settings": "all", "poll_seconds": "2.5"}
    response = send(client, "/ui/replications", **OTHER, **fields)
    assert (response.status_code, response.headers.get("location")) == (303, "/ui/replications/main?done=created"), (
        response.text
    )
    known = client.get("/api/replications/main").json()["replication"]
    assert (known["direction"], known["state"], known["settings"]) == ("pull", "paused", "all")
    assert (known["subjects"], known["namespace"], known["poll_seconds"]) == (["orders-*", ":.team:*"], "copies", 2.5)
    assert known["registry"]["password"] == "[hidden]"
    twin = client.get("/ui/replications/main/state.json").json()
    assert twin["overview"]["replication"] == known
    for path in ("/ui/replications", "/ui/replications.json", "/ui/replications/main"):
        text = client.get(path).text
        assert "http://127.0.0.1:1" in text, path
        assert "s3cret" not in text, path


def test_replications_pause_resume_and_end(client: httpx.Client) -> None:
    """Each button has the effect of the API's endpoint."""
    assert send(client, "/ui/replications", **{**OTHER, "name": "r", "direction": "push"}).status_code == 303
    path = "/ui/replications/r"
    assert "~ paused" in client.get(path).text
    assert send(client, path, action="resume").headers["location"] == f"{path}?done=resumed"
    assert client.get("/api/replications/r").json()["replication"]["state"] == "running"
    assert send(client, path, action="pause").headers["location"] == f"{path}?done=paused"
    assert send(client, path, action="dance").status_code == 422
    assert send(client, path, action="delete").headers["location"] == "/ui/replications?done=ended"
    assert client.get(path).status_code == client.get("/api/replications/r").status_code == 404
    assert send(client, path, action="pause").status_code == send(client, path, action="delete").status_code == 404


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"name": "a/b"}, "name"),
        ({"name": "again"}, "name"),
        ({"url": "ftp://x"}, ""),
        ({"url": "http://ann:s3cret@x"}, ""),
        ({"direction": "sideways"}, ""),
        ({"kind": "nobody"}, ""),
        ({"kind": "cncf", "direction": "push"}, ""),
        ({"subjects": "\r\n"}, ""),
        ({"rename": "same"}, ""),
        ({"poll_seconds": "often"}, ""),
        ({"poll_seconds": "nan"}, ""),
        ({"settings": "mine"}, ""),
    ],
)
def test_what_is_wrong_with_a_replication_is_said(client: httpx.Client, fields: dict[str, str], field: str) -> None:
    """A rejected form is shown again with its values, but without credentials; nothing is created."""
    send(client, "/ui/replications", **{**OTHER, "name": "again"})
    known = client.get("/api/replications").json()["replications"]
    body = {**OTHER, "name": "new", **fields}
    answer = client.post("/ui/replications.json", content=json.dumps(body), headers=JSON)
    assert answer.status_code == 422
    result = answer.json()
    assert [each["field"] for each in result["problems"]] == [field]
    assert {name: result["entered"][name] for name in fields} == fields
    page = send(client, "/ui/replications", **body)
    assert (page.status_code, 'role="alert"' in page.text, 'value="s3cret"' in page.text) == (422, True, False)
    assert len(client.get("/api/replications").json()["replications"]) == len(known)


def test_conflicts_stand_by_subject_and_reason_with_their_fix(
    running: tuple[InProcessServer, httpx.Client],
) -> None:
    """Versions with one reason share a row; unknown codes of later releases are shown unchanged."""
    server, client = running
    send(client, "/ui/replications", **{**OTHER, "name": "conflicting"})
    rows = [StoredConflict("team", "orders", number, "number_taken", "another one") for number in (1, 2)]
    rows += [StoredConflict("", "", 0, "settings_differ", "theirs"), StoredConflict("", "x", 3, "new_code", "because")]
    status = ReplicationStatus(Phase.FOLLOWING, "9", registered=7, conflicts=tuple(rows), conflict_count=104)
    server.run(save_status(server.registry, "conflicting", status))
    conflicts = client.get("/ui/replications/conflicting/state.json").json()["conflicts"]
    assert [(row["name"], row["versions"], row["code"]) for row in conflicts] == [
        (":.team:orders", [1, 2], "number_taken"),
        ("", [0], "settings_differ"),
        ("x", [3], "new_code"),
    ]
    text = client.get("/ui/replications/conflicting").text
    for words in ("versions 1, 2", "the whole registry", "new code", "Delete that version at the target.", "100 more"):
        assert words in text, words
    assert "✗ 104" in client.get("/ui/replications").text


def test_without_a_public_url_no_replication_begins() -> None:
    """Without a public URL, the page states what is missing, offers no button, and rejects the form."""
    for client in open_client():
        page = client.get("/ui/replications")
        assert "This server has no public_url" in page.text
        assert '<button type="button" disabled' in page.text
        refused = send(client, "/ui/replications", **OTHER)
        assert (refused.status_code, "This server has no public_url" in refused.text) == (422, True)
        assert client.get("/api/replications").json()["replications"] == []


# --- whom they refuse -------------------------------------------------------------------------------------------------


def test_read_only_pages_show_everything_and_change_nothing() -> None:
    """Every button is disabled with the reason, although one right permits both view and change; forms are rejected."""
    for client in open_client(ui_read_only=True, public_url="https://registry.example.org"):
        assert client.post("/exporters", json={"name": "e", "subjects": ["none"]}).is_success
        body = {"name": "r", "direction": "push", "registry": {"url": "http://127.0.0.1:1"}, "state": "paused"}
        assert client.post("/api/replications", json=body).is_success
        for path in ("/ui/exporters", "/ui/exporters/e", "/ui/replications", "/ui/replications/r"):
            main = client.get(path).text.partition("<main")[2].partition("</main>")[0]
            assert READ_ONLY in main, path
            assert '<button type="submit"' not in main, path
            for action in ("delete", "pause", "save"):
                assert send(client, path, action=action, name="new", url="http://x").status_code == 403, path
        assert client.get("/exporters").json() == ["e"]


@pytest_asyncio.fixture
async def world() -> AsyncIterator[World]:
    """A registry with a user who may manage exporters and export, and a user who may only read."""
    registry = await Registry.open(await open_log("memory:"))
    access_world = World(registry, public_url="https://registry.example.org")
    rules = [AccessRule("user:carrier", ("manage-exporters", "export")), AccessRule("user:reader", ("reader",))]
    registry.access = AccessControl(AccessRules(rules, default_allow=False))
    yield access_world
    await registry.close()


async def test_missing_rights_are_named(world: World) -> None:
    """The pages name a missing right: of a user who may not import, and of a user who may not manage exporters."""
    page = (await world.ask("carrier", "GET", "/ui/replications.json")).json()
    assert (page["pull_refusal"], page["push_refusal"]) == ("You need the right `import` on the registry.", "")
    assert page["entered"]["direction"] == "push", "what he may do is chosen"
    text = (await world.ask("carrier", "GET", "/ui/replications")).text
    assert 'value="pull" disabled' in text
    assert "You need the right import on the registry." in text
    form = b"name=main&url=http://127.0.0.1:1&paused=true&direction="
    kind = {"content-type": "application/x-www-form-urlencoded"}
    assert (await world.ask("carrier", "POST", "/ui/replications", form + b"pull", **kind)).status_code == 403
    assert (await world.ask("carrier", "POST", "/ui/replications", form + b"push", **kind)).status_code == 303
    for path in ("/ui/exporters", "/ui/replications", "/ui/replications/main", "/ui/exporters/nobody"):
        assert (await world.ask("reader", "GET", path)).status_code == 403, path
    assert "You need the right manage-exporters on the registry." in (await world.ask("reader", "GET", "/ui")).text


async def test_an_exporter_belongs_to_who_saved_it_last(world: World) -> None:
    """The user who saves an exporter is its owner, as in the API."""
    kind = {"content-type": "application/x-www-form-urlencoded"}
    assert (await world.ask("carrier", "POST", "/ui/exporters", b"name=mine", **kind)).status_code == 303
    state = (await world.ask("carrier", "GET", "/ui/exporters/mine/state.json")).json()
    assert state["exporter"]["owner"] == "carrier"


@given(st.lists(st.text(st.characters(exclude_characters="\r\n")).filter(str.strip)))
def test_lines_of_a_field_come_back(lines: list[str]) -> None:
    """Lines with any characters and either line end are split as they were joined."""
    for end in ("\n", "\r\n", "\n\n"):
        assert split_lines(end.join(lines)) == lines
