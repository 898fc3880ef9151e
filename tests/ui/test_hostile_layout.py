"""Names with markup, direction overrides or extreme length break no page, not even on a phone."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import Browser
from tests.support.hostile_names import NAMES, fill_registry, find_addresses, write_files
from tests.support.server_process import serving
from tests.support.ui_pages import list_html_templates
from tests.ui.test_stories import open_page
from tools.screenshots import NARROW

pytestmark = [pytest.mark.servers, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A client of a server with such names everywhere."""
    folder = tmp_path_factory.mktemp("hostile")
    settings = {f"STELE_{name.upper()}": value for name, value in write_files(folder).items()}
    with (
        serving("--store", "memory:", folder=folder, environ=settings) as running,
        httpx.Client(base_url=running.url, timeout=60) as client,
    ):
        fill_registry(client)
        yield client


def test_no_page_is_wider_than_a_phone_or_runs_a_foreign_script(browser: Browser, hostile: httpx.Client) -> None:
    """With such names, no page scrolls sideways, and no text of them becomes an element or runs."""
    wrong: list[str] = []
    with open_page(browser, width=NARROW) as page:
        page.on("dialog", lambda dialog: wrong.append(f"{page.url[:100]} says {dialog.message}"))
        for template in list_html_templates():
            for path in find_addresses(hostile, template, NAMES[-1:]):
                page.goto(f"{hostile.base_url}{path}", wait_until="domcontentloaded")
                if page.locator("main img, main script").count():
                    wrong.append(f"{path[:100]} has an element of a name")
                over = page.evaluate("document.documentElement.scrollWidth - innerWidth")
                if over > 0:
                    wrong.append(f"{path[:100]} is {over} pixels too wide")
    assert not wrong, "\n".join(wrong)
