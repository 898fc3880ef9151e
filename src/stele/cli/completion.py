"""Shell completion of subjects and versions. The registry is asked with a short timeout; errors complete nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import typer

from stele.cli.connect import options_from
from stele.errors import SteleError

if TYPE_CHECKING:
    from stele.client import SchemaRegistryClient

_SECONDS: Final = 1.0
"""Timeout in seconds for each step of a request that completes a word."""
_MOST: Final = 200
"""Maximum number of subjects that are offered."""


def complete_subject(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the subjects that begin with what was typed; none if the registry does not answer."""
    try:
        with _open_briefly(ctx) as client:
            return client.subjects(subject_prefix=incomplete or None)[:_MOST]
    except SteleError:
        return []


def complete_version(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the versions of the subject that was typed; none if the registry does not answer."""
    # after an option that still lacks its value, arguments are not assigned yet
    subject = ctx.params.get("subject") or next(iter(ctx.args), "")
    if not subject:
        return []
    try:
        with _open_briefly(ctx) as client:
            versions = [*map(str, client.versions(subject)), "latest"]
    except SteleError:
        return []
    return [version for version in versions if version.startswith(incomplete)]


def _open_briefly(ctx: typer.Context) -> SchemaRegistryClient:
    from stele.client import Retry

    return options_from(ctx.params).find_connection(ask=False).open_client(timeout=_SECONDS, retry=Retry(rounds=1))
