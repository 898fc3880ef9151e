"""`stele check`: check new versions of schemas against earlier ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stele.cli.completion import complete_subject
from stele.cli.connect import RegistryOptions, connect
from stele.cli.files import FormatOption, read_references
from stele.cli.options import expand_dataclass
from stele.cli.output import AllOption, exit_on_error, print_error
from stele.cli.reports import (
    ReportOutput,
    ReportOutputOption,
    ReportToOption,
    check_headline,
    exit_code,
    write_reports,
)
from stele.core.findings import WhenUndecided
from stele.core.policy import Policy, find_policy
from stele.errors import InvalidRequest
from stele.review.files import read_file
from stele.review.report import FileReport, Outcome
from stele.review.workspace import CheckOptions, ReviewTarget, check_targets, open_sources, open_targets
from stele.service.check import NamedText

if TYPE_CHECKING:
    from stele.client import SchemaReference


AgainstOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FILE|FOLDER|FOLDER#REF",
        help="An earlier version: a file, a folder, or a git commit such as .git#main. Repeat it, oldest first.",
    ),
]
ReferenceOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=FILE",
        help="NAME=FILE of a schema that others refer to; with --subject also NAME=SUBJECT:VERSION. Repeatable.",
    ),
]

PolicyOption = Annotated[
    str | None,
    typer.Option(
        help="BACKWARD, FORWARD, FULL, their _TRANSITIVE forms, or NONE. Default: the policy"
        " of the subject or of schemas.toml."
    ),
]
RulesetOption = Annotated[
    str | None,
    typer.Option(
        help="Ruleset of the format. NAME@VERSION fixes its version. Default: the default ruleset of the format."
    ),
]


@expand_dataclass
def check(
    files: Annotated[
        list[Path] | None, typer.Argument(help="Schema files, or folders of them; - for standard input.")
    ] = None,
    *,
    registry: RegistryOptions,
    against: AgainstOption = None,
    subject: Annotated[
        str | None,
        typer.Option(help="Compare with this subject of the registry.", autocompletion=complete_subject),
    ] = None,
    policy: PolicyOption = None,
    ruleset: RulesetOption = None,
    undecided: Annotated[
        WhenUndecided, typer.Option(help="What to do if no rule can decide. If allowed, it is a warning.")
    ] = WhenUndecided.REFUSE,
    allow_first: Annotated[
        bool, typer.Option("--allow-first", help="Succeed if the schemas are valid and have no earlier version.")
    ] = False,
    schema_format: FormatOption = None,
    reference: ReferenceOption = None,
    all_findings: AllOption = False,
    output: ReportOutputOption = ReportOutput.TEXT,
    to: ReportToOption = None,
) -> None:
    """Check schema files against earlier versions: files, a git commit, or a subject of a registry.

    References among the files of a folder are resolved. A folder with schemas.toml is checked by the policies in that
    file.

    Exit code 0: compatible; 1: findings; 2: invalid schema file, nothing to compare with, or invalid arguments.
    """
    with exit_on_error():
        if not files:
            raise InvalidRequest("name a schema file or a folder")
        wanted = find_policy(policy) if policy is not None else None
        targets = open_targets(files, schema_format)
        if subject is None:
            options = CheckOptions(wanted, ruleset, undecided, read_references(reference))
            reports = check_targets(targets, open_sources(against or (), targets, schema_format), options)
        else:
            if against or len(targets) != 1:
                raise InvalidRequest("--subject compares one file with a registry: leave out --against and other files")
            reports = [_check_subject(targets[0], subject, registry, wanted, ruleset, undecided, reference)]
        write_reports(reports, output, to, check_headline, everything=all_findings)
    code = exit_code(reports)
    if code == 0 and not allow_first and all(report.outcome is Outcome.UNCOMPARED for report in reports):
        print_error(
            "error:", "nothing was compared: name --against or --subject, or accept a first version by --allow-first"
        )
        code = 2
    raise typer.Exit(code)


def _check_subject(
    target: ReviewTarget,
    subject: str,
    options: RegistryOptions,
    policy: Policy | None,
    ruleset: str | None,
    undecided: WhenUndecided,
    references: list[str] | None,
) -> FileReport:
    from stele.review.subject import SubjectCheck

    by_hand: list[NamedText | SchemaReference] = [_read_reference(text) for text in references or ()]
    with connect(options) as client:
        return SubjectCheck(client, subject, by_hand, policy, ruleset, undecided).check(target)


def _read_reference(text: str) -> NamedText | SchemaReference:
    """Return a reference given as NAME=FILE or NAME=SUBJECT:VERSION. Raises `InvalidRequest`."""
    from stele.review.registry import parse_reference

    name, equals, place = text.partition("=")
    if not name or not equals or not place:
        raise InvalidRequest(f"--reference {text!r}: write NAME=FILE or NAME=SUBJECT:VERSION")
    return NamedText(name, read_file(Path(place))) if Path(place).is_file() else parse_reference(name, place)
