"""Modules that commands load. A command that loads modules it does not need starts slowly."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from stele.cli.app import COMMANDS, app
from stele.cli.command_group import load_command

SCHEMA = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}'
_RUN = """
import json, sys
sys.argv = ["stele", *sys.argv[1:]]
from stele.cli import main
try:
    main()
except SystemExit as end:
    assert not end.code, end
loaded = sorted({name for name in sys.modules} & set(BANNED))
sys.stderr.write(json.dumps(loaded))
"""
SERVER = {"litestar", "uvicorn", "httpx", "prometheus_client", "structlog", "stele.server", "stele.apis.confluent"}
HEAVY = {"grpc_tools", "pydantic", "pyspark", "pandas", "pyarrow", "numpy", "numba", "lxml", "xmlschema", "jinja2"}


def loaded_modules(banned: set[str], *arguments: str) -> list[str]:
    """Return the banned modules that a command loads."""
    code = _RUN.replace("BANNED", repr(sorted(banned)))
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    modules: list[str] = json.loads(done.stderr)
    return modules


def test_the_version_loads_nothing() -> None:
    """`stele --version` loads no library of the command line."""
    assert loaded_modules(SERVER | HEAVY | {"typer", "rich", "msgspec", "stele.cli.app"}, "--version") == []


def test_a_check_loads_no_server_and_no_other_format(tmp_path: Path) -> None:
    """`stele check` loads the rules and the one format it is about."""
    file = tmp_path / "order.avsc"
    file.write_text(SCHEMA)
    others = {f"stele.formats.{name}" for name in ("protobuf", "jsonschema", "thrift", "xsd")}
    (tmp_path / "beside.proto").write_text('syntax = "proto3"; message M {}')
    unwanted = SERVER | HEAVY | others | {"stele.client", "stele.service.registry"}
    assert loaded_modules(unwanted, "check", "--allow-first", str(file)) == []


def test_a_server_loads_no_optional_part() -> None:
    """`stele serve`, like its help, does not load modules that only formats and jobs need."""
    assert loaded_modules(SERVER | HEAVY, "serve", "--help") == []
    code = f"import stele.server.app, sys; sys.exit(str(sorted(set(sys.modules) & {HEAVY - {'jinja2'}!r}) or ''))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == ""


ENTRIES = {name: entry for panel in COMMANDS.values() for name, entry in panel.items()}


@pytest.mark.parametrize("name", ENTRIES)
def test_paragraphs_of_the_help_are_wrapped_by_the_terminal(name: str) -> None:
    """A paragraph of a help text has no line breaks of its own: a narrow terminal would break its lines twice."""
    command = load_command(name, ENTRIES[name])
    for each in [command, *getattr(command, "commands", {}).values()]:
        assert not re.search(r"[^\n]\n[^\n]", each.help), each.help


@pytest.mark.parametrize("name", ENTRIES)
def test_every_command_of_the_table_is_there(name: str) -> None:
    """Each entry of the command table names an existing command, and the command has a help text."""
    command = load_command(name, ENTRIES[name])
    assert command.name == name
    assert command.help


def test_the_application_lists_all_commands() -> None:
    """Help, completion and the generated docs see commands that are not loaded yet."""
    import typer.main

    root = typer.main.get_command(app)
    assert list(root.commands) == list(ENTRIES)  # type: ignore[attr-defined]
    assert root.commands["schema"].commands["register"].help  # type: ignore[attr-defined]
