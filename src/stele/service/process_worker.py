"""The process that executes calls for `work_processes`: one after the other, until its input ends.

Both directions carry pickled messages with a length prefix: a call, and its outcome. Before the outcome come reports on
the progress of its comparisons. One such report, of no comparisons, precedes the first call: the process has started.
Both ends are the same program under the same user. Data of clients is only data inside a call, and never unpickled.
"""

from __future__ import annotations

import os
import pickle
import re
import signal
import struct
import sys
import time
import traceback
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

from stele.errors import SteleError, TooLarge
from stele.service.progress import ComparisonProgress, track_progress

LENGTH: Final = struct.Struct(">Q")
_REPORT_SECONDS: Final = 0.1
"""Minimum interval in seconds between two progress reports of a call."""


class CallOutcome(NamedTuple):
    """Outcome of a call: its result, or the error that it raised.

    error   type, arguments and attributes of an expected error
    defect  traceback of any other error, '' for none
    """

    result: Any = None
    error: tuple[type[BaseException], tuple[Any, ...], dict[str, Any]] | None = None
    defect: str = ""


def read_frame(source: IO[bytes]) -> bytes | None:
    """Read one message. Return None at the end of the stream, also when it ends inside a message."""
    head = source.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(head)
    body = source.read(length)
    return body if len(body) == length else None


def write_frame(target: IO[bytes], body: bytes) -> None:
    """Write one message."""
    target.write(LENGTH.pack(len(body)))
    target.write(body)
    target.flush()


def main(seconds: int, memory: int) -> None:
    """Execute calls until the input ends.

    Args:
        seconds: Maximum duration of a call in wall-clock time; one that takes longer ends the process.
        memory: Bytes of memory that the process may have used after a call; above that, it ends.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    calls = sys.stdin.buffer
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # output of libraries must not mix with the answers
    write_frame(answers, pickle.dumps(ComparisonProgress()))
    while (message := read_frame(calls)) is not None:
        signal.alarm(seconds)
        with track_progress(_ReportedProgress(answers)):
            outcome = _make_call(message)
        signal.alarm(0)
        write_frame(answers, outcome)
        if _find_peak_memory() > memory:
            return


class _ReportedProgress(ComparisonProgress):
    """Reports the progress of a call to the process that waits for it, at intervals."""

    def __init__(self, answers: IO[bytes]) -> None:
        super().__init__()
        self._answers = answers
        self._reported_at = 0.0

    def count_comparison(self) -> None:
        """Count one more finished comparison, and report the progress if it is due."""
        super().count_comparison()
        now = time.monotonic()
        if now >= self._reported_at + _REPORT_SECONDS:
            self._reported_at = now
            report = ComparisonProgress()
            report.take_over(self)
            write_frame(self._answers, pickle.dumps(report))


def _make_call(message: bytes) -> bytes:
    try:
        try:
            outcome = CallOutcome(pickle.loads(message)())  # noqa: S301 - from the server that started this process
        except SteleError as error:
            outcome = CallOutcome(error=(type(error), error.args, vars(error)))
        except MemoryError:
            outcome = CallOutcome(error=(TooLarge, ("the request needs more memory than there is",), {}))
        return pickle.dumps(outcome)
    except Exception:
        return pickle.dumps(CallOutcome(defect=traceback.format_exc()))


def _find_peak_memory() -> int:
    """Return the peak memory of this process, in bytes.

    On Linux `getrusage` includes the memory of the parent process, so `/proc` is read there.
    """
    status = Path("/proc/self/status")
    if status.exists():
        peak = re.search(r"^VmHWM:\s*(\d+) kB", status.read_text(encoding="ascii", errors="replace"), re.MULTILINE)
        return int(peak[1]) * 1024 if peak else 0
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
