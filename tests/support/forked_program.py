"""Program in place of `stele` and `python` that lets the fork server do its work (see `fork_server.py`).

It passes signals on to the forked process and ends with its exit code. It starts a new Python for every call of
`python` but `python -c CODE`, and where `PYTHONPATH` differs from that of the fork server.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys
from collections.abc import Mapping, Sequence

PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1)
HEAD_BYTES = 8
"""How many bytes hold the length of a request."""


def request_process(
    address: str,
    arguments: Sequence[str],
    folder: str,
    environ: Mapping[str, str],
    streams: Sequence[int],
    **more: bool,
) -> socket.socket:
    """Ask the fork server for a process and return the connection.

    The connection sends two lines: the process id and later the exit code.
    """
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(address)
    request = {"arguments": list(arguments), "folder": folder, "environ": dict(environ), **more}
    data = json.dumps(request).encode()
    socket.send_fds(connection, [len(data).to_bytes(HEAD_BYTES, "big")], list(streams))
    connection.sendall(data)
    return connection


def main() -> None:
    """Run the program that this one was called as, in a forked process."""
    name, arguments = os.path.basename(sys.argv[0]), sys.argv[1:]
    python = os.environ["STELE_FORK_SERVER_PYTHON"]
    is_elsewhere = os.environ.get("PYTHONPATH", "") != os.environ["STELE_FORK_SERVER_PATH"]
    if name == "python" and (is_elsewhere or len(arguments) != 2 or arguments[0] != "-c"):
        os.execv(python, [python, *arguments])
    if name == "stele" and is_elsewhere:
        os.execv(python, [python, "-m", "stele.cli", *arguments])
    words = arguments if name == "python" else ["stele", *arguments]
    signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON)  # until the forked process is known
    connection = request_process(os.environ["STELE_FORK_SERVER"], words, os.getcwd(), os.environ, [0, 1, 2])
    answers = connection.makefile("rb")
    process = int(answers.readline())

    def pass_on(number: int, _: object) -> None:
        with contextlib.suppress(ProcessLookupError):  # the process has ended; its exit code follows
            os.kill(process, number)

    for number in PASSED_ON:
        signal.signal(number, pass_on)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
    code = int(answers.readline() or b"1")
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    sys.exit(code)


if __name__ == "__main__":
    main()
