"""The process that makes calls for `work_processes`: one after the other, until nobody asks any more.

Both directions carry pickled messages with their length in front: a call, and its outcome. Before that may come how far
its comparisons are, and before all calls that there are none yet: the process has started. Both ends are the same
program under the same user; what strangers send is data within a call, and never unpickled.
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
"""How often a call says how far it is."""


class CallOutcome(NamedTuple):
    """What became of a call: its result, or the error that it raised.

    error   type, arguments and attributes of an intended error
    defect  the trace of any other one, '' for none
    """

    result: Any = None
    error: tuple[type[BaseException], tuple[Any, ...], dict[str, Any]] | None = None
    defect: str = ""


def read_frame(source: IO[bytes]) -> bytes | None:
    """Read one message; None at the end, and in the middle of one."""
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
    """Make calls until nobody asks any more.

    Args:
        seconds: How long a call may take by the clock; one that takes longer ends the process.
        memory: Bytes that the process may have grown to when it has answered; beyond, it ends.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    calls = sys.stdin.buffer
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer
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
    """Tells whoever waits for the call how far it is, now and then."""

    def __init__(self, answers: IO[bytes]) -> None:
        super().__init__()
        self._answers = answers
        self._reported_at = 0.0

    def count_comparison(self) -> None:
        """Note that one more comparison is made."""
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
    """Return the most memory that this process has had, in bytes.

    Linux counts what its parent had, too, in `getrusage`.
    """
    status = Path("/proc/self/status")
    if status.exists():
        peak = re.search(r"^VmHWM:\s*(\d+) kB", status.read_text(encoding="ascii", errors="replace"), re.MULTILINE)
        return int(peak[1]) * 1024 if peak else 0
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
