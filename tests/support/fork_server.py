"""Starts commands and servers by forking a process that has loaded them, which saves their imports.

Tests start hundreds of processes of the command line, and most of the processor time of each goes into imports. Each
test process starts one fork server. It imports what the commands need and forks a process for each request over a
socket. A forked process has its own arguments, folder, environment, standard streams and exit code, like a process that
was started normally.

Start a process normally where the test is about the start, and where an environment variable is read by Python or by a
library at import.

`python -m tests.support.fork_server SOCKET` is the fork server. It ends when its standard input ends.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final, NamedTuple, TypeAlias

from tests.support.forked_program import HEAD_BYTES, request_process

LOADED: Final = (
    "IPython",  # PySpark imports it to find out where it runs
    "ipykernel",
    "numba",
    "pyarrow.compute",
    "pyspark.sql.functions",
    "stele.cli.app",
    "stele.cli.serve",
    "stele.formats.avro",
    "stele.formats.jsonschema.canonical",
    "stele.formats.protobuf.canonical",
    "stele.formats.thrift",
    "stele.formats.xsd",
    "stele.review.report",
    "stele.server.app",
    "stele.server.run",
    "stele.service.missing_references",
    "stele.service.text_search",
    "stele.spark.data_audit",
    "stele.spark.engines.vm.encoder",
    "stele.spark.session",
    "stele.storage.files.log",
    "stele.storage.memory",
    "stele.storage.postgres.log",
    "stele.storage.sqlite",
    "stele.testing.log_worker",
    "stele.ui.app",
    "uvicorn.lifespan.on",
    "uvicorn.loops.uvloop",
)
"""Modules that the fork server imports: those that most commands and servers load."""


def can_fork() -> bool:
    """Return whether processes are forked. Only tests on Linux fork; benchmarks start processes as a user does."""
    return sys.platform == "linux" and "PYTEST_VERSION" in os.environ


# --- the process that forks ------------------------------------------------------------------------------------------


class _Task(NamedTuple):
    """Work of a forked process: `stele` with arguments, `-c` with code, or `-m` with a module that has `main`."""

    arguments: list[str]
    folder: str
    environ: dict[str, str]
    streams: list[int]
    has_own_session: bool = False


class _Child(NamedTuple):
    pid: int
    connection: socket.socket


def _receive_task(connection: socket.socket) -> _Task:
    head, streams, _, _ = socket.recv_fds(connection, HEAD_BYTES, 3)
    with connection.makefile("rb") as file:
        request = json.loads(file.read(int.from_bytes(head, "big")))
    return _Task(streams=list(streams), **request)


def _serve(listener: socket.socket) -> _Task | None:
    """Fork a process for each request until standard input ends; return the task in each forked process."""
    selector = selectors.DefaultSelector()
    selector.register(sys.stdin.fileno(), selectors.EVENT_READ)
    selector.register(listener, selectors.EVENT_READ)
    children: dict[int, _Child] = {}
    while True:
        for key, _ in selector.select():
            if key.fileobj is listener:
                connection, _ = listener.accept()
                try:
                    task = _receive_task(connection)
                except (OSError, ValueError):
                    connection.close()
                    continue
                pid = os.fork()
                if pid == 0:
                    selector.close()
                    listener.close()
                    connection.close()
                    for watched, child in children.items():
                        os.close(watched)
                        child.connection.close()
                    return task
                for stream in task.streams:
                    os.close(stream)
                watched = os.pidfd_open(pid)
                children[watched] = _Child(pid, connection)
                selector.register(watched, selectors.EVENT_READ)
                selector.register(connection, selectors.EVENT_READ, watched)
                with contextlib.suppress(OSError):
                    connection.sendall(f"{pid}\n".encode())
            elif key.data is not None:  # the client has closed the connection
                orphan = children.get(key.data)
                if orphan is not None and orphan.connection is key.fileobj:  # the process still runs
                    os.kill(orphan.pid, signal.SIGKILL)
                    selector.unregister(key.fileobj)
            elif isinstance(key.fileobj, int) and key.fileobj in children:
                child = children.pop(key.fileobj)
                _, status = os.waitpid(child.pid, 0)
                selector.unregister(key.fileobj)
                os.close(key.fileobj)
                with contextlib.suppress(KeyError):
                    selector.unregister(child.connection)
                with contextlib.suppress(OSError):
                    child.connection.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
                child.connection.close()
            else:
                for child in children.values():
                    os.kill(child.pid, signal.SIGKILL)
                return None


def _run_task(task: _Task) -> None:
    if task.has_own_session:
        os.setsid()
    for number, stream in enumerate(task.streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(task.folder)
    os.environ.clear()
    os.environ.update(task.environ)
    time.tzset()
    _choose_metrics_late()
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    if task.arguments[0] == "-c":
        sys.argv = ["-c", *task.arguments[2:]]
        sys.path.insert(0, "")
        exec(task.arguments[1], main.__dict__)
    elif task.arguments[0] == "-m":
        sys.argv = task.arguments[1:]
        importlib.import_module(sys.argv[0]).main()
    else:
        sys.argv = task.arguments
        importlib.import_module("stele.cli").main()


def _choose_metrics_late() -> None:
    """Make prometheus-client choose between shared and own values at its first metric, not at its import.

    It chooses shared values where several workers share their metrics.
    """
    values = sys.modules.get("prometheus_client.values")
    if values is None:
        return

    def make_value(*arguments: Any, **more: Any) -> Any:
        values.ValueClass = values.get_value_class()  # type: ignore[attr-defined]
        return values.ValueClass(*arguments, **more)  # type: ignore[attr-defined]

    values.ValueClass = make_value  # type: ignore[attr-defined]


def _main() -> None:
    for name in LOADED:
        with contextlib.suppress(ImportError):  # an environment may have fewer extras
            importlib.import_module(name)
    gc.collect()
    gc.freeze()
    sys.path[:] = [path for path in sys.path if path]
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{sys.argv[1]}.new")
        listener.listen(64)
        os.rename(f"{sys.argv[1]}.new", sys.argv[1])
        task = _serve(listener)
    if task is not None:
        _run_task(task)


# --- the clients of the fork server ----------------------------------------------------------------------------------


class ForkedProcess:
    """A forked process, which is controlled as a `subprocess.Popen` is.

    Attributes:
        stdin: Its standard input, if a pipe was requested.
        stdout: Its standard output, if a pipe was requested.
    """

    def __init__(
        self,
        connection: socket.socket,
        arguments: Sequence[str],
        stdin: IO[bytes] | None = None,
        stdout: IO[bytes] | None = None,
    ) -> None:
        self.args = list(arguments)
        self.stdin = stdin
        self.stdout = stdout
        self.returncode: int | None = None
        self._rest = b""
        self._connection = connection
        self._answers = connection.makefile("rb")
        self.pid = int(self._answers.readline())

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal, or None while the process runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.wait(0)
        return None

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end of the process and return its exit code.

        Raises `subprocess.TimeoutExpired` after `timeout` seconds.
        """
        if self.returncode is None:
            with selectors.DefaultSelector() as selector:
                selector.register(self._connection, selectors.EVENT_READ)
                if not selector.select(timeout):
                    raise subprocess.TimeoutExpired(self.args, timeout or 0)
            self.returncode = int(self._answers.readline())
            self._answers.close()
            self._connection.close()
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[bytes, None]:
        """Wait for the end of the process and return its unread output, which must fit into a pipe.

        Raises `subprocess.TimeoutExpired` after `timeout` seconds.
        """
        if self.stdin is not None:
            with contextlib.suppress(BrokenPipeError):  # it has ended
                self.stdin.close()
        self.wait(timeout)
        if self.stdout is not None and not self.stdout.closed:
            with self.stdout:
                self._rest = self.stdout.read()
        return self._rest, None

    def send_signal(self, number: int) -> None:
        """Send a signal to the process, unless it has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):  # it has ended since
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask the process to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kill the process."""
        self.send_signal(signal.SIGKILL)


class ForkServer:
    """Client of the fork server."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="fork-"))
        self.address = self._folder / "socket"
        command = [sys.executable, "-m", "tests.support.fork_server", str(self.address)]
        root = Path(__file__).parent.parent.parent
        self._process = subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, start_new_session=True)
        self.programs = self._folder / "bin"
        self.programs.mkdir()
        for name in ("python", "stele"):
            program = self.programs / name
            source = Path(__file__).with_name("forked_program.py").read_text(encoding="utf-8")
            program.write_text(f"#!{sys.executable} -IS\n{source}", encoding="utf-8")
            program.chmod(0o755)
        self.environ = {
            "STELE_FORK_SERVER": str(self.address),
            "STELE_FORK_SERVER_PYTHON": sys.executable,
            "STELE_FORK_SERVER_PATH": os.environ.get("PYTHONPATH", ""),
        }
        while not self.address.exists():
            assert self._process.poll() is None, "the process that forks ended"
            time.sleep(0.02)

    def fork_process(
        self, words: Sequence[str], folder: Path, environ: Mapping[str, str], output: IO[bytes] | None
    ) -> ForkedProcess:
        """Fork a process for `start_process`."""
        with open(os.devnull, "rb") as nothing:
            streams = [nothing.fileno(), *([1, 2] if output is None else [output.fileno()] * 2)]
            return ForkedProcess(self._request(words, folder, environ, streams), words)

    def fork_process_with_pipes(self, words: Sequence[str], folder: Path) -> ForkedProcess:
        """Fork a process for `start_process_with_pipes`."""
        reading, writing = os.pipe(), os.pipe()
        try:
            connection = self._request(words, folder, os.environ, [reading[0], writing[1], 2])
        finally:
            os.close(reading[0])
            os.close(writing[1])
        return ForkedProcess(connection, words, open(reading[1], "wb"), open(writing[0], "rb"))

    def _request(
        self, words: Sequence[str], folder: Path, environ: Mapping[str, str], streams: list[int]
    ) -> socket.socket:
        return request_process(str(self.address), list(words), str(folder), environ, streams, has_own_session=True)

    def close(self) -> None:
        """End the process and all that it forked."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)
        shutil.rmtree(self._folder)


@functools.cache
def get_fork_server() -> ForkServer:
    """Return the fork server of this process. The first call starts it, and it ends with this process."""
    server = ForkServer()
    atexit.register(server.close)
    return server


Process: TypeAlias = subprocess.Popen[bytes] | ForkedProcess


def start_process(
    words: Sequence[str],
    folder: Path,
    environ: Mapping[str, str] | None = None,
    output: IO[bytes] | None = None,
    *,
    starts_anew: bool = False,
) -> Process:
    """Start a process in a session of its own; fork it where `can_fork` allows it.

    Args:
        words: `stele` with arguments; or `-c` with code, or `-m` with a module that has `main`, for Python.
        folder: Working directory of the process.
        environ: All its environment variables; None: those of the tests.
        output: File for its standard output and error; None: those of the tests.
        starts_anew: Start a new Python, as for a user, in place of a fork.
    """
    if can_fork() and not starts_anew:
        return get_fork_server().fork_process(words, folder, os.environ if environ is None else environ, output)
    command = _make_command(words)
    return subprocess.Popen(command, cwd=folder, env=environ, start_new_session=True, stdout=output, stderr=output)


def start_process_with_pipes(words: Sequence[str], folder: Path) -> Process:
    """Start a process as `start_process` does, with pipes for its standard input and output."""
    if can_fork():
        return get_fork_server().fork_process_with_pipes(words, folder)
    return subprocess.Popen(_make_command(words), cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def _make_command(words: Sequence[str]) -> list[str]:
    return [sys.executable, *(["-m", "stele.cli", *words[1:]] if words[0] == "stele" else words)]


if __name__ == "__main__":
    _main()
