"""Schemathesis against all OpenAPI documents of a server: no request is a server error, no answer contradicts them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.examples import scale_examples
from tests.support.server_process import free_port, serving

from stele.server.dialects import DIALECTS

TOOL = Path(sys.prefix) / "tools" / "bin" / "schemathesis"
"""In the environment `make` builds from requirements/tools.lock."""
SECONDS = {"confluent": 60, "native": 45, "xregistry": 30}
"""How long a dialect is tried in the long form; the others, 20. Every day a share, as for generated examples."""
LONGEST = 240
"""Seconds that a dialect is tried at most where no case was tried in less."""
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "unsupported_method",
)


@pytest.fixture(scope="module")
def urls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Addresses by dialect, each with a port of its own, of one registry that may be filled with anything."""
    ports = {dialect.name: free_port() for dialect in DIALECTS}
    listen = [flag for name, port in ports.items() for flag in ("--listen", f"{name}={port}")]
    with serving("--store", "memory:", *listen, folder=tmp_path_factory.mktemp("schemathesis")):
        yield {name: f"http://127.0.0.1:{port}" for name, port in ports.items()}


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("document", [dialect.name for dialect in DIALECTS])
def test_no_contradiction(document: str, urls: dict[str, str], tmp_path: Path) -> None:
    """Examples, edge cases, random requests and chains of them are all answered as documented; the seed is fixed."""
    assert TOOL.exists(), f"{TOOL} is missing: run `make test`, which installs it"
    seconds = scale_examples(SECONDS.get(document, 20))
    done = run_tool(urls[document], document, seconds, tmp_path)
    while "No test cases were generated" in done.stdout and seconds < LONGEST:  # The machine was too slow for a case.
        seconds = min(seconds * 4, LONGEST)
        done = run_tool(urls[document], document, seconds, tmp_path)
    assert done.returncode == 0, f"{done.stdout[-8000:]}\n{done.stderr[-2000:]}"
    assert "No issues found" in done.stdout, done.stdout[-4000:]


def run_tool(url: str, document: str, seconds: int, folder: Path) -> subprocess.CompletedProcess[str]:
    """Try a dialect for so long."""
    command = [
        str(TOOL),
        "run",
        f"{url}/_docs/{document}/openapi.json",
        f"--max-time={seconds}",
        "--seed=20",
        "--request-timeout=120",
        "--continue-on-failure",
        f"--checks={','.join(CHECKS)}",
        "--suppress-health-check=all",
        "--warnings=off",
        "--no-color",
    ]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=seconds + 240, check=False)
