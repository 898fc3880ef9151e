"""A process that runs one script, is asked over its standard input and output, and can be killed.

For libraries that cannot be interrupted, or that take their whole process down with them.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, cast

OWN_FOLDER: Final = str(Path(__file__).parent.parent)
"""Where a script finds Stele: an isolated process knows no paths but those it is told."""
_NICENESS: Final = 5
"""Added to the priority number of a worker: where processors are short, the server's event loop comes first."""


class WorkerProcess:
    """One running process. Raises OSError when it cannot be started."""

    def __init__(self, script: str, *arguments: str) -> None:
        """Start the script isolated (`python -I`); its arguments tell it where its packages are."""
        self._process = subprocess.Popen(
            [sys.executable, "-I", script, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # an interrupt typed at a terminal is for the server alone
        )
        if sys.platform != "win32":
            with contextlib.suppress(OSError):  # it has ended already
                os.setpriority(os.PRIO_PROCESS, self._process.pid, _NICENESS)
        self.input = cast("BinaryIO", self._process.stdin)
        self.output = cast("BinaryIO", self._process.stdout)
        self.has_timed_out = False
        """Whether the last `limit_time` killed the process."""

    @contextlib.contextmanager
    def limit_time(self, seconds: float) -> Iterator[None]:
        """Kill the process when the block runs for longer; reading its output then ends."""
        self.has_timed_out = False  # it may have been killed just after the last block
        alarm = threading.Timer(seconds, self._time_out)
        alarm.daemon = True
        alarm.start()
        try:
            yield
        finally:
            alarm.cancel()
            alarm.join()  # from here on it kills nobody

    def _time_out(self) -> None:
        self.has_timed_out = True
        self.kill()

    def kill(self) -> None:
        """Kill the process, whatever it is doing."""
        self._process.kill()

    def find_signal(self, seconds: float) -> int:
        """Return the number of the signal that ended the process; 0 when none did, or it still runs after seconds."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return max(0, -self._process.wait(seconds))
        return 0

    def close(self) -> None:
        """Kill the process, wait until it has ended, and close its pipes."""
        self.kill()
        self._process.wait()
        self._close_pipes()

    def abandon(self) -> None:
        """Close this side of the pipes without touching the process: after a fork it belongs to the parent."""
        self._close_pipes()
        self._process.returncode = self._process.returncode or 0  # keeps Popen from warning about a running child

    def _close_pipes(self) -> None:
        for stream in (self.input, self.output):
            with contextlib.suppress(OSError):
                stream.close()
