"""The documentation is true: its commands and snippets run, its links lead somewhere, its tables match the code."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.running import serving

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
BLOCK = re.compile(r"^```(bash|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]+\]\(([^)#\s]+)[^)]*\)")
EXECUTED = [page for page in PAGES if BLOCK.search(page.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("page", EXECUTED, ids=lambda page: str(page.relative_to(ROOT)))
def test_snippets_run(page: Path, tmp_path: Path) -> None:
    """Every bash and python block of a page works, in order, against one fresh server."""
    with serving("--store", "memory:", folder=tmp_path) as server:
        for kind, code in BLOCK.findall(page.read_text(encoding="utf-8")):
            shown = code.replace("http://127.0.0.1:8081", server.url)
            shell = ["bash", "-euo", "pipefail", "-c", f'export PATH="{Path(sys.executable).parent}:$PATH"\n{shown}']
            command = shell if kind == "bash" else [sys.executable, "-c", shown]
            environ = {**os.environ, "STELE_URL": server.url}
            done = subprocess.run(
                command, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=300, check=False
            )
            assert done.returncode == 0, f"{code}\n{done.stdout}\n{done.stderr}"
            assert '"error_code"' not in done.stdout, f"{code}\n{done.stdout}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """Relative links point at files that exist."""
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_reference_pages_agree_with_the_code() -> None:
    """The generated pages are what the generator writes today."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "reference.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_readme_names_the_two_commands_first() -> None:
    """The README's commands are the Makefile's, and the help lists every target."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"^make ([a-z-]+)", readme, re.MULTILINE):
        assert re.search(rf"^{target}:.*##", makefile, re.MULTILINE), target
    assert len(readme.splitlines()) <= 110, "the README fits a screen or two"
