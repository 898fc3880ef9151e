"""The command itself."""

from __future__ import annotations

from typer.testing import CliRunner

from stele import __version__
from stele.cli.app import app


def test_the_version() -> None:
    """--version needs no command beside it."""
    done = CliRunner().invoke(app, ["--version"])
    assert (done.exit_code, done.stdout) == (0, f"stele {__version__}\n")


def test_a_store_of_no_kind() -> None:
    """A store with an unknown scheme ends the server before it begins: one sentence, exit code 2."""
    done = CliRunner().invoke(app, ["serve", "--store", "nonsense://x"])
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == "error: 'nonsense:' is no kind of store; known are memory:, sqlite:\n"
