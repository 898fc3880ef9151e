"""A server with schemas in it, a real browser, and axe-core from npm, for all tests of the pages in a browser."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, BrowserContext, expect
from tests.support.server_process import serving
from tools.screenshots import WIDE, create_replications, fill_registry, find_pages, open_browser, prepare_files

HERE = Path(__file__).parent
expect.set_options(timeout=90_000)  # five seconds are too few for a page on a busy machine


def install_packages(folder: Path) -> Path:
    """Install the Node packages of the lock file, and return the folder that holds them."""
    assert shutil.which("npm"), "npm is missing: these tests need Node 20 or newer"
    for name in ("package.json", "package-lock.json", ".npmrc"):
        shutil.copy(HERE / "node" / name, folder)
    subprocess.run(["npm", "ci", "--silent"], cwd=folder, check=True)
    return folder / "node_modules"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server with content; tests change nothing in it."""
    folder = tmp_path_factory.mktemp("pages")
    with serving("--store", "memory:", folder=folder, environ=prepare_files(folder)) as running:
        with httpx.Client(base_url=running.url, timeout=60) as client:
            fill_registry(client)
            create_replications(client)
        yield running.url


@pytest.fixture
def pages(url: str) -> dict[str, str]:
    """The path of every page, by its name."""
    with httpx.Client(base_url=url, timeout=60) as client:
        return find_pages(client)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's Chromium."""
    with open_browser() as opened:
        yield opened


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A fresh profile in a wide window with the light theme."""
    profile = browser.new_context(viewport={"width": WIDE, "height": 900}, color_scheme="light")
    profile.set_default_timeout(90_000)
    yield profile
    profile.close()


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The script of axe-core."""
    folder = install_packages(tmp_path_factory.mktemp("axe"))
    return (folder / "axe-core" / "axe.min.js").read_text(encoding="utf-8")
