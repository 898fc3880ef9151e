"""The `stele` command: the table of its commands. The module of a command is imported when the command is used."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from stele import __version__
from stele.cli.command_group import CommandEntry, LazyGroup

COMMANDS: Final = {
    "Local": {
        "check": CommandEntry("stele.cli.check:check", "Check a schema against its earlier versions"),
        "diff": CommandEntry("stele.cli.diff:diff", "List the changes between two schemas"),
        "lint": CommandEntry("stele.cli.lint:lint", "Find weak spots in schema files"),
        "convert": CommandEntry("stele.cli.convert:convert", "Translate a schema into another language"),
        "infer": CommandEntry("stele.cli.convert:infer", "Make a schema from sample values"),
        "example": CommandEntry("stele.cli.convert:example", "Print a value that fits a schema"),
        "fields": CommandEntry("stele.cli.convert:fields", "List all fields of a schema"),
    },
    "Registry": {
        "plan": CommandEntry("stele.cli.plan:plan", "Show what a folder of schemas would change"),
        "apply": CommandEntry("stele.cli.plan:apply", "Make a registry match a folder of schemas"),
        "schema": CommandEntry("stele.cli.schema:app", "Register, list and read schemas"),
        "subject": CommandEntry("stele.cli.subject:app", "List and delete subjects"),
        "history": CommandEntry("stele.cli.history:show_history", "Show the history of a subject"),
        "atlas": CommandEntry("stele.cli.history:show_atlas", "Show the subjects of a namespace and their references"),
        "access": CommandEntry("stele.cli.access:app", "Manage access rules"),
        "policy": CommandEntry("stele.cli.policy:app", "Show and set compatibility policies"),
        "ruleset": CommandEntry("stele.cli.ruleset:app", "Show and adopt versions of the rules"),
    },
    "Stored data": {
        "census": CommandEntry("stele.cli.data_audit:census", "Count the schema versions in stored records"),
        "backtest": CommandEntry("stele.cli.data_audit:backtest", "Read stored records with a proposed schema"),
        "drift": CommandEntry("stele.cli.data_audit:drift", "Find parts of schemas that records never use"),
        "infer-data": CommandEntry("stele.cli.infer_data:infer_data", "Make a schema from files or tables of any size"),
        "reencode": CommandEntry("stele.cli.reencode:reencode", "Rewrite stored records under another schema"),
        "sql": CommandEntry("stele.cli.sql:sql", "Run SQL over registered streams"),
    },
    "Pipelines": {
        "pipeline": CommandEntry("stele.cli.pipeline:app", "Turn registered streams into tables"),
    },
    "Administration": {
        "serve": CommandEntry("stele.cli.serve:serve", "Run a registry"),
        "key": CommandEntry("stele.cli.key:app", "Create and revoke API keys"),
        "status": CommandEntry("stele.cli.status:show_status", "Show the state of a registry"),
        "watch": CommandEntry("stele.cli.watch:watch_changes", "Print changes as they happen"),
        "replicate": CommandEntry("stele.cli.replicate:app", "Replicate between registries"),
        "doctor": CommandEntry("stele.cli.doctor:doctor", "Check the installation, the store and the clock"),
        "import": CommandEntry("stele.cli.migrate:imports", "Copy a whole registry into this one"),
        "export": CommandEntry("stele.cli.migrate:exports", "Write a whole registry to a file or a topic"),
        "backup": CommandEntry("stele.cli.log:back_up", "Copy a store while servers use it"),
        "audit": CommandEntry("stele.cli.audit:app", "Verify and print files of an audit trail"),
        "secrets": CommandEntry("stele.cli.secrets:app", "Seal the secrets in a store, and change their key"),
        "log": CommandEntry("stele.cli.log:app", "Verify and repair the log of a store"),
        "help": CommandEntry("stele.cli.help:show_help", "Show the help of a command"),
        "version": CommandEntry("stele.cli.help:show_version", "Print the version"),
    },
}
"""Commands by name, under the heading of their group in the help."""


class RootGroup(LazyGroup):
    """The commands of `stele`."""

    entries = COMMANDS


app = typer.Typer(
    name="stele",
    cls=RootGroup,
    help="A schema registry that keeps every version, answers in every dialect, and feeds Spark tables.",
    epilog="Exit codes: 0 success · 1 findings, or only part was done · 2 wrong use or an error",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"stele {__version__}")
        raise typer.Exit


@app.callback()
def _accept_root_options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """Do nothing: the options of the command itself act in their callbacks."""
