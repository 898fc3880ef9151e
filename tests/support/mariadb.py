"""A real MariaDB server, of the system's packages."""

from __future__ import annotations

import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pymysql
from tests.support.database_process import data_folder, run_program, start_program
from tests.support.server_process import free_port

__all__ = ["MariadbServer", "mariadb"]

_START = 60.0  # seconds
_SETTINGS = {
    "bind-address": "127.0.0.1",
    "max-connections": "250",
    "innodb-buffer-pool-size": "64M",
    "innodb-flush-log-at-trx-commit": "2",  # no machine is switched off here; killed processes lose nothing
    "skip-name-resolve": "ON",
}


class MariadbServer:
    """One server, whose superuser is `admin`. It can be stopped and started again."""

    def __init__(self, folder: Path) -> None:
        install = shutil.which("mariadb-install-db")
        assert install is not None, "MariaDB is not installed: apt-get install mariadb-server"
        self.folder = folder
        self.data = folder / "data"
        self.port = free_port()
        self.password = secrets.token_hex(8)
        self._process: subprocess.Popen[bytes] | None = None
        run_program(install, "--no-defaults", f"--datadir={self.data}", "--auth-root-authentication-method=normal")
        (folder / "init.sql").write_text(
            f"CREATE USER IF NOT EXISTS admin@'%' IDENTIFIED BY '{self.password}';\n"
            "GRANT ALL ON *.* TO admin@'%' WITH GRANT OPTION;\n"
        )
        (folder / "init.sql").chmod(0o644)

    def url(self, database: str, user: str = "admin", password: str | None = None) -> str:
        """The URL of a database."""
        return f"mysql://{user}:{password or self.password}@127.0.0.1:{self.port}/{database}"

    def execute(self, *statements: str, database: str | None = None) -> list[Any]:
        """Run statements as the superuser; the rows of the last one."""
        connection = pymysql.connect(
            host="127.0.0.1", port=self.port, user="admin", password=self.password, database=database, autocommit=True
        )
        rows: list[Any] = []
        with closing(connection), connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
                rows = list(cursor.fetchall())
        return rows

    def create_database(self) -> str:
        """Make a new, empty database; its name."""
        name = f"d{secrets.token_hex(6)}"
        self.execute(f"CREATE DATABASE {name}")
        return name

    def dump(self, database: str) -> str:
        """What `mariadb-dump` writes."""
        return self._run_tool("mariadb-dump", "--single-transaction", "--hex-blob", database, given="")

    def restore(self, database: str, dumped: str) -> None:
        """Read what `mariadb-dump` wrote."""
        self._run_tool("mariadb", database, given=dumped)

    def _run_tool(self, name: str, *arguments: str, given: str) -> str:
        address = ["--no-defaults", "--protocol=tcp", "--host=127.0.0.1", f"--port={self.port}"]
        command = [name, *address, "--user=admin", f"--password={self.password}", *arguments]
        done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start(self, **settings: str) -> None:
        """Start, and wait until it answers."""
        options = [f"--{name.replace('_', '-')}={value}" for name, value in {**_SETTINGS, **settings}.items()]
        program = shutil.which("mariadbd") or "/usr/sbin/mariadbd"
        command = [program, "--no-defaults", f"--datadir={self.data}", f"--port={self.port}", *options]
        command += [f"--socket={self.folder}/socket", f"--init-file={self.folder}/init.sql", "--log-warnings=1"]
        self._process = start_program(*command, output=self.folder / "server.log")
        deadline = time.monotonic() + _START
        while True:
            try:
                self.execute("SELECT 1")
                return
            except pymysql.OperationalError:
                assert self._process.poll() is None, (self.folder / "server.log").read_text()
                assert time.monotonic() < deadline, (self.folder / "server.log").read_text()
                time.sleep(0.05)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """Stop in order (SIGTERM), or as in a crash (SIGKILL)."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(60)
            self._process = None


@contextmanager
def mariadb(**settings: str) -> Iterator[MariadbServer]:
    """A running server, stopped at the end."""
    with data_folder("mariadb") as folder:
        server = MariadbServer(folder)
        try:
            server.start(**settings)
            yield server
        finally:
            server.stop()
