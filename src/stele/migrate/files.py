"""Reads and writes files. A written file is complete or does not exist; `-` is standard input or output."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from stele.errors import InvalidRequest

STANDARD = Path("-")


@contextmanager
def open_input(path: Path) -> Iterator[BinaryIO]:
    """Open a file for reading. Raises `InvalidRequest` when it cannot be read."""
    if path == STANDARD:
        yield sys.stdin.buffer
        return
    try:
        with path.open("rb") as file:
            yield file
    except OSError as error:
        raise InvalidRequest(f"{path}: {error.strerror or error}") from None


def write_file(path: Path, chunks: Iterable[bytes]) -> None:
    """Write a file that only its owner can read. An existing file is replaced when the new one is complete.

    Raises `InvalidRequest`.
    """
    if path == STANDARD:
        sys.stdout.buffer.writelines(chunks)
        sys.stdout.buffer.flush()
        return
    try:
        _replace_file(path, chunks)
    except OSError as error:
        raise InvalidRequest(f"{path}: {error.strerror or error}") from None


def _replace_file(path: Path, chunks: Iterable[bytes]) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary_path = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.writelines(chunks)
            file.flush()
            os.fsync(file.fileno())
        temporary_path.replace(path)
    except BaseException:
        temporary_path.unlink(missing_ok=True)
        raise
