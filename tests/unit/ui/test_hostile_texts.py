"""Names, docs and texts with markup, direction overrides or extreme length: every page shows them as text."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from urllib.parse import quote

import httpx
import pytest
from tests.support.hostile_names import (
    IMAGE,
    MARKUP,
    NAMES,
    REPLICATION,
    SCRIPT,
    fill_registry,
    find_addresses,
    write_files,
)
from tests.support.ui_pages import list_html_templates
from tests.unit.ui.conftest import open_server

from stele.service.replication.documents import Phase, ReplicationStatus, StoredConflict, save_status


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A client of a server with such names everywhere."""
    for server, client in open_server(**write_files(tmp_path_factory.mktemp("hostile"))):
        fill_registry(client)
        text = f"{IMAGE}{SCRIPT}\u202e{'t' * 400}"
        conflicts = (StoredConflict(text, NAMES[5], 1, "id_taken", text),)
        status = ReplicationStatus(
            Phase.FAILING, text, last_error=SCRIPT, last_detail=text, conflicts=conflicts, conflict_count=1
        )
        server.run(save_status(server.registry, REPLICATION, status))
        yield client


@pytest.mark.parametrize("template", list_html_templates())
def test_texts_stay_texts(hostile: httpx.Client, template: str) -> None:
    """No page contains markup from a name or text, and the size of every page is limited."""
    for address in find_addresses(hostile, template):
        answer = hostile.get(address)
        assert answer.status_code in ({200, 404, 422} if "?" in address else {200}), (address[:200], answer.text)
        body = answer.text.replace('<script src="', "")
        for markup in MARKUP:
            assert markup not in body, (address[:200], markup)
        assert len(answer.text) < 2_000_000


def test_names_are_shown_whole(hostile: httpx.Client) -> None:
    """The page of a subject has its unchanged name, in an element that isolates the text direction."""
    for name in NAMES:
        text = hostile.get(f"/ui/subjects/{quote(name, safe='')}").text
        (title,) = re.findall(r"<h1[^>]*><bdi>(.*?)</bdi></h1>", text, re.DOTALL)
        assert html.unescape(title) == name
        twin = hostile.get(f"/ui/subjects/{quote(name, safe='')}/definition.json").json()
        assert twin["head"]["name"] == name


def test_links_lead_to_what_they_name(hostile: httpx.Client) -> None:
    """Each link in the list leads to the page of its subject, whatever the name."""
    rows = hostile.get("/ui/subjects.json").json()["rows"]
    assert len(rows) == len(NAMES) + 1
    for row in rows:
        page = hostile.get(f"/ui{row['path']}/definition.json")
        assert page.status_code == 200, row["path"][:200]
        assert (page.json()["head"]["namespace"], page.json()["head"]["name"]) == (row["namespace"], row["name"])
    listed = hostile.get("/ui/subjects").text
    links = {html.unescape(link) for link in re.findall(r'<a class="title" href="([^"]*)"', listed)}
    assert links == {f"/ui{row['path']}" for row in rows}


def test_error_pages_show_texts(hostile: httpx.Client) -> None:
    """A name in an error is shown as text, too."""
    for name in (SCRIPT, "n" * 10_000):
        answer = hostile.get(f"/ui/subjects/{quote('x' + name, safe='')}")
        assert answer.status_code == 404
        assert "<script>" not in answer.text
    assert json.loads(hostile.get("/ui/subjects/x.json/definition.json").text)["error"]["kind"] == "subject_not_found"
