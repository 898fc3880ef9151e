"""The process that evaluates expressions of strangers: run by `sandbox`, one question after the other.

Both directions carry messages with their length in front. A question comes with its bounds: the system kills the
process when the time is over, and gives it no more memory than allowed beyond what its libraries take. An answer is one
byte that says its kind, and the rest.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import struct
import sys
from typing import IO, Final

LENGTH: Final = struct.Struct(">Q")
BOUNDS: Final = struct.Struct(">dQ")
"""In front of a question: seconds, and bytes of memory."""
RESULT: Final = b"r"
FAILURE: Final = b"f"
TOO_LARGE: Final = b"l"
"""Kinds of answers: a value, a text of why there is none, and nothing more for one that needs too much memory."""
PATIENCE: Final = 4
"""A question may take this many times its seconds by the clock, because the machine may be busy with other things."""
RESULT_SHARE: Final = 8
"""An answer as bytes may have the memory of a question divided by this: as values it is larger."""


def read_frame(source: IO[bytes], limit: int | None = None) -> bytes | None:
    """Read one message; None at the end, in the middle of one, and for one that is longer than the limit."""
    head = source.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(head)
    if limit is not None and length > limit:
        return None
    body = source.read(length)
    return body if len(body) == length else None


def main() -> None:
    """Answer questions until nobody asks any more."""
    sys.path[:] = json.loads(sys.argv[1])
    questions = sys.stdin.buffer
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer
    _keep_to_itself()
    worker = _Worker()
    while (message := read_frame(questions)) is not None:
        answer = worker.answer_message(message)
        answers.write(LENGTH.pack(len(answer)) + answer)
        answers.flush()
        if answer[:1] == TOO_LARGE:
            return  # whatever else is short of memory now is not worth finding out


class _Worker:
    def __init__(self) -> None:
        self._limited: tuple[int, type] | None = None

    def answer_message(self, message: bytes) -> bytes:
        """The answer to a question, with its kind in front."""
        from stele.errors import SteleError
        from stele.expressions import evaluation, transport

        seconds, memory = BOUNDS.unpack_from(message)
        question = transport.unpack_question(message[BOUNDS.size :])
        if self._limited != (memory, type(question)):
            evaluation.load_language(question)
            _limit_memory(memory)
            self._limited = memory, type(question)
        _limit_time(seconds)
        try:
            data = transport.pack_answer(evaluation.evaluate_question(question))
            return RESULT + data if len(data) <= memory // RESULT_SHARE else TOO_LARGE
        except MemoryError:
            return TOO_LARGE
        except Exception as error:
            text = str(error) if isinstance(error, SteleError) else f"{type(error).__name__}: {error}"
            return FAILURE + text.encode(errors="replace")
        finally:
            _limit_time(0)


def _keep_to_itself() -> None:
    """Undo what the parent does with the signals of the timers, and leave no dump behind."""
    if sys.platform != "win32":
        import resource

        for timer in (signal.SIGALRM, signal.SIGPROF):
            signal.signal(timer, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM, signal.SIGPROF})
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _limit_time(seconds: float) -> None:
    """Have the system kill this process after so many seconds of work, or `PATIENCE` times as many by the clock.

    No code of the process can delay that. 0 is for never.
    """
    if sys.platform != "win32":
        signal.setitimer(signal.ITIMER_PROF, seconds)
        signal.setitimer(signal.ITIMER_REAL, seconds * PATIENCE)
    elif seconds:
        faulthandler.dump_traceback_later(seconds, exit=True)
    else:
        faulthandler.cancel_dump_traceback_later()


def _limit_memory(limit: int) -> None:
    """Allow so many bytes beyond what the process has now. Only Linux knows both numbers."""
    if sys.platform != "linux":
        return
    import resource

    with open("/proc/self/statm", encoding="ascii") as figures:
        pages = int(figures.read().split()[0])
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + limit, hard))


if __name__ == "__main__":
    main()
