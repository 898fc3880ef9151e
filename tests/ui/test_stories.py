"""Main tasks of users in a browser: with mouse or keyboard, without scripts, on a phone, and in the dark theme."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect
from tests.support.server_process import serving
from tools.screenshots import FORMS, NARROW, SUBJECT, WIDE, answer_form

pytestmark = [pytest.mark.servers, pytest.mark.timeout(120)]


@contextmanager
def open_page(browser: Browser, *, width: int = WIDE, dark: bool = False, scripts: bool = True) -> Iterator[Page]:
    """Yield a page of a fresh profile."""
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        color_scheme="dark" if dark else "light",
        java_script_enabled=scripts,
    )
    context.set_default_timeout(90_000)
    yield context.new_page()
    context.close()


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no-scripts"])
@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_find_a_field_and_see_since_when_it_exists(browser: Browser, url: str, width: int, scripts: bool) -> None:
    """A user can search for a part of a field's name on the home page, open the field, and read its first version."""
    with open_page(browser, width=width, scripts=scripts) as page:
        page.goto(f"{url}/ui")
        page.get_by_label("Search by name, id or field").fill("zip")
        page.get_by_label("Search by name, id or field").press("Enter")
        row = page.locator("#results tr", has_text=SUBJECT)
        expect(row).to_contain_text("address.zip")
        expect(row.locator("td").nth(3)).to_have_text("3")
        row.get_by_role("link").first.click()
        expect(page).to_have_url(f"{url}/ui/subjects/{SUBJECT}/fields?field=address.zip")
        expect(page.locator("main tbody tr")).to_have_count(1)
        expect(page.locator("main tbody tr")).to_contain_text("address.zip")


def test_compare_versions_2_and_5(context: BrowserContext, url: str) -> None:
    """A user can choose two versions; their changes stand before the texts, and the address holds the choice."""
    page = context.new_page()
    page.goto(f"{url}/ui/subjects/{SUBJECT}")
    page.get_by_role("link", name="Compare", exact=True).click()
    with page.expect_navigation():
        page.get_by_label("From version").select_option("2")
    expect(page.get_by_label("From version")).to_have_value("2")
    expect(page.get_by_label("To version")).to_have_value("5")
    assert "old=2" in page.url
    assert "new=5" in page.url
    expect(page.locator(".tiles")).to_contain_text("version 5 reads data of 2")
    changes = page.get_by_role("region", name="Changes")
    expect(changes).to_contain_text("org.shop.Order.email")
    removed = changes.locator("tr", has_text="org.shop.Order.email")
    expect(removed).to_contain_text("removed")
    meaning = changes.bounding_box()
    text = page.get_by_label("Difference of the texts").bounding_box()
    assert meaning is not None
    assert text is not None
    assert meaning["y"] < text["y"]
    page.go_back()
    expect(page.get_by_label("From version")).to_have_value("4")


def test_keys_alone(context: BrowserContext, url: str) -> None:
    """`/` searches, `j` and `k` move, Enter opens, `[` and `]` go through the versions, and the focus shows."""
    page = context.new_page()
    page.goto(f"{url}/ui")
    page.keyboard.press("/")
    page.keyboard.type("orders")
    page.keyboard.press("Enter")
    page.wait_for_url("**/ui/subjects?q=orders")
    page.keyboard.press("j")
    expect(page.locator("tr[aria-selected=true]")).to_contain_text(SUBJECT)
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/ui/subjects/{SUBJECT}")
    page.keyboard.press("[")
    page.wait_for_url("**version=4*")
    page.keyboard.press("]")
    page.wait_for_url("**version=5*")
    page.keyboard.press("Tab")
    expect(page.get_by_text("Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"


def test_filters_apply_at_once(context: BrowserContext, url: str) -> None:
    """Typing and choosing filter the list in place, and the address follows, so that the back button works."""
    page = context.new_page()
    page.goto(f"{url}/ui/subjects")
    page.locator("#q").fill("sensor")
    expect(page.locator("#results tbody tr")).to_have_count(50)
    expect(page.locator("#results")).to_contain_text("1–50 of 60")
    page.wait_for_url("**q=sensor*")
    page.locator("#q").fill("")
    page.get_by_label("Format").select_option("protobuf")
    expect(page.locator("#results tbody tr")).to_have_count(1)
    page.wait_for_url("**format=protobuf*")
    page.reload()
    expect(page.get_by_label("Format")).to_have_value("protobuf")
    expect(page.locator("#results tbody tr")).to_have_count(1)


def test_the_theme_is_the_systems_until_somebody_chooses(browser: Browser, url: str) -> None:
    """Pages use the theme of the system; the switch inverts it and its choice is stored."""
    read = "getComputedStyle(document.body).backgroundColor"
    with open_page(browser) as page:
        page.goto(f"{url}/ui")
        light = page.evaluate(read)
    with open_page(browser, dark=True) as page:
        page.goto(f"{url}/ui")
        dark = page.evaluate(read)
        assert dark != light
        page.get_by_label("Switch between light and dark").click()
        assert page.evaluate(read) == light
        page.goto(f"{url}/ui/subjects")
        assert page.evaluate(read) == light


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_every_page_fits_and_keeps_to_its_origin(browser: Browser, url: str, pages: dict[str, str], width: int) -> None:
    """No page is wider than its window, contacts another origin, violates its own policy or has a failing script."""
    with open_page(browser, width=width) as page:
        wrong: list[str] = []
        page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on(
            "request", lambda request: wrong.append(request.url) if not request.url.startswith((url, "data:")) else None
        )
        for name, path in pages.items():
            page.goto(url + path)
            page.wait_for_load_state("load")
            over = page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert over <= 0, f"{name} is {over} pixels too wide at {width}"
            expected = ["the server responded with a status of 404"] if name == "not-found" else []
            left = [text for text in wrong if not any(each in text for each in expected)]
            assert not left, (name, left)
            wrong.clear()


def test_the_first_page_of_an_empty_registry_fits(browser: Browser, tmp_path: Path) -> None:
    """Long commands scroll inside their boxes, and read-only pages state the reason of a refusal once."""
    with serving("--store", "memory:", folder=tmp_path, environ={"STELE_UI_READ_ONLY": "true"}) as running:
        for width in (WIDE, NARROW):
            with open_page(browser, width=width) as page:
                page.goto(f"{running.url}/ui")
                assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
                expect(page.locator("main pre")).to_have_count(6)
                expect(page.get_by_role("button", name="Register a schema")).to_be_disabled()
                expect(page.get_by_text("These pages are read-only")).to_have_count(1)


def test_every_page_without_scripts(browser: Browser, url: str, pages: dict[str, str]) -> None:
    """Without scripts every page has its content, no dead button, and forms with a button to send them."""
    with open_page(browser, scripts=False) as page:
        for name, path in pages.items():
            page.goto(url + path)
            expect(page.locator("h1")).to_be_visible()
            expect(page.locator("#theme")).to_be_hidden()
            for button in page.locator("[data-copy]").all():
                expect(button).to_be_hidden()
            forms = page.locator("main form").all()
            assert all(form.locator("button[type=submit]").count() for form in forms), name


def test_print_shows_the_content_alone(context: BrowserContext, url: str) -> None:
    """On paper there are no menus and no buttons."""
    page = context.new_page()
    page.goto(f"{url}/ui/subjects/{SUBJECT}/history")
    page.emulate_media(media="print")
    expect(page.locator(".menu")).to_be_hidden()
    expect(page.locator(".tabs")).to_be_hidden()
    expect(page.locator("svg.stele-picture")).to_be_visible()


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("width", "dark"), [(WIDE, False), (NARROW, True)], ids=["light", "dark"])
def test_axe_finds_nothing_serious(
    browser: Browser, url: str, pages: dict[str, str], axe: str, width: int, dark: bool
) -> None:
    """Axe reports no serious accessibility problem on any page, nor on the response to a form."""
    wrong = []
    with open_page(browser, width=width, dark=dark) as page, open_page(browser, scripts=False) as sender:
        for name, path in pages.items():
            page.goto(url + path)
            wrong += find_violations(page, axe, name)
        for name, form in FORMS.items():
            answer_form(sender, url, form)
            show_answer(page, sender)
            wrong += find_violations(page, axe, name)
    assert not wrong, "\n".join(wrong)


def show_answer(page: Page, sender: Page) -> None:
    """Copy the content of a page without scripts into a page with scripts, because axe is a script."""
    answer, at = sender.content(), sender.url
    page.route(lambda url: url == at, lambda route: route.fulfill(body=answer, content_type="text/html"), times=1)
    page.goto(at)


def find_violations(page: Page, axe: str, name: str) -> list[str]:
    """Return the serious problems that axe reports on a page."""
    page.evaluate(axe)
    report = page.evaluate(f"axe.run(document, {json.dumps({'resultTypes': ['violations']})})")
    return [
        f"{name}: {each['id']}: {each['nodes'][0]['html'][:200]} {each['nodes'][0]['failureSummary'][:300]}"
        for each in report["violations"]
        if each["impact"] in {"serious", "critical"}
    ]
