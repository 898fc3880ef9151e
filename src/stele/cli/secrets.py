"""`stele secrets`: seal the passwords and other secrets in a store, and change their key."""

from __future__ import annotations

import asyncio
import base64
import os
from pathlib import Path
from typing import Annotated

import typer

from stele.cli.log import StoreOption
from stele.cli.output import Output, OutputOption, console, exit_on_error, print_json
from stele.errors import InvalidRequest

app = typer.Typer(help="Encrypt the secrets in a store, and change their key.", no_args_is_help=True)

KeysOption = Annotated[
    str,
    typer.Option(
        "--secrets-key",
        envvar="STELE_SECRETS_KEY",
        help="file:/path, env:NAME or kms:type:key-id, separated by commas: the first key"
        " encrypts, all of them decrypt.",
    ),
]


@app.command("create-key")
def create_key(file: Annotated[Path, typer.Argument(help="File to write. It must not exist.")]) -> None:
    """Write a new key into a file that only its owner can read."""
    with exit_on_error():
        try:
            descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError as error:
            raise InvalidRequest(f"{file}: {error.strerror}") from None
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(base64.b64encode(os.urandom(32)) + b"\n")
    console.print(
        f"Wrote {file}. Without this file the secrets cannot be read.", highlight=False, markup=False, soft_wrap=True
    )


@app.command("seal")
def seal(store: StoreOption, secrets_key: KeysOption, output: OutputOption = Output.TEXT) -> None:
    """Seal all secrets that a store holds as plain text, also in old records. Servers may be running on the store.

    A server that has a key does this when it starts.
    """
    _run(store, secrets_key, output, rotate=False)


@app.command("rotate")
def rotate(store: StoreOption, secrets_key: KeysOption, output: OutputOption = Output.TEXT) -> None:
    """Seal all secrets again with the first key. The other keys are not needed afterwards.

    Configure both keys on the servers before, the new one first. A key in a KMS stays: it wraps a new data key.
    """
    _run(store, secrets_key, output, rotate=True)


def _run(store: str, secrets_key: str, output: Output, *, rotate: bool) -> None:
    from stele.server.secret_sealing import seal_store

    with exit_on_error():
        done = asyncio.run(
            seal_store(store, [text.strip() for text in secrets_key.split(",") if text.strip()], rotate=rotate)
        )
    if output is Output.JSON:
        print_json(done._asdict())
        return
    console.print(
        f"{done.documents} documents sealed, and the secrets in {done.records} records of the past",
        highlight=False,
        soft_wrap=True,
    )
