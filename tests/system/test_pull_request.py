"""A pull request with two schema files, one of them incompatible, as CI systems check it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml
from tests.unit.review.folders import BETTER_ORDER, MONEY, ORDER, commit_all, run_git, write_files

ROOT = Path(__file__).parents[2]
BROKEN = BETTER_ORDER.replace('"type": "string", "default": ""', '"type": "string"')
FINE = MONEY.replace('"long"}', '"long"}, {"name": "currency", "type": "string", "default": "EUR"}')


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a checkout of a pull request as GitHub makes it: only the newest commit, with the repository as origin."""
    origin = write_files(tmp_path / "origin", {"schemas/order.avsc": ORDER, "schemas/money.avsc": MONEY})
    commit_all(origin)
    run_git(origin, "checkout", "-q", "-b", "change")
    write_files(origin, {"schemas/order.avsc": BROKEN, "schemas/money.avsc": FINE})
    commit_all(origin, "two changes")
    run_git(tmp_path, "clone", "-q", "--depth=1", "--branch=change", f"file://{origin}", "checkout")
    return tmp_path / "checkout"


def run_script(script: str, folder: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a step of CI with the `stele` of this environment."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=folder,
        env={**os.environ, "PATH": path, **environ},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def read_yaml(name: str) -> Any:
    """Return the contents of a YAML file of the repository."""
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def action_step(name: str) -> dict[str, Any]:
    """Return a step of the action."""
    steps: list[dict[str, Any]] = read_yaml("action.yml")["runs"]["steps"]
    return next(step for step in steps if step.get("name") == name)


def test_a_pull_request_is_annotated_at_the_line(checkout: Path) -> None:
    """The action fetches the base branch, annotates the one finding at its line, and passes after the fix."""
    begun = time.monotonic()
    inputs = {"PATHS": "schemas", "AGAINST": "", "POLICY": "", "LINT": "false", "GITHUB_BASE_REF": "main"}
    assert action_step("Check")["env"].keys() < inputs.keys()
    done = run_script(action_step("Check")["run"], checkout, **inputs)
    assert done.returncode == 1, done.stderr
    (annotation,) = done.stdout.splitlines()
    assert annotation.startswith(
        "::error file=schemas/order.avsc,line=6,col=5,title=READER_FIELD_MISSING_DEFAULT_VALUE::"
    )
    write_files(checkout, {"schemas/order.avsc": BETTER_ORDER})
    done = run_script(action_step("Check")["run"], checkout, **inputs)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    sys.stdout.write(f"from the checkout to the first success: {time.monotonic() - begun:.1f} s\n")
    done = run_script(action_step("Check")["run"], checkout, **{**inputs, "LINT": "true", "POLICY": "NONE"})
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_a_merge_request_gets_test_results(checkout: Path) -> None:
    """The job for GitLab writes a report in which the breaking file is the failed test."""
    job = read_yaml("examples/ci/gitlab-ci.yml")["schemas"]
    fetch = next(line for line in job["before_script"] if line.startswith("git fetch"))
    environ = {"SCHEMAS": "schemas", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main"}
    done = run_script("\n".join([fetch, *job["script"]]), checkout, **environ)
    assert done.returncode == 1, done.stderr
    cases = ET.parse(checkout / job["artifacts"]["reports"]["junit"]).getroot().iter("testcase")
    assert {case.get("file"): case.find("failure") is not None for case in cases} == {
        "schemas/money.avsc": False,
        "schemas/order.avsc": True,
    }


def test_hooks_of_pre_commit(checkout: Path) -> None:
    """The hooks compare the changed files with the last commit and lint them."""
    entries = {hook["id"]: hook["entry"] for hook in read_yaml(".pre-commit-hooks.yaml")}
    files = "schemas/money.avsc schemas/order.avsc"
    assert run_script(f"{entries['stele-check']} {files}", checkout).returncode == 0
    write_files(checkout, {"schemas/order.avsc": BROKEN.replace('"long"', '"boolean"'), "schemas/new.avsc": MONEY})
    done = run_script(f"{entries['stele-check']} {files} schemas/new.avsc", checkout)
    assert (done.returncode, "schemas/order.avsc:4:" in done.stdout) == (1, True), done.stdout + done.stderr
    assert run_script(f"{entries['stele-lint']} {files}", checkout).returncode == 0
