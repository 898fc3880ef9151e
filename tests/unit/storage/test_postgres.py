"""Tests of the PostgreSQL store without a server: URLs, credentials, and the errors when no server answers."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from tests.support.server_process import free_port

from stele.errors import InvalidRequest, NotInstalled, StoreError
from stele.storage import find_driver, open_log
from stele.storage.credentials import find_credentials
from stele.storage.postgres.database import connect_options


@pytest.mark.parametrize(
    "url",
    [
        "postgresql:",
        "postgresql:/x",
        "postgres:sesame",
        "postgresql://me:sesame@host/x?no_such_parameter=1",
        "postgresql://me:sesame@host/x?sslmode",
    ],
)
async def test_malformed(url: str) -> None:
    """The error for a URL that libpq rejects shows the right form and repeats nothing of the URL."""
    with pytest.raises(InvalidRequest, match=r"postgresql://user@host:5432/database") as caught:
        await open_log(url)
    assert "sesame" not in str(caught.value)


def test_options_of_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parameters of the URL have priority over the environment, and the environment over the defaults of Stele."""
    monkeypatch.setenv("STELE_STORE_USER", "other")
    monkeypatch.setenv("STELE_STORE_PASSWORD", "sesame")
    options = connect_options("POSTGRESQL://me@host:5433/x?sslmode=verify-full&sslrootcert=%2Fca.pem&connect_timeout=3")
    assert (options["user"], options["password"], options["host"], options["port"]) == ("me", "sesame", "host", "5433")
    assert (options["sslmode"], options["sslrootcert"], options["connect_timeout"]) == ("verify-full", "/ca.pem", "3")
    assert options["application_name"] == "stele"
    assert "target_session_attrs" not in options
    assert connect_options("postgres://one,two/x")["target_session_attrs"] == "read-write"
    assert connect_options("postgres://one/x")["user"] == "other"


def test_password_files(tmp_path: Path) -> None:
    """The password is the content of the file without its line end; the error for an unreadable file names it."""
    (tmp_path / "password").write_text("ses ame \n")
    assert find_credentials({}) == (None, None)
    credentials = find_credentials({"STELE_STORE_PASSWORD_FILE": str(tmp_path / "password"), "STELE_STORE_USER": "me"})
    assert credentials == ("me", "ses ame ")
    with pytest.raises(InvalidRequest, match=r"STELE_STORE_PASSWORD_FILE: .*none cannot be read: No such file"):
        find_credentials({"STELE_STORE_PASSWORD_FILE": str(tmp_path / "none")})


async def test_nobody_answers() -> None:
    """When no server answers, one sentence names the store and the reason, without the password."""
    port = free_port()
    with pytest.raises(StoreError) as caught:
        await open_log(f"postgresql://me:sesame@127.0.0.1:{port}/x")
    assert str(caught.value) == (
        f"The store postgresql://127.0.0.1:{port}/x cannot be reached: connection failed: connection to server at"
        f' "127.0.0.1", port {port} failed: Connection refused'
    )


@pytest.mark.parametrize("step", ["open_log", "open_files", "inspect"])
async def test_without_its_library(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the client library, every use names the extra to install."""
    for name in [name for name in sys.modules if name.startswith("stele.storage.postgres.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    use = getattr(find_driver("postgresql://host/x"), step)
    with pytest.raises(NotInstalled, match=r"psycopg is not installed: pip install 'stele-registry\[postgres\]'"):
        await asyncio.to_thread(lambda: asyncio.run(_call(use)))


async def _call(use: Callable[[str], Any]) -> None:
    done = use("postgresql://host/x")
    if isinstance(done, Coroutine):
        await done
