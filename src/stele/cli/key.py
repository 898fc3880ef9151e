"""`stele key`: API keys, with which programs authenticate to a registry."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated, Final

import typer

from stele.cli.connect import RegistryOptions, connect
from stele.cli.options import expand_dataclass
from stele.cli.output import Output, OutputOption, errors, exit_on_error, print_json
from stele.client.request import JSON, Effect, Request, build_path, encode_body, json_decoder
from stele.errors import InvalidRequest
from stele.service.api_keys import ApiKeyOut, ApiKeysOut, CreatedApiKey

app = typer.Typer(
    help="Create, list and revoke API keys, with which programs authenticate to a registry.", no_args_is_help=True
)

_UNITS: Final = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_SPAN = re.compile(r"(\d{1,6})([mhdw])")


@app.command("create")
@expand_dataclass
def create(
    registry: RegistryOptions,
    name: Annotated[str, typer.Argument(help="Name of the caller that the key authenticates.")],
    group: Annotated[list[str] | None, typer.Option(help="Group of the caller; repeatable.")] = None,
    expires: Annotated[
        str | None,
        typer.Option(help="When the key expires: 90d, 12h, 2w, or a time (2027-01-01T00:00:00Z). Default: never."),
    ] = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Create an API key and print it. The key cannot be printed again."""
    with exit_on_error():
        wanted = {"name": name, "groups": group or [], "expires": expires and parse_expiry(expires, datetime.now(UTC))}
    path = build_path("api", "access", "keys")
    body = encode_body(wanted)
    with connect(registry) as client:
        # A second attempt would create a second key. The client never repeats a deletion, so this is sent as one.
        api_key = client.send(
            Request(
                "POST", path, json_decoder(CreatedApiKey), body=body, media=JSON, effect=Effect.DELETE, subject=name
            )
        )
    if output is Output.JSON:
        print_json(api_key)
        return
    typer.echo(api_key.key)
    until = f"until {api_key.expires:%Y-%m-%d %H:%M} UTC" if api_key.expires else "until it is revoked"
    errors.print(
        f"key {api_key.id} of {api_key.name}, {until}: keep it, it is not shown again", highlight=False, markup=False
    )


@app.command("list")
@expand_dataclass
def list_keys(registry: RegistryOptions, output: OutputOption = Output.TEXT) -> None:
    """List keys without their secrets: all of them, or your own."""
    with connect(registry) as client:
        listing = client.send(Request("GET", build_path("api", "access", "keys"), json_decoder(ApiKeysOut)))
    if output is Output.JSON:
        print_json(listing)
        return
    for key in listing.keys:
        expires = f"{key.expires:%Y-%m-%d %H:%M}" if key.expires else "never"
        groups = ",".join(key.groups) or "-"
        typer.echo(f"{key.id}  {key.name}  groups: {groups}  created: {key.created:%Y-%m-%d}  expires: {expires}")


@app.command("revoke")
@expand_dataclass
def revoke(
    registry: RegistryOptions,
    key_id: Annotated[str, typer.Argument(metavar="ID", help="Id of the key: the part of the key after `stele_`.")],
) -> None:
    """Revoke a key. Requests with it are rejected from now on."""
    path = build_path("api", "access", "keys", key_id)
    with connect(registry) as client:
        key = client.send(Request("DELETE", path, json_decoder(ApiKeyOut), effect=Effect.DELETE, subject=key_id))
    typer.echo(f"revoked {key.id} of {key.name}")


def parse_expiry(text: str, now: datetime) -> datetime:
    """Return when a key expires. Raises `InvalidRequest` for a text that is neither a duration nor a time."""
    match = _SPAN.fullmatch(text)
    try:
        if match:
            return now + timedelta(**{_UNITS[match[2]]: int(match[1])})
        time = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        raise InvalidRequest(
            f"{text!r} is neither a length of time such as 90d nor a time such as 2027-01-01T00:00:00Z"
        ) from None
    return time if time.tzinfo else time.replace(tzinfo=UTC)
