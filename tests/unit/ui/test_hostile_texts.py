"""Names, docs and texts that want to be markup, turn the line round or have no end: every page shows them as text."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from urllib.parse import quote

import httpx
import pytest
from tests.unit.ui.conftest import open_client, register
from tests.unit.ui.test_pages import list_templates

SCRIPT = "<script>alert(1)</script>"
NAMES = [
    f'"><img src=x onerror=alert(1)>{SCRIPT}',
    "javascript:alert(1)",
    "\u202egnisrever\u202c \u200fright",
    "{{ 7*7 }}{% raw %}",
    "a/b?c#d&e;f=.json",
    "n" * 10_000,
]
MARKUP = ("<script>", "<img", "onerror=alert(1)>", 'href="javascript:')


def make_schema(number: int) -> dict[str, object]:
    """A record whose docs and defaults want to be markup."""
    field = {"name": f"f{number}", "type": "string", "doc": f"{SCRIPT}\u202e" + "d" * 10_000, "default": SCRIPT}
    return {"type": "record", "name": "R", "doc": SCRIPT, "aliases": [f"A{number}"], "fields": [field]}


@pytest.fixture(scope="module")
def hostile() -> Iterator[httpx.Client]:
    """A client of a server with such names everywhere."""
    for client in open_client(ui_environment=SCRIPT):
        for name in NAMES:
            path = quote(name, safe="")
            register(client, path, make_schema(1), metadata={"properties": {SCRIPT: SCRIPT}})
            register(client, path, make_schema(2))
        register(client, "s", make_schema(1), prefix=f"/contexts/.{quote(NAMES[0].replace('/', '-'), safe='')}")
        yield client


def list_addresses(template: str) -> Iterator[str]:
    """The addresses of a page about what has such a name."""
    for name in NAMES:
        yield template.replace("{name}", quote(name, safe=""))
        if "{" not in template:
            yield f"{template}?q={quote(name[:1000], safe='')}"
            return


@pytest.mark.parametrize("template", [each for each in list_templates() if not each.endswith(".json")])
def test_texts_stay_texts(hostile: httpx.Client, template: str) -> None:
    """No page has markup that somebody else wrote, and each with a name shows all of it."""
    for address in list_addresses(template):
        answer = hostile.get(address)
        assert answer.status_code == 200, (address[:200], answer.text[-2000:])
        body = answer.text.replace('<script src="', "")
        for markup in MARKUP:
            assert markup not in body, (address[:200], markup)
        assert len(answer.text) < 2_000_000


def test_names_are_shown_whole(hostile: httpx.Client) -> None:
    """The page of a subject has its name as it is, in an element that keeps its direction to itself."""
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
    """What an error says of a name is text, too."""
    for name in (SCRIPT, "n" * 10_000):
        answer = hostile.get(f"/ui/subjects/{quote('x' + name, safe='')}")
        assert answer.status_code == 404
        assert "<script>" not in answer.text
    assert json.loads(hostile.get("/ui/subjects/x.json/definition.json").text)["error"]["kind"] == "subject_not_found"
