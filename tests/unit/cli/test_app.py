"""The `stele` command itself."""

from __future__ import annotations

from typer.testing import CliRunner

from stele import __version__
from stele.cli.app import app
from stele.storage.drivers import list_schemes


def test_the_version() -> None:
    """`--version` works without a command."""
    done = CliRunner().invoke(app, ["--version"])
    assert (done.exit_code, done.stdout) == (0, f"stele {__version__}\n")


def test_a_store_of_no_kind() -> None:
    """A store with an unknown scheme ends `serve` before the server starts, with one sentence and exit code 2."""
    done = CliRunner().invoke(app, ["serve", "--store", "nonsense://x"])
    assert (done.exit_code, done.stdout) == (2, "")
    kinds = ", ".join(f"{scheme}:" for scheme in list_schemes())
    assert done.stderr == f"error: 'nonsense:' is not a kind of store; known are {kinds}\n"


def test_help_is_in_groups() -> None:
    """`-h` lists all commands under the headings of their groups, and no help text has a brace or `<bool>`."""
    help_text = CliRunner().invoke(app, ["-h"]).stdout
    headings = ["Local", "Registry", "Stored data", "Pipelines", "Administration"]
    places = [help_text.index(f"─ {heading} ─") for heading in headings]
    assert places == sorted(places)
    for words in (["schema", "register"], ["check"], ["serve"], ["import", "topic"]):
        text = CliRunner().invoke(app, ["help", *words]).stdout
        assert not set("{<") & set(text), words
        assert text == CliRunner().invoke(app, [*words, "-h"]).stdout


def test_help_of_what_is_not_there() -> None:
    """`stele help` of an unknown command ends with 2 and suggests the nearest command."""
    done = CliRunner().invoke(app, ["help", "shema"])
    assert done.exit_code == 2
    assert "Did you mean 'schema'" in done.stderr


def test_version_is_a_command() -> None:
    """`stele version` prints the same as `--version`."""
    assert CliRunner().invoke(app, ["version"]).stdout == f"stele {__version__}\n"
