"""`stele access`: the access rules of a registry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from stele.cli.connect import RegistryOptions, connect
from stele.cli.options import expand_dataclass
from stele.cli.output import Output, OutputOption, console, exit_on_error, print_json
from stele.client.request import JSON, Effect, Request, build_path, build_query, encode_body, json_decoder
from stele.core.access import ANYBODY, AccessRule
from stele.core.access_rule_text import parse_resource_words, parse_rule_words, print_rule, print_words
from stele.service.access_rules import AccessExplanation, AccessRuleInfo, RuleList

app = typer.Typer(help="List, add and remove access rules, and explain decisions.", no_args_is_help=True)

PrincipalName = Annotated[
    str, typer.Argument(metavar="USER", help="NAME, user:NAME, group:NAME, or * for all callers.")
]
Operations = Annotated[str, typer.Argument(help="Operations and roles, separated by commas: writer,delete.")]
ResourceWords = Annotated[
    list[str],
    typer.Argument(
        metavar="RESOURCE...",
        help="registry, namespace NAME, subject NAME [in NAMESPACE] or key NAME; * and ? are wildcards.",
    ),
]
DenyOption = Annotated[
    bool, typer.Option("--deny", help="Make a rule that denies. It takes precedence over all rules that allow.")
]


@dataclass(frozen=True)
class RuleOptions:
    """The arguments and options that describe one access rule."""

    principal: PrincipalName
    operation: Operations
    resource: ResourceWords
    deny: DenyOption = False

    def make_rule(self) -> AccessRule:
        """Return the rule. Raises `InvalidRequest`."""
        operations = tuple(self.operation.split(","))
        return parse_rule_words(self.resource, _name_principal(self.principal), operations, allow=not self.deny)


_RULES = build_path("api", "access", "rules")
_rule = json_decoder(AccessRuleInfo)
_rules = json_decoder(RuleList)
_explanation = json_decoder(AccessExplanation)


@app.command("grant")
@expand_dataclass
def grant(
    registry: RegistryOptions,
    words: RuleOptions,
    output: OutputOption = Output.TEXT,
) -> None:
    """Add a rule that allows operations, or denies them with --deny."""
    with exit_on_error():
        rule = words.make_rule()
    body = encode_body({"rule": print_rule(rule)})
    request = Request("POST", _RULES, _rule, body=body, media=JSON, effect=Effect.WRITE)
    with connect(registry) as client:
        answer = client.send(request)
        is_void = rule.allow and client.send(Request("GET", _RULES, _rules)).default == "allow"
    _print_rule("Added", answer, output)
    if is_void and output is Output.TEXT:
        _print_line("The server runs with access=allow, so a rule that allows changes nothing where no other denies.")


@app.command("revoke")
@expand_dataclass
def revoke(
    registry: RegistryOptions,
    words: RuleOptions,
    output: OutputOption = Output.TEXT,
) -> None:
    """Remove a rule that was added with the same words."""
    with exit_on_error():
        rule = words.make_rule()
    request = Request("DELETE", _RULES, _rule, build_query({"rule": print_rule(rule)}), effect=Effect.WRITE)
    with connect(registry) as client:
        answer = client.send(request)
    _print_rule("Removed", answer, output)


@app.command("list")
@expand_dataclass
def list_rules(registry: RegistryOptions, output: OutputOption = Output.TEXT) -> None:
    """Print the rules in force and the source of each."""
    with connect(registry) as client:
        answer = client.send(Request("GET", _RULES, _rules))
    if output is Output.JSON:
        print_json(answer)
        return
    for row in answer.rules:
        _print_line(f"{row.rule}  ({row.source})")
    if answer.super_users:
        _print_line(f"Super users: {', '.join(answer.super_users)}")
    _print_line(f"Where no rule matches: {answer.default}")


@app.command("explain")
@expand_dataclass
def explain(
    registry: RegistryOptions,
    principal: PrincipalName,
    operation: Annotated[str, typer.Argument(help="Operation, such as register.")],
    resource: ResourceWords,
    group: Annotated[list[str] | None, typer.Option(help="A group of the user; repeatable.")] = None,
    host: Annotated[str, typer.Option(help="Address that the request comes from.")] = "",
    output: OutputOption = Output.TEXT,
) -> None:
    """Print whether a user may perform an operation, and which rule decides. The exit code is 1 if it is denied."""
    with exit_on_error():
        parse_resource_words(resource)
    parameters = {
        "principal": _name_principal(principal),
        "operation": operation,
        "resource": print_words(resource),
        "host": host or None,
    }
    query = "&".join([build_query(parameters), *(build_query({"group": name}) for name in group or ())])
    with connect(registry) as client:
        answer = client.send(Request("GET", build_path("api", "access", "explain"), _explanation, query))
    if output is Output.JSON:
        print_json(answer)
    else:
        _print_line(f"{'Allowed' if answer.allowed else 'Denied'}: {answer.why}{_describe_source(answer)}.")
    if not answer.allowed:
        raise typer.Exit(1)


def _name_principal(user: str) -> str:
    return user if user == ANYBODY or user.startswith(("user:", "group:")) else f"user:{user}"


def _describe_source(answer: AccessExplanation) -> str:
    return f" ({answer.source})" if answer.source else ""


def _print_rule(verb: str, answer: AccessRuleInfo, output: Output) -> None:
    if output is Output.JSON:
        print_json(answer)
    else:
        _print_line(f"{verb}: {answer.rule}")


def _print_line(text: str) -> None:
    console.print(text, highlight=False, markup=False, soft_wrap=True)
