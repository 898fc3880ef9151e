"""The manual pages: one for each command, in the wheel, without errors of formatting."""

from __future__ import annotations

import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from tools.man_pages import build_man_pages
from tools.reference import MAN_FOLDER

from stele.cli.app import COMMANDS

ROOT = Path(__file__).parents[3]


def test_every_command_has_a_page() -> None:
    """Groups, their commands and the root; `make check` compares the files with the code."""
    pages = build_man_pages()
    names = {
        "stele.1",
        "stele-schema-register.1",
        *(f"stele-{name}.1" for panel in COMMANDS.values() for name in panel),
    }
    assert names <= set(pages)
    assert set(pages) == {path.name for path in MAN_FOLDER.glob("*.1")}


def test_the_wheel_has_them() -> None:
    """The wheel installs the pages where `man` searches, below the prefix of the environment."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        shared = tomllib.load(file)["tool"]["hatch"]["build"]["targets"]["wheel"]["shared-data"]
    assert {ROOT / source: target for source, target in shared.items()} == {MAN_FOLDER: "share/man/man1"}


def test_a_page_says_what_the_help_says() -> None:
    """A page has the texts of the help, and characters that are special to roff are escaped."""
    page = build_man_pages()["stele-serve.1"]
    assert ".B \\-\\-log\\-level TEXT" in page
    assert "TOML file with a [server] table." in page
    for line in page.splitlines():
        assert not line.startswith("'")


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff formats the pages, and is not here")
def test_pages_are_formatted_without_warnings() -> None:
    """No page has a request or an escape that roff does not know."""
    files = sorted(map(str, MAN_FOLDER.glob("*.1")))
    done = subprocess.run(
        ["groff", "-K", "utf8", "-T", "utf8", "-man", "-ww", "-z", *files], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
