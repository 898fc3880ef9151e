"""Other vendors' clients, unmodified, in their own environments. Each script in `tools/` and `node/` runs one."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.server_process import serving

HERE = Path(__file__).parent
TOOLS = Path(sys.prefix) / "tools" / "bin"
"""The environment that `make` builds for the Python clients from requirements/tools.lock."""
SECONDS = 300


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a separate server, because the scripts use fixed names."""
    with serving("--store", "memory:", folder=tmp_path_factory.mktemp("tools")) as server:
        yield server.url


def run(*command: str | Path, folder: Path = HERE) -> None:
    """Run a command to its end. Its output is shown when it fails."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, f"{command}:\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"


@pytest.mark.parametrize("script", sorted((HERE / "tools").glob("with_*.py")), ids=lambda path: path.stem[5:])
def test_python(script: Path, url: str) -> None:
    """A Python client from PyPI registers, evolves, encodes, decodes and deletes."""
    assert (TOOLS / "python").exists(), f"no environment of tools at {TOOLS.parent}: run `make test`, which makes it"
    run(TOOLS / "python", script, url)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the Node clients, installed from their lock file."""
    assert shutil.which("npm"), "npm is missing: these tests need Node 20 or newer"
    folder = tmp_path_factory.mktemp("node")
    for name in ("package.json", "package-lock.json", ".npmrc"):
        shutil.copy(HERE / "node" / name, folder)
    for script in (HERE / "node").glob("*.mjs"):
        shutil.copy(script, folder)
    run("npm", "ci", "--silent", folder=folder)
    return folder


@pytest.mark.servers
@pytest.mark.timeout(900)
@pytest.mark.parametrize("script", ["kafkajs.mjs", "confluent.mjs"])
def test_node(script: str, node: Path, url: str) -> None:
    """A Node client from npm registers, evolves, encodes, decodes and deletes."""
    run("node", script, url, folder=node)
