"""`stele policy`: the compatibility policy of a subject, a namespace or the whole registry."""

from __future__ import annotations

from typing import Annotated

import typer

from stele.cli.completion import complete_subject
from stele.cli.connect import RegistryOptions, connect
from stele.cli.options import expand_dataclass
from stele.cli.output import Output, OutputOption, exit_on_error, print_json
from stele.client import SchemaRegistryClient, split_subject
from stele.client.request import JSON, Effect, Request, build_path, encode_body, json_decoder
from stele.core.policy import find_policy
from stele.core.policy_json import PolicyJson
from stele.errors import InvalidRequest
from stele.service.policies import OwnPolicy, PolicyAnswer, PolicyChange

app = typer.Typer(
    help="Show and change the policy for new schemas of a subject, a namespace or the whole registry.",
    no_args_is_help=True,
)

Name = Annotated[
    str,
    typer.Argument(
        help="SUBJECT, :.NAMESPACE:SUBJECT, or :.NAMESPACE: alone. Default: the whole registry.",
        autocompletion=complete_subject,
    ),
]

_answer = json_decoder(PolicyAnswer)


@app.command("show")
@expand_dataclass
def show(registry: RegistryOptions, name: Name = "", output: OutputOption = Output.TEXT) -> None:
    """Show the policy in force, where it comes from, and the rulesets that decide."""
    with connect(registry) as client:
        answer = client.send(Request("GET", _policy_path(name), _answer, subject=name))
        if answer.own == OwnPolicy():
            _require_name(client, name)
    _print_policy(answer, output)


@app.command("set")
@expand_dataclass
def change(
    registry: RegistryOptions,
    name: Name = "",
    level: Annotated[str, typer.Option(help="A common policy: NONE, BACKWARD, FULL_TRANSITIVE …")] = "",
    backward: Annotated[
        str, typer.Option(help="Versions whose data a new schema must read: none, latest, all, since:N.")
    ] = "",
    forward: Annotated[
        str, typer.Option(help="Versions that must read the data of a new schema; written as for --backward.")
    ] = "",
    deny_all: Annotated[bool, typer.Option("--deny-all", help="Refuse every new version.")] = False,
    checker: Annotated[
        list[str] | None, typer.Option(help="Additional validator: lint, lint:RULE …; repeatable.")
    ] = None,
    ruleset: Annotated[str, typer.Option(help="Preferred ruleset: NAME or NAME@VERSION.")] = "",
    expect: Annotated[str, typer.Option(help="Change the policy only if this common policy is in force now.")] = "",
    new: Annotated[bool, typer.Option("--new", help="Allow a subject or namespace that does not exist yet.")] = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """Replace the policy and the ruleset of a level. A setting that is not given is removed from this level."""
    with exit_on_error():
        directions = (backward or "none", forward or "none") if backward or forward else None
        policy = _build_policy(level, directions, deny_all=deny_all, checkers=tuple(checker or ()))
        expected = PolicyJson.from_policy(find_policy(expect)) if expect else None
        wanted = PolicyChange(policy, ruleset or None, expected)
        if wanted == PolicyChange(expected=expected):
            raise InvalidRequest("name a policy or a ruleset to set; `stele policy clear` removes both")
    request = Request(
        "PUT", _policy_path(name), _answer, body=encode_body(wanted), media=JSON, effect=Effect.WRITE, subject=name
    )
    with connect(registry) as client:
        if not new:
            _require_name(client, name)
        answer = client.send(request)
    _print_policy(answer, output)


@app.command("clear")
@expand_dataclass
def clear(registry: RegistryOptions, name: Name = "", output: OutputOption = Output.TEXT) -> None:
    """Remove the policy and the ruleset of a level, and print those of the level above, which are in force then."""
    with connect(registry) as client:
        own = client.send(Request("GET", _policy_path(name), _answer, subject=name)).own
        if own == OwnPolicy():
            _require_name(client, name)
        answer = client.send(Request("DELETE", _policy_path(name), _answer, effect=Effect.WRITE, subject=name))
    _print_policy(answer, output)


def _require_name(client: SchemaRegistryClient, name: str) -> None:
    """Raise `SubjectNotFound` or `InvalidRequest` when a name is neither a subject nor a namespace there."""
    if not name:
        return
    context, subject = split_subject(name)
    if subject:
        client.versions(name, deleted=True)
    elif f".{context}" not in client.contexts():
        raise InvalidRequest(f"namespace {context!r} has no subject; --new sets its policy beforehand")


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


def _print_policy(answer: PolicyAnswer, output: Output) -> None:
    if output is Output.JSON:
        print_json(answer)
        return
    policy = answer.policy
    typer.echo(f"policy      {answer.name or policy.kind} (set by: {answer.source})")
    typer.echo(f"backward    {policy.backward}")
    typer.echo(f"forward     {policy.forward}")
    typer.echo(f"checkers    {', '.join(policy.validators) or '-'}")
    typer.echo(f"judged by   {', '.join(f'{name} {full}' for name, full in sorted(answer.rulesets.items()))}")
