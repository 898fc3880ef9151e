"""`stele ruleset`: list the rulesets of a registry, report what another version would change, and adopt one."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from stele.cli.connect import RegistryOptions, connect
from stele.cli.options import expand_dataclass
from stele.cli.output import AllOption, Output, OutputOption, print_json, print_rest, print_rows, take_first
from stele.client.request import JSON, Effect, Request, build_path, encode_body, json_decoder
from stele.core.rulesets import split_ruleset
from stele.errors import InvalidRequest
from stele.service.ruleset_impact import ImpactRow, ReportPage, ReportRequest
from stele.service.rulesets import RulesetInfo

app = typer.Typer(help="Show the rulesets of a registry, compare it with others, and adopt them.", no_args_is_help=True)


class _Listing(msgspec.Struct):
    rulesets: list[RulesetInfo]


@app.command("list")
@expand_dataclass
def list_rulesets(registry: RegistryOptions, output: OutputOption = Output.TEXT) -> None:
    """List the rulesets of every format, with the version in force and the newest one installed."""
    with connect(registry) as client:
        rulesets = client.send(Request("GET", "/api/rulesets", json_decoder(_Listing))).rulesets
    if output is Output.JSON:
        print_json(rulesets)
        return
    rows = [
        {
            "format": info.format,
            "ruleset": info.name + (" (default)" if info.default else ""),
            "in force": f"{info.in_force}" if info.installed else f"{info.in_force}, NOT INSTALLED",
            "newest": info.versions[-1].version,
            "looks at": info.versions[-1].summary,
        }
        for info in rulesets
    ]
    print_rows(output, ("format", "ruleset", "in force", "newest", "looks at"), rows)


@app.command("report")
@expand_dataclass
def report(
    registry: RegistryOptions,
    schema_format: Annotated[
        str, typer.Argument(metavar="FORMAT", help="Name of a format. Default: all formats.")
    ] = "",
    ruleset: Annotated[
        str,
        typer.Argument(
            metavar="RULESET", help="NAME@VERSION to compare with. Default: the newest version of every name."
        ),
    ] = "",
    everywhere: Annotated[
        bool, typer.Option("--everywhere", help="Compare as if every subject of the format used the ruleset.")
    ] = False,
    all_rows: AllOption = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """Report which registered versions other rules would judge differently; nothing is changed."""
    rows: list[ImpactRow] = []
    compared = 0
    with connect(registry) as client:
        request: ReportRequest | None = ReportRequest(schema_format, ruleset, everywhere)
        while request is not None:
            body = encode_body(request)
            page = client.send(Request("POST", "/api/rulesets/report", json_decoder(ReportPage), body=body, media=JSON))
            rows += page.rows
            compared += page.compared
            request = msgspec.structs.replace(request, after=page.next) if page.next is not None else None
    if output is Output.JSON:
        print_json(rows)
        return
    for row in take_first(rows, everything=all_rows):
        _print_row(row)
    print_rest(len(rows), everything=all_rows)
    typer.echo(f"{compared} comparisons, {len(rows)} verdicts would change")


def _print_row(row: ImpactRow) -> None:
    name = f":.{row.namespace}:{row.subject}" if row.namespace else row.subject
    typer.echo(
        f"{name} version {row.version}, {row.direction.value} against {row.against}: {row.now} by {row.ruleset_now}, "
        f"{row.then} by {row.ruleset_then}"
    )
    for finding in row.findings:
        typer.echo(f"    {finding.rule} at {finding.path or '/'}: {finding.why}")


@app.command("adopt")
@expand_dataclass
def adopt(
    schema_format: Annotated[str, typer.Argument(metavar="FORMAT", help="Name of the format.")],
    ruleset: Annotated[str, typer.Argument(metavar="RULESET", help="NAME@VERSION, or NAME for its newest version.")],
    registry: RegistryOptions,
    output: OutputOption = Output.TEXT,
) -> None:
    """Adopt a version of a ruleset: it judges the schemas of a format in the whole registry from now on."""
    with connect(registry) as client:
        name, version = split_ruleset(ruleset)
        if not name:
            raise InvalidRequest("give the ruleset to adopt")
        route, body = build_path("api", "rulesets", schema_format, name), encode_body({"version": version})
        request = Request("PUT", route, json_decoder(RulesetInfo), body=body, media=JSON, effect=Effect.WRITE)
        info = client.send(request)
    if output is Output.JSON:
        print_json(info)
    else:
        typer.echo(f"{info.format} schemas are judged by {info.name}@{info.in_force} from now on")
