"""A small pool of compiler processes with a deadline.

Why processes, when the compiler can be called in process for one millisecond: it writes its messages to file
descriptor 2, which belongs to the whole server; it cannot be interrupted, and some small inputs keep it busy for
minutes (its work on duplicate names grows with the square of their number); and deeply nested option values crash it,
and the server with it. A process that lives on between jobs costs a tenth of a millisecond more and can be killed.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import queue
import shutil
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import BinaryIO, NamedTuple

from stele.errors import Unavailable
from stele.formats.protobuf import compiler_worker
from stele.formats.protobuf.builtin import builtin_sources, compiler_folder

DEADLINE = 10.0
"""Seconds one schema may take on the wall clock; `worker.PROCESSOR_LIMIT` ends what is busy all the time before."""
PROCESSES = min(4, os.cpu_count() or 1)
"""At most so many compilers run at a time in one Python process; they are started when needed."""
RETIRE_ABOVE = 1 << 20
"""A process that compiled more bytes than this at once is replaced, to give its memory back."""


class CompilerResult(NamedTuple):
    """What the compiler answered: ok, its messages, and a serialized FileDescriptorSet when ok."""

    ok: bool
    messages: str
    descriptors: bytes


class _CompilerProcess:
    """One compiler process."""

    def __init__(self) -> None:
        folder = compiler_folder().parent
        self._process = subprocess.Popen(
            [sys.executable, "-I", compiler_worker.__file__, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # an interrupt typed at a terminal is for the server alone
        )
        self._folder = ""
        files = [part for name, text in builtin_sources().items() for part in (os.fsencode(name), text)]
        self._folder = os.fsdecode(self.send_and_receive(files)[0])

    def send_and_receive(self, parts: Sequence[bytes]) -> list[bytes]:
        """Send a message and wait for its answer. Raises EOFError or OSError when the process dies or is killed."""
        alarm = threading.Timer(DEADLINE, self._process.kill)
        alarm.daemon = True
        alarm.start()
        try:
            compiler_worker.write_message(self._require_stream(self._process.stdin), parts)
            return compiler_worker.read_message(self._require_stream(self._process.stdout))
        finally:
            alarm.cancel()

    @staticmethod
    def _require_stream(stream: object) -> BinaryIO:
        return stream  # type: ignore[return-value]  # Popen types its pipes as optional; both are asked for above

    def close(self) -> None:
        """End the process and remove what it left."""
        self._process.kill()
        self._process.wait()
        self.close_pipes()
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)

    def close_pipes(self) -> None:
        """Close this side of the pipes without touching the process: after a fork it belongs to the parent."""
        for stream in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                self._require_stream(stream).close()
        self._process.returncode = self._process.returncode or 0  # keeps Popen from warning about a running child


class CompilerPool:
    """Runs compile jobs in a bounded number of processes. Safe to share between threads, and across a fork."""

    def __init__(self, processes: int = PROCESSES) -> None:
        self._processes = processes
        self._slots = self._empty_slots()
        os.register_at_fork(after_in_child=self._after_fork)
        atexit.register(self.close)

    def _empty_slots(self) -> queue.LifoQueue[_CompilerProcess | None]:
        slots: queue.LifoQueue[_CompilerProcess | None] = queue.LifoQueue()
        for _ in range(self._processes):
            slots.put(None)
        return slots

    def compile_file(self, main: str, texts: Sequence[tuple[str, bytes]], known: bytes = b"") -> CompilerResult | None:
        """Compile the file called main; None when the process died or took longer than `DEADLINE`.

        texts are (import path, text) pairs; known is a serialized FileDescriptorSet of files that have no text.
        Raises `Unavailable` when no process can be started.
        """
        parts = [main.encode(), known, *(part for name, text in texts for part in (name.encode(), text))]
        slots = self._slots
        slot: _CompilerProcess | None = slots.get()
        try:
            slot = slot or self._start_process()
            code, messages, descriptors = slot.send_and_receive(parts)
        except (EOFError, OSError):
            if slot is not None:
                slot.close()
            slot = None
            return None
        else:
            if sum(map(len, parts)) > RETIRE_ABOVE:
                slot.close()
                slot = None
            return CompilerResult(code == b"0", messages.decode("utf-8", "replace"), descriptors)
        finally:
            slots.put(slot)

    @staticmethod
    def _start_process() -> _CompilerProcess:
        try:
            return _CompilerProcess()
        except (EOFError, OSError) as error:
            raise Unavailable("the Protobuf compiler process could not be started") from error

    def close(self) -> None:
        """End all idle processes; later jobs start new ones."""
        slots, self._slots = self._slots, self._empty_slots()
        with contextlib.suppress(queue.Empty):
            while True:
                slot = slots.get_nowait()
                if slot is not None:
                    slot.close()

    def _after_fork(self) -> None:
        # The list below the queue, because a thread that does not exist here may have held the queue's lock.
        idle = [slot for slot in self._slots.queue if slot is not None]
        self._slots = self._empty_slots()
        for slot in idle:
            slot.close_pipes()
