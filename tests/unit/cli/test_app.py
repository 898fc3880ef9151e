"""The command itself."""

from __future__ import annotations

from typer.testing import CliRunner

from stele import __version__
from stele.cli.app import app


def test_the_version() -> None:
    """--version needs no command beside it."""
    done = CliRunner().invoke(app, ["--version"])
    assert (done.exit_code, done.stdout) == (0, f"stele {__version__}\n")
