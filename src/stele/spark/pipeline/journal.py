"""Which files a batch wrote, kept beside Spark's checkpoint: what makes two tables change as one, and only once.

A batch that is written but not committed everywhere is finished from its entry, with the very same files. Decoding it
again could judge a record differently (its schema may have been registered meanwhile), and it would be in both tables
or in none.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import msgspec

from stele.errors import Conflict, StoreError
from stele.spark.pipeline.report import BatchReport

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]  # asked for before use

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem


@contextmanager
def held(checkpoint: str) -> Iterator[None]:
    """Hold a checkpoint for this process: two that run one pipeline at once could commit one batch twice.

    Only folders of this machine can be held, and not on Windows; elsewhere Spark alone notices, later.
    Raises `Conflict` when another process, or another run in this one, holds it.
    """
    if "://" in checkpoint or fcntl is None:
        yield
        return
    folder = Path(checkpoint) / "stele"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Conflict(f"the pipeline of {checkpoint} is being run by another process") from None
        yield


KEPT = 10
"""Entries kept behind the newest, for people who look."""


class Entry(msgspec.Struct, frozen=True):
    """One batch: its report, and the data files for either table."""

    report: BatchReport
    data: tuple[str, ...] = ()
    dead: tuple[str, ...] = ()


class Journal:
    """The folder `stele` of a checkpoint; on any file system pyarrow knows."""

    def __init__(self, checkpoint: str) -> None:
        from pyarrow.fs import FileSystem

        address = checkpoint if "://" in checkpoint else str(Path(checkpoint).resolve())
        files, folder = FileSystem.from_uri(address)
        self._files: FileSystem = files
        self._folder = f"{folder}/stele"
        self._files.create_dir(self._folder, recursive=True)

    def application(self) -> str:
        """The name under which this checkpoint's batches are counted in table properties; made once."""
        known = self._read("application")
        if known is not None:
            return known.decode()
        made = uuid4().hex
        self._write("application", made.encode())
        return made

    def entry(self, batch: int) -> Entry | None:
        """What a batch wrote, or None when it did not get that far. Raises `StoreError` for a damaged entry."""
        document = self._read(f"{batch}.json")
        if document is None:
            return None
        try:
            return msgspec.json.decode(document, type=Entry)
        except msgspec.MsgspecError as error:
            raise StoreError(f"the entry of batch {batch} in {self._folder} is damaged: {error}") from error

    def keep(self, entry: Entry) -> None:
        """Write down a batch before it is committed, and forget an old one."""
        self._write(f"{entry.report.batch}.json", msgspec.json.encode(entry))
        old = f"{self._folder}/{entry.report.batch - KEPT}.json"
        if self._exists(old):
            self._files.delete_file(old)

    def _exists(self, path: str) -> bool:
        from pyarrow.fs import FileType

        return bool(self._files.get_file_info(path).type == FileType.File)

    def _read(self, name: str) -> bytes | None:
        path = f"{self._folder}/{name}"
        if not self._exists(path):
            return None
        with self._files.open_input_stream(path) as stream:
            return bytes(stream.read())

    def _write(self, name: str, data: bytes) -> None:
        draft = f"{self._folder}/.{name}.{uuid4().hex}"
        with self._files.open_output_stream(draft) as stream:
            stream.write(data)
        self._files.move(draft, f"{self._folder}/{name}")
