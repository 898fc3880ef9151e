"""Copying schemas between two registries with the pages alone: an exporter and a replication, from form to deletion."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect
from tests.support.server_process import serving
from tests.ui.test_stories import open_page
from tools.screenshots import NARROW, WIDE

pytestmark = [pytest.mark.servers, pytest.mark.timeout(120)]
WAYS = pytest.mark.parametrize(("width", "scripts"), [(WIDE, True), (NARROW, False)], ids=["wide", "phone-no-scripts"])


class Pair(NamedTuple):
    """Addresses of two registries; the pages of the first one are used."""

    here: str
    there: str


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Two registries that may send requests to each other; both have a subject `taken` of their own."""
    folder = tmp_path_factory.mktemp("pair")
    settings = {"STELE_OUTGOING_NETWORKS": "127.0.0.0/8"}
    first = {**settings, "STELE_PUBLIC_URL": "https://here.example.org", "STELE_STATE_DIR": str(folder / "here")}
    second = {**settings, "STELE_PUBLIC_URL": "https://there.example.org", "STELE_STATE_DIR": str(folder / "there")}
    with (
        serving("--store", "memory:", folder=folder, environ=first) as here,
        serving("--store", "memory:", folder=Path(folder), environ=second) as there,
    ):
        for url, name in ((here.url, "exported"), (there.url, "followed")):
            with httpx.Client(base_url=url, timeout=60) as client:
                for subject in (name, "taken"):
                    body = {"schema": '"string"'}
                    client.post(f"/subjects/{subject}/versions", json=body).raise_for_status()
        yield Pair(here.url, there.url)


def reload_until(page: Page, text: str) -> None:
    """Reload the page until it contains a text."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if text in page.locator("main").inner_text():
            return
        page.wait_for_timeout(250)
        page.reload()
    raise AssertionError(f"{text!r} is not in {page.locator('main').inner_text()}")


@WAYS
def test_export_to_another_registry(browser: Browser, pair: Pair, width: int, scripts: bool) -> None:
    """The exporter of the form copies schemas there; then it is paused, resumed, reset, changed and deleted."""
    name = f"to-{width}"
    with open_page(browser, width=width, scripts=scripts) as page:
        page.goto(f"{pair.here}/ui/exporters")
        page.locator("main [name=name]").fill(name)
        page.locator("[name=config]").fill(json.dumps({"schema.registry.url": pair.there}))
        page.locator("main [name=subjects]").fill("exported")
        page.get_by_label("Context type").select_option("CUSTOM")
        page.get_by_label("Context of CUSTOM").fill(name)
        page.get_by_role("button", name="Create").click()
        page.wait_for_url(f"**/exporters/{name}?done=created")
        reload_until(page, "1 change,")
        expect(page.get_by_text("✓ running")).to_be_visible()
        assert httpx.get(f"{pair.there}/contexts/.{name}/subjects", timeout=60).json() == [f":.{name}:exported"]
        page.get_by_role("button", name="Pause").click()
        expect(page.get_by_text("~ paused")).to_be_visible()
        page.get_by_role("button", name="Resume").click()
        expect(page.get_by_role("button", name="Pause")).to_be_visible()
        page.get_by_text("Reset or delete").click()
        page.get_by_role("button", name="Reset").click()
        page.wait_for_url("**?done=reset")
        page.locator("[name=config]").fill("{")
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_role("alert")).to_contain_text("JSON object")
        expect(page.locator("[name=config]")).to_have_value("{")
        page.get_by_text("Reset or delete").click()
        page.get_by_role("button", name="Delete").click()
        page.wait_for_url("**/exporters?done=ended")
        expect(page.get_by_role("link", name=name)).to_have_count(0)


@WAYS
def test_follow_another_registry(browser: Browser, pair: Pair, width: int, scripts: bool) -> None:
    """The replication copies schemas here, and a conflict is listed with its fix; then it is paused and deleted."""
    name = f"from-{width}"
    with open_page(browser, width=width, scripts=scripts) as page:
        page.goto(f"{pair.here}/ui/replications")
        page.locator("main [name=name]").fill(name)
        page.get_by_label("Address of the other registry").fill(pair.there)
        page.locator("main [name=subjects]").fill("followed\ntaken")
        page.get_by_role("button", name="Create").click()
        page.wait_for_url(f"**/replications/{name}?done=created")
        reload_until(page, "authority differs")
        expect(page.get_by_text("✓ following")).to_be_visible()
        expect(page.get_by_role("region", name="Conflicts")).to_contain_text("taken version 1")
        expect(page.get_by_role("region", name="Conflicts")).to_contain_text("Fix: Rename, or delete one")
        assert "followed" in httpx.get(f"{pair.here}/subjects", timeout=60).json()
        page.goto(f"{pair.here}/ui/replications")
        expect(page.locator("tbody tr")).to_contain_text("✗ 1")
        page.get_by_role("link", name=name).click()
        page.get_by_role("button", name="Pause").click()
        expect(page.get_by_text("~ paused")).to_be_visible()
        page.get_by_text("Delete", exact=True).first.click()
        page.get_by_role("button", name="Delete").click()
        page.wait_for_url("**/replications?done=ended")
        expect(page.get_by_text("There is no replication.")).to_be_visible()
