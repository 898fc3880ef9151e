"""Every page: HTML and its JSON twin, its Content-Security-Policy, and the errors of its address."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
from itertools import pairwise

import httpx
import pytest
from tests.support.ui_pages import list_html_templates, list_templates, matches_template
from tests.unit.ui.conftest import open_client, register
from tools.screenshots import PAGES

from stele.service import refusals
from stele.service.subject_index import SubjectIndex

PARAMETERS = {"name": ("orders", ":.team:orders", "payments", "clicks", "gone", "address")}
NAMESPACES = (":.:", ":.team:")
_THINGS = ("{subscription}", "{pipeline}", "{exporter}", "{replication}")
TEMPLATES = [each for each in list_templates() if not any(thing in each for thing in _THINGS)]
"""Pages that exist without a subscription, a pipeline, an exporter or a replication."""


def list_paths(template: str) -> list[str]:
    """Return addresses of a page."""
    if "{" not in template:
        return [template]
    (name,) = re.findall(r"{(\w+)}", template)
    if template.startswith("/ui/levels/"):
        return [template.replace(f"{{{name}}}", value) for value in NAMESPACES]
    return [template.replace(f"{{{name}}}", value) for value in PARAMETERS[name]]


@pytest.mark.parametrize("template", TEMPLATES)
def test_every_page_answers(client: httpx.Client, template: str) -> None:
    """A page is HTML under a strict policy, its twin a JSON object; a page links to its twin."""
    for path in list_paths(template):
        answer = client.get(path)
        assert answer.status_code == 200, (path, answer.text)
        if template.endswith(".json"):
            assert answer.headers["content-type"] == "application/json"
            assert isinstance(json.loads(answer.text), dict)
            continue
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy
        assert "unsafe" not in policy
        (twin,) = re.findall('<link rel="alternate" type="application/json" href="([^"]*)">', answer.text)
        assert client.get(twin).headers["content-type"] == "application/json", twin


@pytest.mark.parametrize("template", [each for each in TEMPLATES if not each.endswith(".json")])
def test_pages_need_no_exception_from_their_policy(client: httpx.Client, template: str) -> None:
    """No page has an inline script, an inline style or a handler, and none names another origin's file."""
    for path in list_paths(template):
        text = client.get(path).text
        assert not re.findall(r"<script(?! src=)", text), path
        assert not re.findall(r"\sstyle=|<style|\son[a-z]+=", text), path
        assert not re.findall(r'(?:src|action|<link[^>]* href)="(?:https?:)?//', text), path
        assert text.count("<h1") == 1, path


def test_no_page_is_forgotten_by_the_tests_in_a_browser() -> None:
    """Each page has a screenshot, so the browser tests include it."""
    forgotten = [
        each for each in list_html_templates() if not any(matches_template(path, each) for path in PAGES.values())
    ]
    assert not forgotten, "add these pages to PAGES in tools/screenshots.py"


def test_errors_have_pages_of_their_own(client: httpx.Client) -> None:
    """A missing page and an invalid query are reported on a page, and in JSON by the twin."""
    for path, status in (
        ("/ui/nothing", 404),
        ("/ui/subjects/nobody", 404),
        ("/ui/subjects?page=0", 422),
        ("/ui/subjects?sort=luck", 422),
        ("/ui/subjects?q=a&q=b", 422),
        ("/ui/subjects?q=" + "x" * 1001, 422),
    ):
        page = client.get(path)
        assert (page.status_code, page.headers["content-type"]) == (status, "text/html; charset=utf-8"), path
        assert 'role="alert"' in page.text
        assert "content-security-policy" in page.headers
    twin = client.get("/ui/subjects.json?page=0")
    assert twin.status_code == 422
    assert json.loads(twin.text)["error"]["kind"] == "invalid_request"


def test_an_empty_registry_shows_commands_that_work() -> None:
    """The dialect of each command to copy accepts it."""
    for client in open_client():
        commands = client.get("/ui/home.json").json()["commands"]
        assert len(commands) == 6
        for each in commands:
            words = shlex.split(each["command"].replace("\\\n", " "))
            address = next(word for word in words if word.startswith("http"))
            options = {word: value for word, value in pairwise(words) if word.startswith("-")}
            headers = dict([options["-H"].split(": ")]) if "-H" in options else {}
            answer = client.request(options.get("-X", "POST"), address, content=options["-d"], headers=headers)
            assert answer.is_success, (each, answer.text)


def test_refusals_of_the_server_are_pages_too() -> None:
    """Too many requests, an unknown host name and another origin are reported on a page, and in JSON by a twin."""
    for client in open_client(requests_per_second=0.001, requests_burst=3):
        foreign = client.get("/ui/subjects", headers={"host": "evil.example"})
        twin = client.get("/ui/subjects.json", headers={"host": "evil.example"})
        assert (twin.status_code, twin.json()["error"]["kind"]) == (403, "foreign_site")
        answers = [client.get(f"/ui/subjects?page={number}") for number in range(1, 6)]
        assert answers[0].status_code == 200
        assert 900 <= int(answers[-1].headers["retry-after"]) <= 1000
        for status, answer in ((403, foreign), (429, answers[-1])):
            assert answer.status_code == status
            assert answer.headers["content-type"] == "text/html; charset=utf-8"
            assert 'role="alert"' in answer.text


def test_a_page_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that takes too long has the status 503 and names the setting of the time limit, in HTML and in JSON."""

    async def wait_for_ever(self: SubjectIndex) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(SubjectIndex, "list_rows", wait_for_ever)
    for client in open_client(request_seconds=1):
        answer = client.get("/ui/subjects")
        assert answer.status_code == 503
        assert "request_seconds" in answer.text
        assert 'role="alert"' in answer.text
        assert answer.headers["retry-after"]


def test_home_counts_what_was_refused_today(monkeypatch: pytest.MonkeyPatch) -> None:
    """The home page has the number of refused registrations, with a link to the page of refusals."""
    monkeypatch.setattr(refusals, "_DAY", 10**12)  # the test may run at midnight
    for client in open_client():
        register(client, "orders", '"int"')
        body = {"schema": '{"type":"record","name":"R","fields":[]}'}
        assert client.post("/subjects/orders/versions", json=body).status_code == 409
        assert client.get("/ui/home.json").json()["refused"] == 1
        assert 'href="/ui/refusals?kind=registration_refused">1</a>' in client.get("/ui").text


def test_rulesets_list_the_advice_of_all_formats(client: httpx.Client) -> None:
    """Each lint rule has its formats, and whether it is on by default."""
    rules = {row["name"]: row for row in client.get("/ui/rulesets.json").json()["advice"]}
    assert rules["ENUM_DEFAULT"]["formats"] == ["avro"]
    assert rules["NAMING"]["is_default"]
    assert not rules["DOC_REQUIRED"]["is_default"]
    assert ">DOC_REQUIRED<" in client.get("/ui/rulesets").text.replace("<wbr>", "")
