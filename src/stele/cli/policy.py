"""`stele policy`: what a new schema must satisfy in a subject, a namespace or the whole registry, exactly."""

from __future__ import annotations

from typing import Annotated

import typer

from stele.cli.connect import DEFAULT_URLS, connect
from stele.cli.output import Output, OutputOption, UrlOption, exit_on_error, print_json
from stele.client.request import JSON, Effect, Request, build_path, encode_body, json_decoder
from stele.core.policy import find_policy
from stele.core.policy_json import PolicyJson
from stele.errors import InvalidRequest
from stele.service.policies import PolicyAnswer, PolicyChange

app = typer.Typer(
    help="What a new schema must satisfy in a subject, a namespace or the whole registry, exactly.",
    no_args_is_help=True,
)

Name = Annotated[
    str,
    typer.Argument(metavar="[NAME]", help="subject, :.namespace:subject, or :.namespace: alone; else the registry."),
]

_answer = json_decoder(PolicyAnswer)


@app.command("show")
def show(name: Name = "", url: UrlOption = DEFAULT_URLS, output: OutputOption = Output.TEXT) -> None:
    """The policy in force, where it comes from, and the rulesets that decide."""
    _send_and_print(Request("GET", _policy_path(name), _answer, subject=name), url, output)


@app.command("set")
def change(
    name: Name = "",
    level: Annotated[str, typer.Option(help="A common policy: NONE, BACKWARD, FULL_TRANSITIVE …")] = "",
    backward: Annotated[
        str, typer.Option(help="Versions whose data a new schema must read: none, latest, all, since:N.")
    ] = "",
    forward: Annotated[str, typer.Option(help="Versions that must read a new schema's data; as --backward.")] = "",
    deny_all: Annotated[bool, typer.Option("--deny-all", help="Let no further version in.")] = False,
    checker: Annotated[
        list[str] | None, typer.Option(help="A validator asked in addition: lint, lint:RULE …; repeatable.")
    ] = None,
    ruleset: Annotated[str, typer.Option(help="The ruleset to prefer: NAME or NAME@VERSION.")] = "",
    expect: Annotated[str, typer.Option(help="Only if this common policy is in force now.")] = "",
    url: UrlOption = DEFAULT_URLS,
    output: OutputOption = Output.TEXT,
) -> None:
    """Replace policy and ruleset; what is not named is no longer set here."""
    with exit_on_error():
        directions = (backward or "none", forward or "none") if backward or forward else None
        policy = _build_policy(level, directions, deny_all=deny_all, checkers=tuple(checker or ()))
        expected = PolicyJson.from_policy(find_policy(expect)) if expect else None
        wanted = PolicyChange(policy, ruleset or None, expected)
        if wanted == PolicyChange(expected=expected):
            raise InvalidRequest("name a policy or a ruleset to set; `stele policy clear` removes both")
    body = encode_body(wanted)
    _send_and_print(
        Request("PUT", _policy_path(name), _answer, body=body, media=JSON, effect=Effect.WRITE, subject=name),
        url,
        output,
    )


@app.command("clear")
def clear(name: Name = "", url: UrlOption = DEFAULT_URLS, output: OutputOption = Output.TEXT) -> None:
    """Leave policy and ruleset to the level above; prints what is in force then."""
    _send_and_print(Request("DELETE", _policy_path(name), _answer, effect=Effect.WRITE, subject=name), url, output)


def _policy_path(name: str) -> str:
    return build_path("api", "policies", name) if name else build_path("api", "policies")


def _build_policy(
    level: str, directions: tuple[str, str] | None, *, deny_all: bool, checkers: tuple[str, ...]
) -> PolicyJson | None:
    if sum((bool(level), directions is not None, deny_all)) > 1:
        raise InvalidRequest("--level, --deny-all, and --backward with --forward exclude one another")
    if deny_all:
        return PolicyJson("deny_all", validators=checkers)
    if level:
        named = PolicyJson.from_policy(find_policy(level))
        return PolicyJson(named.kind, named.backward, named.forward, checkers)
    if directions is not None:
        return PolicyJson("directional", *directions, checkers)
    return PolicyJson("allow_any", validators=checkers) if checkers else None


def _send_and_print(request: Request[PolicyAnswer], url: list[str], output: Output) -> None:
    with connect(url) as client:
        answer = client.send(request)
    if output is Output.JSON:
        print_json(answer)
        return
    policy = answer.policy
    typer.echo(f"policy      {answer.name or policy.kind} (set by: {answer.source})")
    typer.echo(f"backward    {policy.backward}")
    typer.echo(f"forward     {policy.forward}")
    typer.echo(f"checkers    {', '.join(policy.validators) or '-'}")
    typer.echo(f"judged by   {', '.join(f'{name} {full}' for name, full in sorted(answer.rulesets.items()))}")
