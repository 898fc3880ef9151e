"""User and password of a store on a server, where the URL does not name them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from stele.errors import InvalidRequest

__all__ = ["StoreCredentials", "find_credentials"]


class StoreCredentials(NamedTuple):
    """User and password from the environment; None for each that is not set."""

    user: str | None
    password: str | None


def find_credentials(environ: Mapping[str, str] = os.environ) -> StoreCredentials:
    """Read `STELE_STORE_USER`, and `STELE_STORE_PASSWORD` or the file that `STELE_STORE_PASSWORD_FILE` names.

    A line end after the password in the file is removed. Raises `InvalidRequest` for a file that cannot be read.
    """
    password = environ.get("STELE_STORE_PASSWORD")
    file = environ.get("STELE_STORE_PASSWORD_FILE")
    if password is None and file:
        try:
            password = Path(file).read_text(encoding="utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise InvalidRequest(f"STELE_STORE_PASSWORD_FILE: {file} cannot be read: {reason}") from None
    return StoreCredentials(environ.get("STELE_STORE_USER"), password)
