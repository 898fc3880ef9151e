"""A real MariaDB server from the packages of the operating system."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any

import pymysql
from tests.support.database_process import DatabaseServer, run_program, serving_database

__all__ = ["MariadbServer", "mariadb"]

_SETTINGS = {
    "bind-address": "127.0.0.1",
    "max-connections": "250",
    "innodb-buffer-pool-size": "64M",
    "innodb-flush-log-at-trx-commit": "2",  # tests kill processes, never the machine; that loses nothing
    "skip-name-resolve": "ON",
}


class MariadbServer(DatabaseServer):
    """One server, whose superuser is `admin`."""

    settings = _SETTINGS
    unavailable = pymysql.OperationalError

    def __init__(self, folder: Path) -> None:
        install = shutil.which("mariadb-install-db")
        assert install is not None, "MariaDB is not installed: apt-get install mariadb-server"
        super().__init__(folder)
        run_program(install, "--no-defaults", f"--datadir={self.data}", "--auth-root-authentication-method=normal")
        (folder / "init.sql").write_text(
            f"CREATE USER IF NOT EXISTS admin@'%' IDENTIFIED BY '{self.password}';\n"
            "GRANT ALL ON *.* TO admin@'%' WITH GRANT OPTION;\n"
        )
        (folder / "init.sql").chmod(0o644)

    def url(self, database: str, user: str = "admin", password: str | None = None) -> str:
        """Return the URL of a database."""
        return f"mysql://{user}:{password or self.password}@127.0.0.1:{self.port}/{database}"

    def execute(self, *statements: str, database: str | None = None) -> list[Any]:
        """Run statements as the superuser and return the rows of the last one."""
        connection = pymysql.connect(
            host="127.0.0.1", port=self.port, user="admin", password=self.password, database=database, autocommit=True
        )
        rows: list[Any] = []
        with closing(connection), connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
                rows = list(cursor.fetchall())
        return rows

    def dump(self, database: str) -> str:
        """Return the dump of a database that `mariadb-dump` writes."""
        return self._run_tool("mariadb-dump", "--single-transaction", "--hex-blob", database, standard_input="")

    def restore(self, database: str, dumped: str) -> None:
        """Restore a database from a dump of `mariadb-dump`."""
        self._run_tool("mariadb", database, standard_input=dumped)

    def _run_tool(self, name: str, *arguments: str, standard_input: str) -> str:
        address = ["--no-defaults", "--protocol=tcp", "--host=127.0.0.1", f"--port={self.port}"]
        command = [name, *address, "--user=admin", f"--password={self.password}", *arguments]
        done = subprocess.run(command, input=standard_input, capture_output=True, text=True, timeout=240, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def command_line(self, settings: Mapping[str, str]) -> list[str | Path]:
        """Return the command that starts the server; see `DatabaseServer.command_line`."""
        options = [f"--{name.replace('_', '-')}={value}" for name, value in settings.items()]
        program = shutil.which("mariadbd") or "/usr/sbin/mariadbd"
        command = [program, "--no-defaults", f"--datadir={self.data}", f"--port={self.port}", *options]
        return [*command, f"--socket={self.folder}/socket", f"--init-file={self.folder}/init.sql", "--log-warnings=1"]


def mariadb(**settings: str) -> AbstractContextManager[MariadbServer]:
    """Run a server and stop it at the end."""
    return serving_database("mariadb", MariadbServer, **settings)
