"""The process that makes calls for `work_processes`: one after the other, until nobody asks any more.

Both directions carry messages with their length in front: a pickled call, and its pickled outcome. Both ends are the
same program under the same user; what strangers send is data within a call, and never unpickled.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import struct
import sys
import traceback
from typing import IO, Any, Final, NamedTuple

LENGTH: Final = struct.Struct(">Q")


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


def main(seconds: int, memory: int) -> None:
    """Make calls until nobody asks any more.

    Args:
        seconds: How long a call may take by the clock; one that takes longer ends the process.
        memory: Bytes that the process may have grown to when it has answered; beyond, it ends.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    calls = sys.stdin.buffer
    outcomes = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no outcome
    while (message := read_frame(calls)) is not None:
        signal.alarm(seconds)
        outcome = _make_call(message)
        signal.alarm(0)
        outcomes.write(LENGTH.pack(len(outcome)) + outcome)
        outcomes.flush()
        if _find_peak_memory() > memory:
            return


def _make_call(message: bytes) -> bytes:
    from stele.errors import SteleError, TooLarge

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
    """Return the most memory that this process has had, in bytes."""
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


if __name__ == "__main__":
    sys.path[:], *_bounds = json.loads(sys.argv[1])
    # Outcomes name their type by its module, which this script is not to those who read them.
    from stele.service import process_worker  # noqa: PLW0406 - under its own name

    process_worker.main(*_bounds)
