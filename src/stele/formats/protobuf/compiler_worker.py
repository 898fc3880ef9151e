"""The compiler process: `compiler.py` runs it as a script. It reads jobs from stdin and writes results to stdout.

It imports nothing of Stele but `worker_limits`, so that it starts within 100 ms and needs little memory. A message is a
list of byte strings: a big-endian uint32 count, then for each string a uint32 length and its bytes.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import struct
import sys
import tempfile
from collections.abc import Mapping, Sequence
from typing import BinaryIO

MEMORY_LIMIT = 3 << 30
"""Address space of one compiler process, in bytes: a schema that needs more kills the process, not the machine."""
PROCESSOR_LIMIT = 1.75
"""CPU seconds of one job. The operating system ends a process that takes more.

CPU time does not depend on the load of the machine. A megabyte of ordinary source takes half a second. Jobs that take
longer are those with many duplicate numbers, which the compiler finds in quadratic time.
"""
STDERR_LIMIT = 64 << 10
"""Most bytes of the compiler's messages that are kept. A bad file can produce megabytes of them."""

_UINT = struct.Struct(">I")


def write_message(stream: BinaryIO, parts: Sequence[bytes]) -> None:
    """Send one message and flush. Raises OSError when the other side has closed the pipe."""
    stream.write(_UINT.pack(len(parts)))
    for part in parts:
        stream.write(_UINT.pack(len(part)))
        stream.write(part)
    stream.flush()


def read_message(stream: BinaryIO) -> list[bytes]:
    """Receive one message. Raises EOFError when the other side has closed the pipe."""
    return [_read_exactly(stream, _read_uint(stream)) for _ in range(_read_uint(stream))]


def _read_uint(stream: BinaryIO) -> int:
    value: int = _UINT.unpack(_read_exactly(stream, _UINT.size))[0]
    return value


def _read_exactly(stream: BinaryIO, size: int) -> bytes:
    data = stream.read(size)
    if len(data) < size:
        raise EOFError
    return data


def _write_files(folder: bytes, names: Sequence[bytes], texts: Sequence[bytes]) -> None:
    for name, text in zip(names, texts, strict=True):
        path = folder + b"/" + name
        if b"/" in name:
            os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(text)


def _compile_job(root: bytes, builtins: Mapping[bytes, bytes], parts: Sequence[bytes]) -> list[bytes]:
    """Run one job: [main, descriptor set, name, text, name, text …] to [exit code, messages, descriptor set].

    main is an import path; the descriptor set may be empty. Only built-in files whose name occurs in the job are
    passed to the compiler, because reading a set takes time. Of a small job, the compiler itself takes 70 µs.
    """
    from grpc_tools import _protoc_compiler  # type: ignore[import-untyped]  # the package has no types

    job, out, known = root + b"/job", root + b"/out", root + b"/known"
    main, descriptor_set, *rest = parts
    try:
        _write_files(job, rest[::2], rest[1::2])
        arguments = [b"protoc", b"-I" + job, b"--descriptor_set_out=" + out]
        arguments += [b"--include_imports", b"--include_source_info", b"--retain_options"]
        # A file that is in several places is taken from the first: sources, then given descriptors, then built-in ones.
        sets = [path for name, path in builtins.items() if any(name in part for part in parts)]
        if descriptor_set:
            _write_files(root, [b"known"], [descriptor_set])
            sets.insert(0, known)
        if sets:
            arguments.append(b"--descriptor_set_in=" + b":".join(sets))
        # A full path keeps a name that looks like an option from being read as one.
        arguments.append(job + b"/" + main if main in rest[::2] else main)
        os.ftruncate(2, 0)
        code = _protoc_compiler.run_main(arguments)
        messages = b""
        if os.fstat(2).st_size:
            messages = _read_file(root + b"/stderr")[:STDERR_LIMIT].replace(job + b"/", b"")
        return [b"%d" % code, messages, _read_file(out) if code == 0 else b""]
    except (OSError, ValueError) as error:  # two names that need the same path as a file and as a folder, for example
        return [b"1", f"a source cannot be stored under its name: {error}".encode("utf-8", "replace"), b""]
    finally:
        _empty_folder(job)


def _read_file(path: bytes) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _empty_folder(folder: bytes) -> None:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            else:
                os.unlink(entry.path)


def _precompile_builtins(root: bytes, parts: Sequence[bytes]) -> dict[bytes, bytes]:
    """Store each built-in file with its imports as descriptors: from source, some would cost each job up to 7 ms."""
    from grpc_tools import _protoc_compiler

    sources = root + b"/sources"
    _write_files(sources, parts[::2], parts[1::2])
    builtins = {name: root + b"/builtin%d" % number for number, name in enumerate(parts[::2])}
    for name, path in builtins.items():
        options = [b"-I" + sources, b"--include_imports", b"--retain_options"]
        _protoc_compiler.run_main([b"protoc", *options, b"--descriptor_set_out=" + path, name])
    return builtins


def main(jobs: BinaryIO, answers: BinaryIO) -> None:
    """Serve jobs until standard input ends. The first message holds the built-in files, its answer names the folder."""
    from stele.worker_limits import limit_time  # here, because the path it is found on comes as an argument

    memory = "/dev/shm"  # noqa: S108 - the folder below it is made by mkdtemp, private and unguessable
    parent = memory if os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="stele-protoc-", dir=parent) as name:
        root = os.fsencode(name)
        os.mkdir(root + b"/job")
        os.dup2(os.open(root + b"/stderr", os.O_CREAT | os.O_RDWR | os.O_APPEND), 2)
        builtins = _precompile_builtins(root, read_message(jobs))
        write_message(answers, [root])
        while True:
            job = read_message(jobs)
            limit_time(PROCESSOR_LIMIT)
            answer = _compile_job(root, builtins, job)
            limit_time(0)
            write_message(answers, answer)


if __name__ == "__main__":
    sys.path[:0] = sys.argv[1:]
    from stele.worker_limits import limit_memory

    limit_memory(MEMORY_LIMIT)
    # The compiler may print to fd 1 too: keep the pipe for answers, and redirect fd 1 to nowhere.
    pipe = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    with contextlib.suppress(EOFError, OSError):
        main(sys.stdin.buffer, pipe)
