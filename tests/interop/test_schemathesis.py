"""Schemathesis against both OpenAPI documents of a server: no request is a server error, no answer contradicts them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.running import serving

TOOL = Path(sys.prefix) / "tools" / "bin" / "schemathesis"
"""In the environment `make` builds from requirements/tools.lock."""
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "unsupported_method",
)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a server whose registry may be filled with anything."""
    with serving("--store", "memory:", folder=tmp_path_factory.mktemp("schemathesis")) as server:
        yield server.url


@pytest.mark.slow
@pytest.mark.parametrize(("document", "seconds"), [("confluent", 60), ("native", 20)])
def test_no_contradiction(document: str, seconds: int, url: str, tmp_path: Path) -> None:
    """Examples, edge cases, random requests and chains of them are all answered as documented; the seed is fixed."""
    assert TOOL.exists(), f"{TOOL} is missing: run `make test`, which installs it"
    command = [
        str(TOOL),
        "run",
        f"{url}/_docs/{document}/openapi.json",
        f"--max-time={seconds}",
        "--seed=20",
        "--continue-on-failure",
        f"--checks={','.join(CHECKS)}",
        "--suppress-health-check=all",
        "--warnings=off",
        "--no-color",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, f"{done.stdout[-8000:]}\n{done.stderr[-2000:]}"
    assert "No issues found" in done.stdout, done.stdout[-4000:]
