"""The Protobuf compiler: a small pool of processes with a deadline, the built-in files, and its error messages.

The compiler could run in this process within one millisecond. But it writes its messages to file descriptor 2, which
belongs to the whole server. It cannot be interrupted, and some small inputs keep it busy for minutes: its check for
duplicate names takes quadratic time. And deeply nested option values crash it, and the server with it. A process that
is reused for many jobs costs a tenth of a millisecond more and can be killed.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import queue
import re
import shutil
import signal
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from stele.errors import MalformedSchema, NotInstalled, Unavailable, UnresolvedReference
from stele.formats.json_reader import line_and_column
from stele.formats.protobuf import compiler_worker
from stele.worker_process import OWN_FOLDER, WorkerProcess

DEADLINE = 10.0
"""Time limit of one schema in wall-clock seconds. `compiler_worker.PROCESSOR_LIMIT` ends busy processes earlier."""
PROCESSES = min(4, os.cpu_count() or 1)
"""Most compiler processes at a time in one Python process. They are started when needed."""
_ATTEMPTS = 2
_END_SECONDS = 1.0
"""Seconds to wait for the exit of a process that has closed its pipes."""
_CRASHES = {signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL}
"""Signals that show a crash of the compiler."""
RETIRE_ABOVE = 1 << 20
"""A process that compiled more bytes than this at once is replaced, to free its memory."""


class CompilerResult(NamedTuple):
    """Result of a compilation: success, the compiler's messages, and on success a serialized FileDescriptorSet."""

    ok: bool
    messages: str
    descriptors: bytes


class _CompilerProcess(WorkerProcess):
    """One compiler process."""

    def __init__(self) -> None:
        self._folder = ""
        super().__init__(compiler_worker.__file__, OWN_FOLDER, str(compiler_folder().parent))
        files = [part for name, text in builtin_sources().items() for part in (os.fsencode(name), text)]
        self._folder = os.fsdecode(self.send_and_receive(files)[0])

    def send_and_receive(self, parts: Sequence[bytes]) -> list[bytes]:
        """Send a message and wait for its answer. Raises EOFError or OSError when the process dies or is killed."""
        with self.limit_time(DEADLINE):
            compiler_worker.write_message(self.input, parts)
            return compiler_worker.read_message(self.output)

    def has_exceeded_limits(self) -> bool:
        """Return whether this dead process exceeded the time limit of a job."""
        return self.has_timed_out or self.find_signal(_END_SECONDS) == signal.SIGPROF

    def has_crashed(self) -> bool:
        """Return whether this dead process crashed, rather than being killed from outside."""
        return self.find_signal(_END_SECONDS) in _CRASHES

    def close(self) -> None:
        """End the process and remove its folder."""
        super().close()
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)


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
        """Compile the file called main. Return None when the texts crash the compiler or exceed its time limit.

        A process that died for another reason is replaced once. texts are (import path, text) pairs; known is a
        serialized FileDescriptorSet of files that have no text. Raises `Unavailable` when no process can be started,
        or the second one was killed, too.
        """
        parts = [main.encode(), known, *(part for name, text in texts for part in (name.encode(), text))]
        slots = self._slots
        slot: _CompilerProcess | None = slots.get()
        try:
            for attempt in range(_ATTEMPTS):
                slot = slot or self._start_process()
                try:
                    code, messages, descriptors = slot.send_and_receive(parts)
                except (EOFError, OSError):
                    dead, slot = slot, None
                    is_last = attempt == _ATTEMPTS - 1
                    is_to_blame = dead.has_exceeded_limits() or (is_last and dead.has_crashed())
                    dead.close()
                    if is_to_blame:
                        return None
                else:
                    if sum(map(len, parts)) > RETIRE_ABOVE:
                        slot.close()
                        slot = None
                    return CompilerResult(code == b"0", messages.decode("utf-8", "replace"), descriptors)
            raise Unavailable("the Protobuf compiler was killed twice, not by the schema; try again")
        except BaseException:
            # An interrupted job leaves its answer in the pipe. The next job must not read it.
            if slot is not None:
                slot.close()
                slot = None
            raise
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
        # Read the queue's list without its lock: a thread of the parent may have held it during the fork.
        idle = [slot for slot in self._slots.queue if slot is not None]
        self._slots = self._empty_slots()
        for slot in idle:
            slot.abandon()


# --- the imports that every schema may use without naming them as references ----------------------------------------

_OWN = Path(__file__).parent / "protos"


@cache
def builtin_sources() -> Mapping[str, bytes]:
    """Return the texts of all built-in files by import path.

    They are `google/protobuf/*` as shipped with the compiler, `google/type/*` as shipped with
    googleapis-common-protos, and the three `confluent/*` files, as in the registries of Confluent and Redpanda.
    Raises `NotInstalled` when one of the two packages is missing.
    """
    roots = (
        (compiler_folder() / "_proto", "google/protobuf"),
        (_package_folder("google.type").parents[1], "google/type"),
        (_OWN, "confluent"),
    )
    files = {
        path.relative_to(root).as_posix(): path.read_bytes()
        for root, below in roots
        for path in sorted((root / below).rglob("*.proto"))
    }
    return MappingProxyType(files)


def compiler_folder() -> Path:
    """Return the folder of the package with the compiler. Raises `NotInstalled`."""
    return _package_folder("grpc_tools")


def _package_folder(module: str) -> Path:
    """Return the folder of an installed package without importing it."""
    try:
        spec = find_spec(module)
    except ModuleNotFoundError:
        spec = None
    if spec is None or not spec.submodule_search_locations:
        raise NotInstalled("the Protobuf compiler", "protobuf")
    return Path(next(iter(spec.submodule_search_locations)))


# --- the compiler's messages as one error with a position; no other module reads them ------------------------------

_PLACED = re.compile(r"(?P<file>.*?):(?P<line>\d+):(?P<column>\d+): (?P<text>.*)")
_MISSING = re.compile(r"(?P<file>.+): File not found\.")
_IMPORT = re.compile(r'Import "(?P<file>.*)" was not found or had errors\.')
_NOISE = re.compile(r"WARNING: All log messages before|[IW]\d{4} [\d:.]+ +\d+ |.*: warning: ")


_UNDEFINED = re.compile(r'"(?P<type>[\w.]+)" (?:is not defined|seems to be defined in)')
_EXPECTED = (
    (re.compile(r"\" is not defined"), "the name of a type of this file, its package or its imports"),
    (re.compile(r"\" is already defined"), "another name"),
    (re.compile(r"has already been used in"), "a number no other field has"),
    (re.compile(r"must be positive integers|Field numbers cannot be greater"), "a number between 1 and 536870911"),
    (re.compile(r"Missing field number"), "= and a number"),
    (re.compile(r"first enum value must be zero"), "a value 0 that comes first"),
    (re.compile(r"Required fields are not allowed"), "optional, repeated or no label"),
    (re.compile(r"Explicit default values are not allowed"), "no default, or an older syntax"),
    (re.compile(r"Key in map fields cannot be"), "an integer, bool or string as key"),
    (re.compile(r"^(Field )?(number|name).* is reserved"), "one that is not reserved"),
    (re.compile(r"Unknown edition"), "an edition such as 2023"),
    (re.compile(r"Interpreting non ascii codepoint"), "UTF-8, with letters beyond ASCII in texts and comments only"),
    (re.compile(r"Integer out of range"), "a number of fewer digits"),
    (re.compile(r"^Option .* unknown"), "an option of descriptor.proto, or of an import"),
    (re.compile(r"Multiline strings are not allowed"), "a closing quote on the same line"),
    (re.compile(r"End-of-file inside block comment"), "*/"),
    (re.compile(r"numbers 19000 through 19999"), "a number below 19000 or above 19999"),
)


class _Diagnostic(NamedTuple):
    file: str
    line: int | None
    column: int | None
    text: str


def error_from_messages(messages: str, main: str, text: bytes = b"") -> MalformedSchema:
    """Return the first error among the compiler's messages, for a document whose own import path is main.

    If the compiler gives no position, it is guessed from `text`.
    """
    lines = _list_complaints(messages)
    diagnostics = [_parse_line(line) for line in lines]
    missing = [match["file"] for line in lines if (match := _MISSING.fullmatch(line)) and match["file"] != main]
    undefined = next((match["type"] for each in diagnostics if (match := _UNDEFINED.match(each.text))), None)
    if missing:
        return _unresolved_import(missing[0], diagnostics, main, undefined)
    if not diagnostics:
        return MalformedSchema("the Protobuf compiler refused the text without saying why")
    # An error inside an imported file makes the import fail as well: report the first one.
    first = next((message for message in diagnostics if not _IMPORT.fullmatch(message.text)), diagnostics[0])
    more = len(diagnostics) - 1
    why = first.text.rstrip(".") + (f" (and {more} more)" if more else "")
    if first.file not in {main, ""}:
        why = f"in the imported file {first.file!r}: {why}"
    why = why.removeprefix(f"{main}: ")
    line, column = (first.line, first.column) if first.line is not None else _guess_position(why, text)
    return MalformedSchema(why, line=line, column=column, expected=_expected_hint(first.text), undefined=undefined)


def find_refused_place(messages: str, main: str) -> tuple[int, int] | None:
    """Return line and column of the first error in the file called main, None if the compiler gives no position."""
    diagnostics = map(_parse_line, _list_complaints(messages))
    return next(
        ((each.line, each.column) for each in diagnostics if each.file == main and each.line and each.column), None
    )


def _list_complaints(messages: str) -> list[str]:
    """Return the lines that are error messages, without the compiler's own log and warnings."""
    return [line for line in messages.splitlines() if line and not _NOISE.match(line)]


def _guess_position(why: str, text: bytes) -> tuple[int, int] | tuple[None, None]:
    """Return line and column for a message without a position, or two Nones if it cannot be guessed."""
    about: re.Match[bytes] | None = None
    if "numbers 19000 through 19999" in why:
        about = re.search(rb"(?<==)\s*(?P<it>19\d{3})\b", text)
    elif named := re.search(r"fields in (?:\w+\.)*(\w+) exceeds", why):
        about = re.search(rb"\bmessage\s+(?P<it>%s)\b" % named[1].encode(), text)
    return (None, None) if about is None else line_and_column(text, about.start("it"))


def _unresolved_import(
    path: str, diagnostics: list[_Diagnostic], main: str, undefined: str | None
) -> UnresolvedReference:
    place = next(
        (message for message in diagnostics if (m := _IMPORT.fullmatch(message.text)) and m["file"] == path), None
    )
    where = "" if place is None or place.file == main else f", needed by {place.file!r},"
    return UnresolvedReference(
        f"the import {path!r}{where} is neither built in nor among the references",
        line=place.line if place else None,
        column=place.column if place else None,
        expected=f"a reference named {path!r}",
        undefined=undefined,
    )


def _expected_hint(text: str) -> str | None:
    """Return what was expected instead, for messages in which the compiler does not mention it."""
    return next((wanted for pattern, wanted in _EXPECTED if pattern.search(text)), None)


def _parse_line(line: str) -> _Diagnostic:
    match = _PLACED.fullmatch(line)
    if match is None:
        return _Diagnostic("", None, None, line)
    return _Diagnostic(match["file"], int(match["line"]), int(match["column"]), match["text"])
