"""A process that runs one script, communicates over its standard input and output, and can be killed.

It is for libraries that cannot be interrupted, or that crash their whole process.
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
"""Folder that contains Stele, for scripts: an isolated process only knows the paths that it is given."""
_NICENESS: Final = 5
"""Increment of a worker's nice value, so that the server's event loop has priority when processors are busy."""


class WorkerProcess:
    """One running process. Raises OSError when it cannot be started."""

    def __init__(self, script: str, *arguments: str) -> None:
        """Start the script isolated (`python -I`). Its arguments name the folders of its packages."""
        self._process = subprocess.Popen(
            [sys.executable, "-I", script, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # an interrupt from the terminal must reach the server only
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
            alarm.join()  # from here on the timer cannot kill the process

    def _time_out(self) -> None:
        self.has_timed_out = True
        self.kill()

    def kill(self) -> None:
        """Kill the process in any state."""
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
        """Close this side of the pipes without touching the process: after a fork it belongs to the parent process."""
        self._close_pipes()
        self._process.returncode = self._process.returncode or 0  # keeps Popen from warning about a running child

    def _close_pipes(self) -> None:
        for stream in (self.input, self.output):
            with contextlib.suppress(OSError):
                stream.close()
