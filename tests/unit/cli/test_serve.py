"""Starts of `stele serve` that fail with one line and exit code 2."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
from tests.support.server_process import free_port
from typer.testing import CliRunner

from stele.cli.app import app
from stele.server.addresses import is_loopback
from stele.storage.drivers import list_schemes


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run commands in a folder of the test, and reset logging, which would write to their closed standard error."""
    monkeypatch.chdir(tmp_path)
    yield
    structlog.reset_defaults()


def refuse_start(*flags: str) -> str:
    """Return the standard error of a command that ends with exit code 2 and prints nothing else."""
    done = CliRunner().invoke(app, ["serve", *flags])
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    return done.stderr


def test_a_store_that_cannot_be() -> None:
    """A scheme or file name that is wrong gets a hint, a file that is no store is named."""
    kinds = ", ".join(f"{scheme}:" for scheme in list_schemes())
    assert refuse_start("--store", "sqlit:x.db").endswith(f"known are {kinds}; did you mean 'sqlite'?\n")
    assert refuse_start("--store", "my.db").endswith("did you mean sqlite:///my.db?\n")
    Path("bad.db").write_text("no database, " * 20)
    assert "is not a SQLite database" in refuse_start("--store", "sqlite:///bad.db", "--port", "0")


def test_a_port_that_is_taken() -> None:
    """The error about a port in use names the address, and no store is created."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        message = refuse_start("--store", "sqlite:///new.db", "--port", str(port))
    assert message == f"error: cannot listen on 127.0.0.1:{port}: Address already in use\n"
    assert not Path("new.db").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[servr]\nport = 1\n", "unknown table or key 'servr'; did you mean 'server'?"),
        ("port = 1\n", "unknown table or key 'port'"),
        ("[server]\nprot = 1\n", "unknown key 'prot' in [server]; did you mean 'port'?"),
    ],
)
def test_unknown_settings(text: str, message: str) -> None:
    """An unknown key or table in the configuration file is an error."""
    Path("stele.toml").write_text(text)
    assert refuse_start() == f"error: settings: stele.toml: {message}\n"


def test_addresses_of_this_machine_alone() -> None:
    """Only loopback addresses are recognised as such; all others need authentication or `insecure`."""
    assert all(is_loopback(host) for host in ("127.0.0.1", "127.1.2.3", "::1", "localhost"))
    assert not any(is_loopback(host) for host in ("0.0.0.0", "::", "10.0.0.1", "registry.example.org"))


def test_strangers_are_asked_who_they_are() -> None:
    """An address that other machines can reach needs authentication, also for the port of one dialect."""
    message = refuse_start("--store", "memory:", "--port", "0", "--host", "0.0.0.0")
    assert message == (
        "error: 0.0.0.0 can be reached from other machines without authentication: set `authentication`, or"
        " `insecure` if something else protects it\n"
    )
    own = ["--listen", f"pravega={free_port()}", "--authentication", "pravega:none", "--authentication", "keys"]
    assert "0.0.0.0 (pravega) can be" in refuse_start("--store", "memory:", "--port", "0", "--host", "0.0.0.0", *own)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--authentication", "basik"], "'basik' is not one of none, basic, keys, oidc, mtls; did you mean 'basic'?"),
        (["--authentication", "cncf:basic"], "'cncf:basic' names 'cncf', which has no port of its own (listen)"),
        (["--authentication", "none", "--authentication", "keys"], "none excludes every other method"),
        (["--authentication", "basic"], "needs the setting password_file"),
        (["--authentication", "oidc"], "the keys of an issuer must be fetched by https, not from ''"),
        (["--authentication", "mtls"], "needs the settings tls_certificate and tls_client_ca"),
        (["--tls-key", "x.key"], "TLS needs tls_certificate"),
        (["--tls-certificate", "none.pem"], "cannot use none.pem: No such file or directory"),
    ],
)
def test_authentication_that_cannot_be(flags: list[str], message: str) -> None:
    """A method that is unknown, excluded or lacks its settings ends the start with a sentence."""
    assert message in refuse_start("--store", "memory:", "--port", "0", *flags)
