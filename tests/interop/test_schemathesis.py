"""Schemathesis against all OpenAPI documents of a server: no request is a server error, no answer contradicts them."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.examples import PROFILE, scale_examples
from tests.support.server_process import call, free_port, serving

from stele.server.dialects import DIALECTS

TOOL = Path(sys.prefix) / "tools" / "bin" / "schemathesis"
"""Path of the tool in the environment that `make` builds from requirements/tools.lock."""
SECONDS = {"confluent": 60, "native": 45, "xregistry": 30}
"""Seconds per dialect in the long form. Other dialects take 20."""
EVERYDAY_SECONDS = {"confluent": 10}
"""Seconds per dialect in the everyday form. Other dialects have a fixed number of random requests per operation.

Confluent's 142 operations would take four times as long that way.
"""
EVERYDAY_REQUESTS = 2
EVERYDAY_MODES = """
[phases.coverage.generation]
mode = "negative"
[phases.fuzzing.generation]
mode = "positive"
"""
"""Requests of the everyday form: invalid edge cases, and valid random requests.

If time is limited, each operation gets a share of it. Valid edge cases would come first and use it up, so few
operations would get invalid data. The long form sends all.
"""
LONGEST = 240
"""Most seconds per dialect, when some operation was not tried in less."""
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "unsupported_method",
)


@pytest.fixture(scope="module")
def urls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Addresses by dialect, each with its own port, of one registry that the tool may fill."""
    ports = {dialect.name: free_port() for dialect in DIALECTS}
    listen = [flag for name, port in ports.items() for flag in ("--listen", f"{name}={port}")]
    with serving("--store", "memory:", *listen, folder=tmp_path_factory.mktemp("schemathesis")):
        urls = {name: f"http://127.0.0.1:{port}" for name, port in ports.items()}
        # The tool requests events of the subject "0", and the server waits a minute for one.
        assert call(f"{urls['confluent']}/subjects/0/versions", "POST", {"schema": '"string"'}).status == 200
        yield urls


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("document", [dialect.name for dialect in DIALECTS])
def test_no_contradiction(document: str, urls: dict[str, str], tmp_path: Path) -> None:
    """Examples, edge cases, random requests and chains of them are answered as documented. The seed is fixed."""
    assert TOOL.exists(), f"{TOOL} is missing: run `make test`, which installs it"
    if PROFILE == "everyday" and document not in EVERYDAY_SECONDS:
        done = run_tool(urls[document], document, f"--max-examples={EVERYDAY_REQUESTS}", tmp_path)
    else:
        seconds = EVERYDAY_SECONDS[document] if PROFILE == "everyday" else scale_examples(SECONDS.get(document, 20))
        done = run_tool(urls[document], document, f"--max-time={seconds}", tmp_path)
        while not has_tried_all(done.stdout) and seconds < LONGEST:  # The machine was too slow to test each operation.
            seconds = min(seconds * 2, LONGEST)
            done = run_tool(urls[document], document, f"--max-time={seconds}", tmp_path)
    assert done.returncode == 0, f"{done.stdout[-8000:]}\n{done.stderr[-2000:]}"
    assert has_tried_all(done.stdout), done.stdout[-4000:]
    assert "No issues found" in done.stdout, done.stdout[-4000:]


def has_tried_all(output: str) -> bool:
    """Return whether the tool sent a request to each operation."""
    counts = re.search(r"Selected: (\d+)/\1\s+Tested: (\d+)", output)
    return counts is not None and counts[1] == counts[2] and "No test cases were generated" not in output


def run_tool(url: str, document: str, limit: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the tool on a dialect with the given limit."""
    config = folder / "schemathesis.toml"
    config.write_text(EVERYDAY_MODES if PROFILE == "everyday" else "")
    command = [
        str(TOOL),
        f"--config-file={config}",
        "run",
        f"{url}/_docs/{document}/openapi.json",
        limit,
        "--seed=20",
        "--request-timeout=120",
        "--continue-on-failure",
        f"--checks={','.join(CHECKS)}",
        "--suppress-health-check=all",
        "--warnings=off",
        "--no-color",
    ]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=LONGEST * 2, check=False)
