"""Main tasks of users in a browser: propose, correct and register; decode; delete and recover; find a refusal."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect
from tests.support.server_process import serving
from tests.ui.test_stories import open_page
from tests.unit.server.authentication.test_password_file import bcrypt_line
from tools.screenshots import NARROW, WIDE, fill_registry

pytestmark = [pytest.mark.servers, pytest.mark.timeout(120)]
SUBJECT = "orders-value"


@pytest.fixture(scope="module")
def own_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server that these tests change, each a subject of its own."""
    with serving("--store", "memory:", folder=tmp_path_factory.mktemp("work")) as running:
        with httpx.Client(base_url=running.url, timeout=60) as client:
            fill_registry(client)
        yield running.url


def make_subjects(url: str, name: str) -> None:
    """Register a subject, whose policy accepts anything, and another one that refers to it."""
    kept = {"type": "record", "name": "Place", "namespace": name, "fields": [{"name": "city", "type": "string"}]}
    user = {"type": "record", "name": "Trip", "namespace": name, "fields": [{"name": "to", "type": f"{name}.Place"}]}
    with httpx.Client(base_url=url, timeout=60) as client:
        client.post(f"/subjects/{name}/versions", json={"schema": json.dumps(kept)}).raise_for_status()
        references = [{"name": f"{name}.Place", "subject": name, "version": 1}]
        body = {"schema": json.dumps(user), "references": references}
        client.post(f"/subjects/{name}-trips/versions", json=body).raise_for_status()


def write_schema(page: Page, text: str, *, scripts: bool = True) -> None:
    """Replace the text in the editor, or in the textarea without scripts."""
    if scripts:
        page.locator(".cm-content").first.click()
        page.keyboard.press("Control+a")
        page.keyboard.insert_text(text)
    else:
        page.locator("textarea[name=schema]").fill(text)


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no-scripts"])
@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_propose_a_change_see_who_breaks_mend_it_register(
    browser: Browser, own_url: str, width: int, scripts: bool
) -> None:
    """The check shows the reason, the fix and the referring schema that breaks; a corrected schema is registered."""
    name = f"place{width}{'s' if scripts else 'n'}"
    make_subjects(own_url, name)
    fields = [{"name": "city", "type": "int"}]
    record = {"type": "record", "name": "Place", "namespace": name, "fields": fields}
    with open_page(browser, width=width, scripts=scripts) as page:
        page.goto(f"{own_url}/ui/subjects/{name}")
        page.get_by_role("link", name="New version").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text(name)
        expect(page.get_by_role("button", name="Register", exact=True)).to_be_disabled()
        write_schema(page, json.dumps(record), scripts=scripts)
        page.get_by_role("button", name="Check", exact=True).click()
        result = page.locator("#result")
        expect(result).to_contain_text("would refuse it")
        expect(result).to_contain_text("Fix:")
        affected = page.get_by_role("region", name="Who refers to it")
        expect(affected).to_contain_text(f"{name}-trips")
        expect(affected).to_contain_text("breaks")
        fields[:] = [{"name": "city", "type": "string"}, {"name": "zip", "type": "string", "default": ""}]
        write_schema(page, json.dumps(record, indent=2), scripts=scripts)
        page.get_by_role("button", name="Check", exact=True).click()
        expect(page.locator("#result")).to_contain_text("takes it as version 2")
        expect(page.get_by_role("region", name="Who refers to it")).to_contain_text("stays compatible")
        page.get_by_role("button", name="Register", exact=True).click()
        page.wait_for_url(f"**/ui/subjects/{name}?version=2&done=registered")
        expect(page.get_by_role("status")).to_contain_text("The version is registered.")
        page.reload()
        expect(page.locator("pre.schema")).to_contain_text("zip")


def test_a_syntax_error_stands_at_its_line(browser: Browser, own_url: str) -> None:
    """The message names the line, and the editor marks it without violating the policy of the page."""
    with open_page(browser) as page:
        wrong: list[str] = []
        page.on("console", lambda message: wrong.append(message.text) if "policy" in message.text.lower() else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto(f"{own_url}/ui/register")
        page.get_by_label("Subject", exact=True).fill("broken")
        write_schema(page, '{\n  "type": "record",\n  "name": }')
        page.get_by_role("button", name="Check", exact=True).click()
        expect(page.locator("#problem-schema")).to_contain_text("Line 3")
        expect(page.locator(".cm-problem")).to_contain_text('"name": }')
        assert not wrong


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no-scripts"])
def test_decode_these_bytes(browser: Browser, own_url: str, scripts: bool) -> None:
    """With the keyboard alone, a user can paste bytes, send them, and read their schema and their record."""
    with open_page(browser, scripts=scripts, width=NARROW) as page:
        page.goto(f"{own_url}/ui/decode")
        area = page.get_by_label("Bytes")
        area.focus()
        page.keyboard.insert_text("00 00 00 00 02 0e 06 61 6e 6e")
        for _ in range(4):
            page.keyboard.press("Tab")
        expect(page.get_by_role("button", name="Decode")).to_be_focused()
        page.keyboard.press("Enter")
        reading = page.locator(".reading").first
        expect(reading).to_contain_text("Confluent")
        expect(reading).to_contain_text(f"{SUBJECT} version 1")
        expect(reading.get_by_label("The record")).to_contain_text("ann")


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no-scripts"])
def test_may_i_delete_this_and_recover_it(browser: Browser, own_url: str, scripts: bool) -> None:
    """A referring schema prevents a deletion; without it, the subject can be deleted and recovered with its id."""
    name = f"depot{'s' if scripts else 'n'}"
    make_subjects(own_url, name)
    with open_page(browser, scripts=scripts) as page:
        page.goto(f"{own_url}/ui/subjects/{name}")
        page.get_by_role("link", name="Delete", exact=True).click()
        expect(page.locator("main")).to_contain_text("cannot be deleted now")
        expect(page.get_by_role("button", name="Delete")).to_be_disabled()
        page.locator("main").get_by_role("link", name=f"{name}-trips").click()
        page.get_by_role("link", name="Delete", exact=True).click()
        page.get_by_role("button", name="Delete", exact=True).click()
        page.goto(f"{own_url}/ui/subjects/{name}/delete")
        expect(page.locator("main")).to_contain_text("Nothing stands against it")
        page.get_by_role("button", name="Delete", exact=True).click()
        page.wait_for_url("**/versions?done=deleted")
        page.locator("main").get_by_role("link", name="Recover").click()
        page.get_by_role("button", name="Recover").click()
        page.wait_for_url("**done=recovered")
        expect(page.get_by_role("status")).to_contain_text("Recovered")


def test_a_policy_is_tried_before_it_is_set(browser: Browser, own_url: str) -> None:
    """The preview has the verdicts on the last versions; saving leads back to the page with the new policy in force."""
    with open_page(browser) as page:
        page.goto(f"{own_url}/ui/subjects/{SUBJECT}/policy")
        page.get_by_label("FULL_TRANSITIVE").check()
        page.get_by_role("button", name="Preview").click()
        expect(page.get_by_role("region", name="Preview").locator("tbody tr")).to_have_count(5)
        expect(page.get_by_label("FULL_TRANSITIVE")).to_be_checked()
        page.get_by_role("button", name="Save policy").click()
        page.wait_for_url("**/policy?done=policy")
        expect(page.locator(".lead")).to_contain_text("FULL_TRANSITIVE, set by this subject")


def test_the_journal_is_live(browser: Browser, own_url: str) -> None:
    """Versions registered while the page is open appear at the top once, without a reload; filters apply."""
    sending = httpx.Client(base_url=own_url, timeout=60)
    with open_page(browser) as page, open_page(browser) as filtered, sending as client:
        wrong: list[str] = []
        for each in (page, filtered):
            each.on("pageerror", lambda error: wrong.append(str(error)))
            each.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
        page.goto(f"{own_url}/ui/journal?kind=registered")
        filtered.goto(f"{own_url}/ui/journal?subject=nothing-like-it")
        page.evaluate("window.isSamePage = true")
        rows = page.locator("#feed tbody tr")
        before = rows.count()
        for name in ("just-now", "a-moment-later"):
            client.post(f"/subjects/{name}/versions", json={"schema": '"int"'}).raise_for_status()
            expect(rows.first).to_contain_text(name, timeout=60_000)
        expect(rows).to_have_count(before + 2)
        expect(rows.nth(1)).to_contain_text("just-now")
        assert page.evaluate("window.isSamePage")
        client.post("/subjects/nothing-like-it-yet/versions", json={"schema": '"int"'}).raise_for_status()
        expect(filtered.locator("#feed tbody tr").first).to_contain_text("nothing-like-it-yet", timeout=60_000)
        expect(filtered.locator("#feed .empty")).to_have_count(0)
        expect(filtered.locator("#feed tbody")).not_to_contain_text("just-now")
        expect(rows.first).to_contain_text("nothing-like-it-yet", timeout=60_000)
        rows.first.get_by_role("link").click()
        page.wait_for_url("**/ui/subjects/nothing-like-it-yet")
        assert not wrong


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no-scripts"])
def test_an_archive_is_imported_from_the_page(browser: Browser, own_url: str, tmp_path: Path, scripts: bool) -> None:
    """After the import of an archive, the versions have their ids, and a second plan is empty."""
    archive, store = tmp_path / "shop.stele.zst", f"sqlite:///{tmp_path / 'other.db'}"
    name, schema_id = ("moved", 4711) if scripts else ("moved-without-scripts", 4712)
    with serving("--store", store, folder=tmp_path) as other, httpx.Client(base_url=other.url, timeout=60) as client:
        mode = {"mode": "IMPORT"}
        client.put(f"/mode/{name}", json=mode).raise_for_status()
        schema = {"type": "fixed", "name": name.replace("-", "_"), "size": 4}
        body = {"schema": json.dumps(schema), "version": 7, "id": schema_id}
        client.post(f"/subjects/{name}/versions", json=body).raise_for_status()
    command = [sys.executable, "-m", "stele.cli", "export", str(archive), "--store", store]
    subprocess.run(command, check=True, capture_output=True)
    with open_page(browser, scripts=scripts, width=WIDE if scripts else NARROW) as page:
        page.goto(f"{own_url}/ui/transfer")
        page.get_by_label("Dump or archive").set_input_files(archive)
        page.get_by_role("button", name="Compare").click()
        plan = page.get_by_role("status").filter(has_text="The plan")
        expect(plan).to_contain_text(name)
        assert httpx.get(f"{own_url}/subjects/{name}/versions", timeout=60).status_code == 404
        plan.get_by_role("button", name="Import 1 version").click()
        expect(page.get_by_role("status")).to_contain_text("What was imported")
        expect(page.get_by_role("region", name="Versions of the import")).to_contain_text(name)
        imported = httpx.get(f"{own_url}/subjects/{name}/versions/7", timeout=60).json()
        assert imported["id"] == schema_id
        page.get_by_label("Dump or archive").set_input_files(archive)
        page.get_by_role("button", name="Compare").click()
        expect(page.get_by_role("status")).to_contain_text("is here already")


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no-scripts"])
def test_why_was_this_refused_yesterday(browser: Browser, tmp_path: Path, scripts: bool) -> None:
    """After the login, the page of refusals names the caller, the request, and the rule or the missing right."""
    (tmp_path / "users").write_text(bcrypt_line("ann", "one") + bcrypt_line("bob", "two"))
    settings = {
        "STELE_AUTHENTICATION": "basic",
        "STELE_PASSWORD_FILE": str(tmp_path / "users"),
        "STELE_ACCESS": "deny",
        "STELE_SUPER_USERS": "user:ann",
        "STELE_AUDIT_FILE": str(tmp_path / "audit.jsonl"),
    }
    with serving("--store", "memory:", folder=tmp_path, environ=settings) as running:
        body = {"schema": '"int"'}
        refused = httpx.post(f"{running.url}/subjects/salaries/versions", json=body, auth=("bob", "two"), timeout=60)
        assert refused.status_code == 403, refused.text
        for sent, status in ((body, 200), ({"schema": '"bytes"'}, 409)):
            response = httpx.post(f"{running.url}/subjects/orders/versions", json=sent, auth=("ann", "one"), timeout=60)
            assert response.status_code == status, response.text
        context = browser.new_context(java_script_enabled=scripts)
        context.set_default_timeout(90_000)
        page = context.new_page()
        page.goto(f"{running.url}/ui")
        page.get_by_label("User").fill("ann")
        page.get_by_label("Password").fill("wrong")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("The credentials are not valid")
        page.get_by_label("Password").fill("one")
        page.keyboard.press("Enter")
        page.get_by_role("link", name="Refusals").click()
        expect(page.locator("main tbody tr").filter(has_text="orders")).to_contain_text("cannot be read as bytes")
        page.get_by_label("Search", exact=True).last.fill("salaries")
        page.get_by_role("button", name="Apply").click()
        row = page.locator("main tbody tr").first
        expect(row).to_contain_text("bob")
        expect(row).to_contain_text("POST /subjects/salaries/versions")
        expect(row).to_contain_text("the right register is missing on the subject salaries")
        page.get_by_role("button", name="Log out").click()
        page.goto(f"{running.url}/ui/refusals")
        expect(page).to_have_title("Log in · Stele")
        context.close()
