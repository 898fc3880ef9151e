"""Pages and rights: missing rights are named, and hidden subjects appear nowhere."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from tests.support.access_world import World

from stele.core.access import AccessRule, AccessRules, ResourceType
from stele.service.access import AccessControl
from stele.service.registry import Registry
from stele.storage import open_log
from stele.ui.work import journal_feed

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world() -> AsyncIterator[World]:
    """A registry in which a reader may read all but one subject, a lister list it, and a writer register."""
    registry = await Registry.open(await open_log("memory:"))
    access_world = World(registry)
    text = json.dumps({"type": "record", "name": "Salary", "fields": [{"name": "amount", "type": "long"}]})
    for name in ("orders", "salaries"):
        await access_world.ask("admin", "POST", f"/subjects/{name}/versions", {"schema": text.replace("Salary", name)})
    rules = [
        AccessRule("user:admin", ("admin",)),
        AccessRule("user:reader", ("reader",), resource_type=ResourceType.SUBJECT, name="orders"),
        AccessRule("user:lister", ("list",)),
        AccessRule("user:writer", ("writer",)),
    ]
    registry.access = AccessControl(AccessRules(rules, default_allow=False))
    yield access_world
    await registry.close()


async def test_hidden_subjects_are_nowhere(world: World) -> None:
    """Lists, searches and counts leave out what the caller may not list; its page is refused."""
    listed = (await world.ask("reader", "GET", "/ui/subjects.json")).json()
    assert [row["name"] for row in listed["rows"]] == ["orders"]
    assert listed["formats"] == [{"value": "avro", "count": 1}]
    assert (await world.ask("reader", "GET", "/ui/home.json")).json()["size"]["subjects"] == 1
    fields = (await world.ask("reader", "GET", "/ui/subjects.json?q=amount&by=field")).json()["fields"]
    assert [hit["subject"] for hit in fields["hits"]] == ["orders"]
    texts = (await world.ask("reader", "GET", "/ui/subjects.json?q=amount&by=text")).json()["texts"]
    assert [hit["subject"] for hit in texts["hits"]] == ["orders"]
    assert (await world.ask("reader", "GET", "/ui/subjects.json?q=2")).json()["id_hits"] == []
    refused = await world.ask("reader", "GET", "/ui/subjects/salaries")
    assert refused.status_code == 403
    assert "read" in refused.text
    assert (await world.ask("", "GET", "/ui/subjects/orders")).status_code == 401


async def test_the_feed_of_the_journal_tells_what_may_be_read(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream has only rows that its caller may read; a caller who may read nothing gets no rows."""
    monkeypatch.setattr(journal_feed, "_SHARE_OF_LIMIT", 0.02)
    feed = await world.ask("reader", "GET", "/ui/journal/feed?after=0")
    assert feed.status_code == 200
    assert "orders" in feed.text
    assert "salaries" not in feed.text
    assert "data-seq" not in (await world.ask("", "GET", "/ui/journal/feed?after=0")).text


async def test_who_may_only_list_learns_names_alone(world: World) -> None:
    """Format, policy, id and numbers of a subject need the right to read it."""
    rows = (await world.ask("lister", "GET", "/ui/subjects.json")).json()["rows"]
    assert [row["name"] for row in rows] == ["orders", "salaries"]
    for row in rows:
        assert (row["format"], row["policy"], row["schema_id"], row["versions"], row["at"]) == ("", "", 0, 0, 0)
    assert (await world.ask("lister", "GET", "/ui/subjects.json?q=amount&by=field")).json()["fields"]["hits"] == []


async def test_disabled_controls_name_the_missing_right(world: World) -> None:
    """A caller without the right to register sees a disabled button with the missing right; others get a link."""
    page = await world.ask("reader", "GET", "/ui/subjects/orders")
    assert page.status_code == 200
    assert "You need the right register on the subject orders." in page.text
    assert '<button type="button" disabled' in page.text
    controls = (await world.ask("reader", "GET", "/ui/subjects/orders/definition.json")).json()["head"]["controls"]
    assert [control["refusal"] != "" for control in controls] == [True, True, True]
    allowed = (await world.ask("writer", "GET", "/ui/subjects/orders/definition.json")).json()["head"]["controls"]
    assert [control["refusal"] == "" for control in allowed] == [True, False, False]
    assert "You need the right manage-access on the registry." in page.text
    assert 'href="/ui/access"' in (await world.ask("admin", "GET", "/ui")).text


async def test_modes_that_forbid_writing_disable_controls(world: World) -> None:
    """In a read-only mode, the buttons to register and delete are disabled; the policy can still be set."""
    assert (await world.ask("admin", "PUT", "/mode/orders", {"mode": "READONLY"})).is_success
    page = (await world.ask("admin", "GET", "/ui/subjects/orders/definition.json")).json()
    assert page["head"]["mode"] == "READONLY"
    refusals = [control["refusal"] for control in page["head"]["controls"]]
    assert refusals == ["It is in the mode READONLY.", "", "It is in the mode READONLY."]
    assert (await world.ask("admin", "DELETE", "/mode/orders")).is_success
