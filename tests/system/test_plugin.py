"""A format from another distribution, installed next to Stele: it is found, passes the test kit, and is served."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.server_process import call, serving

EXAMPLE = Path(__file__).parents[2] / "examples" / "table-schema"
OLD = '{"fields": [{"name": "a", "type": "integer"}]}'
NEW = '{"fields": [{"name": "a", "type": "integer"}, {"name": "b", "type": "date"}]}'
BROKEN = '{"fields": [{"name": "b", "type": "date", "constraints": {"required": true}}]}'

EVOLVES = """
import asyncio, sys
from stele.core.commands import RegisterSchema
from stele.core.model import SubjectKey
from stele.errors import Incompatible
from stele.service.registry import Registry
from stele.storage import open_log

async def put(registry, text):
    prepared = await registry.parser.prepare_schema(await registry.fresh_state(), "tableschema", text.encode())
    return await registry.execute(RegisterSchema(SubjectKey("", "sales"), prepared.document, prepared.references))

async def main(url, old, new, broken):
    registry = await Registry.open(await open_log(url))
    output = [(await put(registry, text)).version_number for text in (old, new, old)]
    try:
        await put(registry, broken)
    except Incompatible as refusal:
        output += [finding.rule for finding in refusal.findings]
    print(*output, file=sys.stderr)
    await registry.close()

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.fixture(scope="module")
def environ(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the environment of a process with the plug-in, installed into a folder without a network."""
    target = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-index", "--no-deps"]
    command += ["--no-build-isolation", "--target", str(target), str(_copy_example(tmp_path_factory.mktemp("source")))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {**os.environ, "PYTHONPATH": str(target)}


def _copy_example(folder: Path) -> Path:
    """Copy the sources of the example without the files of a build, and return the folder."""
    for path in [EXAMPLE / "pyproject.toml", EXAMPLE / "README.md", *EXAMPLE.glob("stele_table_schema/*.py")]:
        copy = folder / path.relative_to(EXAMPLE)
        copy.parent.mkdir(exist_ok=True)
        copy.write_bytes(path.read_bytes())
    return folder


def run(environ: dict[str, str], *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run Python with the plug-in installed."""
    command = [sys.executable, *arguments]
    return subprocess.run(command, env=environ, cwd=folder, capture_output=True, text=True, timeout=240, check=False)


def test_the_kit_passes_and_fails(environ: dict[str, str], tmp_path: Path) -> None:
    """The test kit finds the plug-in by name and passes. With one wrong case it names the case and exits with 1."""
    kit = ("-m", "stele.testing.format_suite", "tableschema")
    done = run(environ, *kit, str(EXAMPLE / "tests" / "cases.jsonl"), folder=tmp_path)
    assert done.returncode == 0, done.stdout
    assert "all passed" in done.stdout
    wrong = {"id": "wrong-line", "format": "tableschema", "ruleset": "by-name", "compatible": True}
    (tmp_path / "wrong.jsonl").write_text(json.dumps({**wrong, "old": OLD, "new": BROKEN}) + "\n")
    done = run(environ, *kit, "wrong.jsonl", folder=tmp_path)
    assert done.returncode == 1
    assert "wrong-line" in done.stdout
    assert run(environ, *kit[:2], "no-such-format", folder=tmp_path).returncode == 2


def test_its_own_tests_pass(environ: dict[str, str], tmp_path: Path) -> None:
    """The tests of the example pass as its author runs them."""
    arguments = ("-m", "pytest", "-q", "-p", "no:cacheprovider", f"--rootdir={EXAMPLE}", "-c", os.devnull)
    done = run(environ, *arguments, str(EXAMPLE / "tests"), folder=tmp_path)
    assert done.returncode == 0, done.stdout


def test_the_command_line_checks_it(environ: dict[str, str], tmp_path: Path) -> None:
    """`stele check` finds the format, compares by its rules and refuses with its findings."""
    for name, text in {"old": OLD, "new": NEW, "broken": BROKEN}.items():
        (tmp_path / f"{name}.json").write_text(text)
    check = ("-m", "stele.cli", "check", "--format", "tableschema", "--against", "old.json", "--output", "json")
    done = run(environ, *check, "new.json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)[0]["ruleset"] == "by-name@1"
    done = run(environ, *check, "broken.json", folder=tmp_path)
    assert done.returncode == 1
    assert [finding["rule"] for finding in json.loads(done.stdout)[0]["findings"]] == ["COLUMN_MISSING"]


def test_a_server_answers_for_it(environ: dict[str, str], tmp_path: Path) -> None:
    """A server with the plug-in checks its schemas. One without it answers that the format is unknown."""
    body = {"format": "tableschema", "ruleset": "by-position", "schema": OLD, "against": [{"schema": NEW}]}
    with serving("--store", "memory:", folder=tmp_path, environ=environ) as server:
        answer = call(f"{server.url}/api/check", "POST", body)
        assert answer.status == 200
        assert [finding["rule"] for finding in answer.body["findings"]] == ["COLUMN_LEFT_OVER"]
    with serving("--store", "memory:", folder=tmp_path) as server:
        assert call(f"{server.url}/api/check", "POST", body).status in (404, 422)


def test_a_registry_registers_and_evolves_it(environ: dict[str, str], tmp_path: Path) -> None:
    """Versions are numbered, repeats are recognised and refusals have findings, in a first and a second process."""
    url = f"sqlite:///{tmp_path}/registry.db"
    for _ in range(2):
        done = run(environ, "-c", EVOLVES, url, OLD, NEW, BROKEN, folder=tmp_path)
        assert done.returncode == 0, done.stderr
        assert done.stderr.split() == ["1", "2", "1", "CONSTRAINT_TIGHTENED"]
