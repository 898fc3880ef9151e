"""`stele doctor`: its results, and that it creates nothing."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import tomllib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from stele.cli import environment_checks as checks
from stele.cli.app import app
from stele.cli.diagnosis import CheckState
from stele.cli.doctor import check_skew
from stele.errors import StoreError
from stele.server.store_maintenance import inspect_store
from stele.storage import open_log
from stele.testing import registry

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run commands in an empty folder, without configuration files of the user."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("STELE_STORE", raising=False)
    return


def run(*words: str) -> Result:
    """Run the command with these words."""
    return CliRunner().invoke(app, ["doctor", *words])


def find_results(*words: str, code: int = 0) -> dict[str, dict[str, Any]]:
    """Return the results by their codes."""
    done = run(*words, "--output", "json")
    assert done.exit_code == code, done.output
    return {row["code"]: row for row in json.loads(done.stdout)}


def test_a_sound_installation_has_no_errors(tmp_path: Path) -> None:
    """A sound installation has one line for each check, a sum at the end and exit code 0; nothing is created."""
    done = run()
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[-1].startswith(f"{len(lines) - 1} checks: ")
    assert all(line.split()[0] in {"ok", "warning"} for line in lines[:-1])
    assert find_results()["STORE"]["detail"].endswith("stele.db is not there yet; stele serve makes it")
    assert list(tmp_path.iterdir()) == []


def test_a_store_is_looked_at_and_not_touched(tmp_path: Path) -> None:
    """Format, write-ahead log and size are read with and without a running server; no file appears or changes."""
    url = f"sqlite:///{tmp_path}/log.db"
    log = asyncio.run(open_log(url))
    states = [("open", _list_files(tmp_path), inspect_store(url))]
    asyncio.run(log.close())
    states.append(("closed", _list_files(tmp_path), inspect_store(url)))
    for name, _, condition in states:
        assert condition is not None
        assert (condition.layout, condition.journal_mode, condition.is_writable) == (3, "wal", True), name
    before = _list_files(tmp_path)
    rows = find_results("--store", url)
    assert {rows[code]["state"] for code in ("STORE", "STORE_FORMAT", "STORE_WAL")} == {"ok"}
    assert _list_files(tmp_path) == before


def _list_files(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}


def test_what_is_wrong_with_a_store(tmp_path: Path) -> None:
    """A file that is no store is an error; a store in memory and a backup are warnings."""
    (tmp_path / "bad.db").write_text("no database, " * 20)
    assert "is not a SQLite database" in find_results("--store", "sqlite:///bad.db", code=1)["STORE"]["detail"]
    with closing(sqlite3.connect(tmp_path / "other.db")) as connection:
        connection.execute("CREATE TABLE x (y)")
    with pytest.raises(StoreError, match="of another program"):
        inspect_store("sqlite:///other.db")
    assert find_results("--store", "memory:")["STORE"]["state"] == "warning"
    url = f"sqlite:///{tmp_path}/log.db"
    asyncio.run(_make_store(url))
    assert CliRunner().invoke(app, ["backup", "copy.db", "--store", url]).exit_code == 0
    assert find_results("--store", "sqlite:///copy.db")["STORE_WAL"]["state"] == "warning"


async def _make_store(url: str) -> None:
    log = await open_log(url)
    await log.close()


def test_a_store_that_may_not_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that the user may not write is an error."""
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert find_results("--store", "sqlite:///locked/log.db", code=1)["STORE"]["state"] == "error"


def test_settings_that_are_wrong(tmp_path: Path) -> None:
    """A wrong key in either file is an error that suggests the right one; an unknown profile ends with 2."""
    (tmp_path / "stele.toml").write_text("[server]\nprot = 1\n")
    assert "did you mean 'port'" in find_results(code=1)["SETTINGS"]["detail"]
    (tmp_path / "stele.toml").unlink()
    (tmp_path / "config" / "stele").mkdir(parents=True)
    (tmp_path / "config" / "stele" / "config.toml").write_text("profil = 1\n")
    assert "did you mean 'profile'" in find_results(code=1)["CONFIG_FILE"]["detail"]
    assert run("--profile", "nosuch").exit_code == 2


def test_a_registry_and_its_clock() -> None:
    """The release of a registry is named and its clock compared; a registry that does not answer is an error."""
    with registry(port=0) as box:
        rows = find_results("--registry", box.url)
        assert rows["REGISTRY"]["detail"].startswith(f"{box.url}: Stele ")
        assert rows["CLOCK_SKEW"]["state"] == "ok"
    assert "no registry answers" in find_results("--registry", "http://127.0.0.1:1", code=1)["REGISTRY"]["detail"]


def test_skews_of_clocks() -> None:
    """A skew of some seconds is fine, a larger one a warning, a minute an error; a server may not send its time."""
    dated, then = "Mon, 23 Nov 2026 06:00:00 GMT", 1_795_413_600.0
    states = [check_skew(dated, then + seconds).state for seconds in (0, -4, 10, -70)]
    assert states == [CheckState.OK, CheckState.OK, CheckState.WARNING, CheckState.ERROR]
    assert check_skew(dated, then - 70).detail == "this clock is 70 s behind the registry"
    assert check_skew("", then).state is CheckState.WARNING


def test_every_extra_is_checked() -> None:
    """The table of extras has all extras of the project, except those for development and demonstration."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        extras = set(tomllib.load(file)["project"]["optional-dependencies"])
    assert set(checks.EXTRAS) == extras - {"dev", "demo"}


def test_extras_that_are_not_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing extra is fine, an incomplete one is a warning; both name the command that installs it."""
    monkeypatch.setattr(checks, "is_installed", lambda module: module != "lxml")
    half = checks.check_extra("xsd")
    monkeypatch.setattr(checks, "is_installed", lambda module: False)
    none = checks.check_extra("xsd")
    assert (half.state, half.detail, none.state) == (CheckState.WARNING, "xsd: lxml missing", CheckState.OK)
    assert half.fix == none.fix == "pip install 'stele-registry[xsd]'"


def test_versions_are_compared_with_their_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Versions are compared as numbers, and a package outside its limits is an error."""
    for version, limits, fits in (
        ("4.10.0", ">=4.0,<4.11", True),
        ("4.4", ">=4.0,<4.4", False),
        ("3.0.0rc1", ">=2.2,<3", False),
        ("2.0.0", "==2", True),
        ("1.5", "", True),
    ):
        assert checks.is_within(version, limits) is fits, (version, limits)
    assert checks.check_versions().state is CheckState.OK
    assert ("typer", "<0.29,>=0.16") in checks.read_requirements()
    monkeypatch.setattr(checks, "read_requirements", lambda: [("typer", ">=999")])
    assert checks.check_versions().state is CheckState.ERROR


def test_java_python_and_clock(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A missing or old Java, a Python that is too new, and a clock in the past are found."""
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert "Java 11.0.2" in checks.check_java().detail
    assert checks.check_java().state is CheckState.ERROR
    java.unlink()
    assert checks.check_java().state is CheckState.ERROR
    assert checks.check_python((3, 14, 0)).state is CheckState.WARNING
    assert checks.check_clock(0.0).state is CheckState.ERROR
