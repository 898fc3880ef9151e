"""The `stele` command and its parts."""

from __future__ import annotations

from typing import Annotated

import typer

from stele import __version__
from stele.cli import (
    check,
    convert,
    data_audit,
    diff,
    infer_data,
    lint,
    migrate,
    pipeline,
    policy,
    reencode,
    ruleset,
    schema,
    serve,
    sql,
    subject,
)

app = typer.Typer(
    name="stele",
    help="A schema registry that keeps every version, answers in every dialect, and feeds Spark tables.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"stele {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """The options of the command itself are done by their callbacks."""


app.command("serve")(serve.serve)
app.command("check")(check.check)
app.command("diff")(diff.diff)
app.command("lint")(lint.lint)
app.command("convert")(convert.convert)
app.command("infer")(convert.infer)
app.command("example")(convert.example)
app.command("fields")(convert.fields)
app.command("census")(data_audit.census)
app.command("backtest")(data_audit.backtest)
app.command("drift")(data_audit.drift)
app.command("sql")(sql.sql)
app.command("infer-data")(infer_data.infer_data)
app.command("reencode")(reencode.reencode)
app.add_typer(schema.app, name="schema")
app.add_typer(subject.app, name="subject")
app.add_typer(policy.app, name="policy")
app.add_typer(ruleset.app, name="ruleset")
app.add_typer(pipeline.app, name="pipeline")
app.add_typer(migrate.imports, name="import")
app.add_typer(migrate.exports, name="export")


def main() -> None:
    """Run the command line."""
    app()
