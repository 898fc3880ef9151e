"""Tests of the MySQL store without a server: URLs, credentials, and the errors when no server answers."""

from __future__ import annotations

import asyncio
import ssl
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from tests.support.server_process import free_port

from stele.errors import InvalidRequest, NotInstalled, StoreError
from stele.storage import find_driver, open_log
from stele.storage.mysql.url import connect_options


@pytest.mark.parametrize(
    "url",
    [
        "mysql:",
        "mysql:/x",
        "mysql:///x",
        "mysql://me:sesame@host",
        "mysql://me:sesame@host/",
        "mysql://me:sesame@host/a/b",
        "mysql://me:sesame@host:port/x",
        "mysql://me:sesame@host/x?sslmode=required",
        "mysql://me:sesame@host/x?ssl-mode=perhaps",
        "mysql://me:sesame@host/x?ssl-mode=required&ssl-mode=disabled",
        "mysql://me:sesame@host/x?ssl-ca",
        "mysql://me:sesame@host/x?connect-timeout=0",
        "mysql://me:sesame@host/x#y",
    ],
)
async def test_malformed(url: str) -> None:
    """The error for a malformed URL shows the right form and repeats nothing of the URL."""
    with pytest.raises(InvalidRequest, match=r"mysql://user@host:3306/database") as caught:
        await open_log(url)
    assert "sesame" not in str(caught.value)


def test_options_of_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """The URL has priority over the environment; percent escapes stand for any character."""
    monkeypatch.setenv("STELE_STORE_USER", "other")
    monkeypatch.setenv("STELE_STORE_PASSWORD", "open")
    options = connect_options("mysql://m%40e:ses%2Fame@host:3307/x?connect-timeout=3&unix-socket=/run/my.sock")
    assert options == {
        "host": "host", "port": 3307, "user": "m@e", "password": "ses/ame", "database": "x", "connect_timeout": 3,
        "unix_socket": "/run/my.sock",
    }  # fmt: skip
    options = connect_options("mariadb://host/x")
    assert (options["user"], options["password"], options["port"]) == ("other", "open", 3306)


@pytest.mark.parametrize(
    ("mode", "verifies", "checks_host"),
    [
        ("required", ssl.CERT_NONE, False),
        ("verify_ca", ssl.CERT_REQUIRED, False),
        ("verify_identity", ssl.CERT_REQUIRED, True),
    ],
)
def test_tls(mode: str, verifies: ssl.VerifyMode, checks_host: bool) -> None:
    """Each TLS mode verifies the certificate like MySQL's own clients."""
    context = connect_options(f"mysql://host/x?ssl-mode={mode}")["ssl"]
    assert (context.verify_mode, context.check_hostname) == (verifies, checks_host)
    assert connect_options("mysql://host/x?ssl-mode=disabled")["ssl_disabled"] is True


def test_certificates_that_cannot_be_read(tmp_path: Path) -> None:
    """The error for an unreadable certificate names the reason."""
    with pytest.raises(InvalidRequest, match=r"certificates of the MySQL store cannot be read: No such file"):
        connect_options(f"mysql://host/x?ssl-ca={tmp_path}/none.pem")


async def test_nobody_answers() -> None:
    """When no server answers, one sentence names the store and the reason, without the password."""
    port = free_port()
    with pytest.raises(StoreError) as caught:
        await open_log(f"mysql://me:sesame@127.0.0.1:{port}/x")
    assert str(caught.value) == (
        f"The store mysql://127.0.0.1:{port}/x cannot be reached: Can't connect to MySQL server on '127.0.0.1'"
        " ([Errno 111] Connection refused)"
    )


@pytest.mark.parametrize("step", ["open_log", "open_files", "inspect"])
async def test_without_its_library(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the client library, every use names the extra to install."""
    for name in [name for name in sys.modules if name.startswith("stele.storage.mysql.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pymysql", None)
    use = getattr(find_driver("mysql://host/x"), step)
    with pytest.raises(NotInstalled, match=r"PyMySQL is not installed: pip install 'stele-registry\[mysql\]'"):
        await asyncio.to_thread(lambda: asyncio.run(_call(use)))


async def _call(use: Callable[[str], Any]) -> None:
    done = use("mysql://host/x")
    if isinstance(done, Coroutine):
        await done
