"""Programs of databases, run as the user `nobody` where the tests run as root: they refuse to run as root."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Final, TypeVar

from tests.support.server_process import free_port

__all__ = ["DatabaseServer", "data_folder", "run_program", "serving_database", "start_program"]

_START: Final = 240.0
"""Longest time until a started server answers, in seconds."""


def _identity() -> dict[str, Any]:
    if os.geteuid():
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _environ() -> dict[str, str]:
    """Return the environment variables with a locale that every machine has, for PostgreSQL."""
    return {"LC_ALL": "C", **os.environ}


@contextmanager
def data_folder(name: str) -> Iterator[Path]:
    """Create a folder that the user of the databases owns, yield it, and remove it at the end.

    Folders of pytest are not readable for other users.
    """
    with tempfile.TemporaryDirectory(prefix=f"stele-{name}-", ignore_cleanup_errors=True) as folder:
        if os.geteuid() == 0:
            shutil.chown(folder, "nobody")
        yield Path(folder)


def run_program(*command: str | Path) -> None:
    """Run a program to its end. Raises AssertionError with its output when it fails."""
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        cwd="/",
        env=_environ(),
        **_identity(),
    )
    assert done.returncode == 0, done.stdout + done.stderr


def start_program(*command: str | Path, output: Path) -> subprocess.Popen[bytes]:
    """Start a server whose output is appended to a file."""
    with output.open("ab") as file:
        return subprocess.Popen(
            [str(part) for part in command],
            stdout=file,
            stderr=subprocess.STDOUT,
            cwd="/",
            env=_environ(),
            **_identity(),
        )


class DatabaseServer:
    """A server in a folder of its own, which can be stopped and started again."""

    settings: ClassVar[Mapping[str, str]] = {}
    """Settings of the server. Those given to `start` take precedence."""
    unavailable: ClassVar[type[Exception]] = OSError
    """Exception that `execute` raises while the server does not answer yet."""
    orderly: ClassVar[signal.Signals] = signal.SIGTERM
    """Signal for an orderly and fast shutdown."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.port = free_port()
        self.password = secrets.token_hex(8)
        self._process: subprocess.Popen[bytes] | None = None

    def command_line(self, settings: Mapping[str, str]) -> list[str | Path]:
        """Return the command that starts the server with these settings."""
        raise NotImplementedError

    def execute(self, *statements: str) -> list[Any]:
        """Run statements as the superuser and return the rows of the last one."""
        raise NotImplementedError

    def create_database(self) -> str:
        """Create an empty database and return its name."""
        name = f"d{secrets.token_hex(6)}"
        self.execute(f"CREATE DATABASE {name}")
        return name

    def start(self, **settings: str) -> None:
        """Start the server and wait until it answers."""
        log = self.folder / "server.log"
        self._process = start_program(*self.command_line({**self.settings, **settings}), output=log)
        deadline = time.monotonic() + _START
        while True:
            try:
                self.execute("SELECT 1")
                return
            except self.unavailable:
                assert self._process.poll() is None, log.read_text()
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.05)

    def stop(self, how: signal.Signals | None = None) -> None:
        """Stop the server in order, or with the given signal as in a crash."""
        if self._process is not None:
            self._process.send_signal(self.orderly if how is None else how)
            self._process.wait(240)
            self._process = None


Server = TypeVar("Server", bound=DatabaseServer)


@contextmanager
def serving_database(name: str, build: Callable[[Path], Server], **settings: str) -> Iterator[Server]:
    """Build and start a server in a folder that databases may use, yield it, and stop it at the end."""
    with data_folder(name) as folder:
        server = build(folder)
        try:
            server.start(**settings)
            yield server
        finally:
            server.stop()
