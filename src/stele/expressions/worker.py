"""The worker process that evaluates untrusted expressions. `sandbox` starts it; it answers questions one by one.

Messages in both directions begin with their length. A question comes with its limits: the operating system kills the
process when the time is over, and limits its memory beyond that of its libraries. An answer is one byte for its kind,
and the content.
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
"""Header of a question: seconds, and bytes of memory."""
RESULT: Final = b"r"
FAILURE: Final = b"f"
TOO_LARGE: Final = b"l"
"""Last of the kinds of answers: a value, a text with the error, and no content if the memory limit is exceeded."""
PATIENCE: Final = 4
"""Wall-clock limit of a question as a multiple of its CPU seconds, because the machine may be busy."""
RESULT_SHARE: Final = 8
"""A serialized answer may have a question's memory divided by this number, because values are larger."""


def read_frame(source: IO[bytes], limit: int | None = None) -> bytes | None:
    """Read one message. Return None at the end, for an incomplete one, and for one that is longer than the limit."""
    head = source.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(head)
    if limit is not None and length > limit:
        return None
    body = source.read(length)
    return body if len(body) == length else None


def main() -> None:
    """Answer questions until standard input ends."""
    sys.path[:] = json.loads(sys.argv[1])
    questions = sys.stdin.buffer
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # output of libraries must not mix with answers
    _keep_to_itself()
    worker = _Worker()
    while (message := read_frame(questions)) is not None:
        answer = worker.answer_message(message)
        answers.write(LENGTH.pack(len(answer)) + answer)
        answers.flush()
        if answer[:1] == TOO_LARGE:
            return  # end: the process may be short of memory in other places too


class _Worker:
    def __init__(self) -> None:
        self._limited: tuple[int, type] | None = None

    def answer_message(self, message: bytes) -> bytes:
        """Return the answer to a question, with its kind as first byte."""
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
    """Reset the signals of the timers that the parent may have changed, and disable core dumps."""
    if sys.platform != "win32":
        import resource

        for timer in (signal.SIGALRM, signal.SIGPROF):
            signal.signal(timer, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM, signal.SIGPROF})
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _limit_time(seconds: float) -> None:
    """Have the operating system kill this process after so many CPU seconds, or `PATIENCE` times as many by the clock.

    No code of the process can delay that. 0 turns the limit off.
    """
    if sys.platform != "win32":
        signal.setitimer(signal.ITIMER_PROF, seconds)
        signal.setitimer(signal.ITIMER_REAL, seconds * PATIENCE)
    elif seconds:
        faulthandler.dump_traceback_later(seconds, exit=True)
    else:
        faulthandler.cancel_dump_traceback_later()


def _limit_memory(limit: int) -> None:
    """Allow this many bytes in addition to the present size of the process. Has an effect only on Linux."""
    if sys.platform != "linux":
        return
    import resource

    with open("/proc/self/statm", encoding="ascii") as figures:
        pages = int(figures.read().split()[0])
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + limit, hard))


if __name__ == "__main__":
    main()
