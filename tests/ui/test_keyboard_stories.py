"""The seven main tasks of users with the keyboard alone: in the light and the dark theme, wide and on a phone."""

from __future__ import annotations

import json
from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect
from tests.support.server_process import serving
from tests.ui.test_stories import open_page
from tests.ui.test_work_stories import make_subjects
from tools.screenshots import NARROW, SUBJECT, WIDE, fill_registry, prepare_files

pytestmark = [pytest.mark.servers, pytest.mark.timeout(120)]
_FOCUS_SHOWS = """() => {
  const element = document.activeElement;
  const inside = element.shadowRoot;
  const candidates = inside ? [element, inside.activeElement, inside.activeElement.closest(".cm-editor")] : [element];
  return candidates.filter(Boolean).some((each) => {
    const style = getComputedStyle(each);
    return style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0;
  });
}"""
_MOST_TABS = 80
IN_EVERY_WINDOW = pytest.mark.parametrize(("width", "dark"), [(w, d) for w in (WIDE, NARROW) for d in (False, True)])


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server that these tests change, each a subject of its own."""
    folder = tmp_path_factory.mktemp("keyboard")
    with serving("--store", "memory:", folder=folder, environ=prepare_files(folder)) as running:
        with httpx.Client(base_url=running.url, timeout=60) as client:
            fill_registry(client)
        yield running.url


def tab_to(page: Page, selector: str) -> None:
    """Press Tab until the focused element matches a selector, and check that its focus is visible."""
    for _ in range(_MOST_TABS):
        page.keyboard.press("Tab")
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            expect_visible_focus(page, selector)
            return
    raise AssertionError(f"{_MOST_TABS} times Tab do not lead to {selector}")


def press_enter_on(page: Page, selector: str) -> None:
    """Press Tab until the focused element matches a selector, then Enter."""
    tab_to(page, selector)
    page.keyboard.press("Enter")


def expect_visible_focus(page: Page, selector: str) -> None:
    """Check that the focused element has an outline, after a short time at most."""
    for _ in range(400):
        if page.evaluate(_FOCUS_SHOWS):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"the focus on {selector} cannot be seen")


def skip_to_content(page: Page) -> None:
    """Follow the first link of a page, which skips the menu."""
    press_enter_on(page, ".skip")


def search(page: Page, text: str) -> None:
    """Search from any page, and go to the results."""
    page.keyboard.press("/")
    page.keyboard.type(text)
    page.keyboard.press("Enter")
    page.wait_for_url("**/ui/subjects?q=*")
    skip_to_content(page)


def write_schema(page: Page, record: object) -> None:
    """Replace the text in the editor and leave the editor with its keys: Escape, then Tab."""
    tab_to(page, ".cm-editor")
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(json.dumps(record))
    page.keyboard.press("Escape")


@IN_EVERY_WINDOW
def test_find_a_field_and_see_since_when_it_exists(browser: Browser, address: str, width: int, dark: bool) -> None:
    """A user can search for a field, open its row, and read the version since which it exists."""
    with open_page(browser, width=width, dark=dark) as page:
        page.goto(f"{address}/ui")
        search(page, "zip")
        press_enter_on(page, f'#results a[href*="{SUBJECT}"]')
        page.wait_for_url(f"**/{SUBJECT}/fields?field=address.zip")
        expect(page.locator("main tbody tr").first).to_contain_text("address.zip")
        expect(page.locator("main tbody tr").first.locator("td.n").first).to_have_text("3")


@IN_EVERY_WINDOW
def test_propose_see_who_breaks_mend_register(browser: Browser, address: str, width: int, dark: bool) -> None:
    """A user can check a change that breaks another schema, correct it, check it again and register it."""
    name = f"place{width}{dark}"
    make_subjects(address, name)
    record = {"type": "record", "name": "Place", "namespace": name, "fields": [{"name": "city", "type": "int"}]}
    with open_page(browser, width=width, dark=dark) as page:
        page.goto(f"{address}/ui/subjects/{name}")
        skip_to_content(page)
        press_enter_on(page, 'a[href$="/register"]')
        page.wait_for_url(f"**/{name}/register*")
        skip_to_content(page)
        write_schema(page, record)
        press_enter_on(page, "button[value=check]")
        expect(page.get_by_role("region", name="Who refers to it")).to_contain_text("breaks")
        record["fields"] = [{"name": "city", "type": "string"}, {"name": "zip", "type": "string", "default": ""}]
        skip_to_content(page)
        write_schema(page, record)
        press_enter_on(page, "button[value=check]")
        expect(page.get_by_role("region", name="Who refers to it")).to_contain_text("stays compatible")
        skip_to_content(page)
        press_enter_on(page, "button[value=register]")
        page.wait_for_url(f"**/{name}?version=2&done=registered*")


@IN_EVERY_WINDOW
def test_compare_versions_2_and_5(browser: Browser, address: str, width: int, dark: bool) -> None:
    """A user can choose a version by typing its number in the list."""
    with open_page(browser, width=width, dark=dark) as page:
        page.goto(f"{address}/ui/subjects/{SUBJECT}")
        skip_to_content(page)
        press_enter_on(page, '.tabs a[href$="/compare"]')
        page.wait_for_url("**/compare")
        skip_to_content(page)
        tab_to(page, "select[name=old]")
        with page.expect_navigation():
            page.keyboard.type("2")
        expect(page.locator(".tiles")).to_contain_text("version 5 reads data of 2")


@IN_EVERY_WINDOW
def test_why_was_this_refused_yesterday(browser: Browser, address: str, width: int, dark: bool) -> None:
    """A user can open the refusals from the menu, and search for a caller."""
    with open_page(browser, width=width, dark=dark) as page:
        page.goto(f"{address}/ui")
        press_enter_on(page, '.menu a[href$="/refusals"]')
        page.wait_for_url("**/refusals")
        skip_to_content(page)
        tab_to(page, "main input[name=text]")
        page.keyboard.type("bob")
        page.keyboard.press("Enter")
        page.wait_for_url("**text=bob*")
        expect(page.locator("main tbody tr")).to_have_count(1)
        expect(page.locator("main tbody tr")).to_contain_text("the right register is missing")


@IN_EVERY_WINDOW
def test_decode_these_bytes(browser: Browser, address: str, width: int, dark: bool) -> None:
    """A user can type bytes, send them, and read the record."""
    with open_page(browser, width=width, dark=dark) as page:
        page.goto(f"{address}/ui/decode")
        skip_to_content(page)
        tab_to(page, "textarea[name=data]")
        page.keyboard.type("00 00 00 00 02 0e 06 61 6e 6e")
        press_enter_on(page, "main button[type=submit]")
        expect(page.locator(".reading").first).to_contain_text(f"{SUBJECT} version 1")
        expect(page.get_by_label("The record")).to_contain_text("ann")


@IN_EVERY_WINDOW
def test_may_i_delete_this_and_recover_it(browser: Browser, address: str, width: int, dark: bool) -> None:
    """A user can read what prevents a deletion, delete another subject, and recover it."""
    name = f"depot{width}{dark}"
    make_subjects(address, name)
    with open_page(browser, width=width, dark=dark) as page:
        page.goto(f"{address}/ui/subjects/{name}")
        skip_to_content(page)
        press_enter_on(page, 'a.button[href$="/delete"]')
        page.wait_for_url("**/delete*")
        expect(page.locator("main")).to_contain_text("cannot be deleted now")
        skip_to_content(page)
        press_enter_on(page, f'main a[href*="{name}-trips"]')
        page.wait_for_url(f"**/{name}-trips*")
        skip_to_content(page)
        press_enter_on(page, 'a.button[href$="/delete"]')
        page.wait_for_url("**/delete*")
        skip_to_content(page)
        press_enter_on(page, "main button.danger")
        page.wait_for_url("**/versions?done=deleted*")
        skip_to_content(page)
        press_enter_on(page, 'a[href$="/recover"]')
        page.wait_for_url("**/recover*")
        skip_to_content(page)
        press_enter_on(page, "main tbody button")
        page.wait_for_url("**done=recovered*")
        expect(page.get_by_role("status")).to_contain_text("Recovered")
