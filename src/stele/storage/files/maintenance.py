"""The folder of a log when no registry has it open, and copies of one that is in use."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import chain, islice
from pathlib import Path
from typing import Final

from stele.errors import InvalidRequest
from stele.storage.drivers import StoreCondition, StoredRecord
from stele.storage.files.folder import (
    HEAD_NAME,
    list_segments,
    make_folder,
    name_segment,
    require_own_folder,
    resolve_folder,
    store_error,
)
from stele.storage.files.head import Head
from stele.storage.files.lines import LAYOUT, Line, read_line
from stele.storage.files.url import parse_url
from stele.storage.files.writer import FolderWriter
from stele.storage.sqlite.maintenance import write_database

__all__ = ["StoreFolder", "inspect_folder"]

_PATIENCE: Final = 10.0
_BATCH: Final = 1000
"""Records of a new log that become durable together."""


class StoreFolder:
    """`StoreFiles` of a folder.

    Raises `InvalidRequest` when there is no log, `StoreError` when the folder belongs to another program.
    """

    is_chained: Final = True

    def __init__(self, url: str) -> None:
        self._folder = resolve_folder(parse_url(url))
        if not (self._folder.is_dir() and ((self._folder / HEAD_NAME).exists() or list_segments(self._folder))):
            raise InvalidRequest(f"there is no store {self._folder}")
        self.place = str(self._folder)

    def read_stored(self, until: int) -> Iterator[StoredRecord]:
        """Yield every place from 1 to the last record, at least to `until` and to the record that the head names."""
        try:
            with closing(Head(self._folder)) as head:
                until = max(until, head.read() or 0)
            expected = 1
            for line in self._read_whole_batches(until):
                if line.seq >= expected:
                    yield from (StoredRecord(seq, None) for seq in range(expected, line.seq))
                    yield StoredRecord(line.seq, line.record)
                    expected = line.seq + 1
            yield from (StoredRecord(seq, None) for seq in range(expected, until + 1))
        except OSError as error:
            raise store_error(self._folder, error) from error

    def write_anew(self, records: Iterable[bytes]) -> str:
        """Write a new folder that takes the name of the old one. Returns the new path of the old folder."""
        new = self._folder.with_name(self._folder.name + ".repaired")
        aside = self._folder.with_name(f"{self._folder.name}.damaged-{time.strftime('%Y%m%dT%H%M%S')}")
        try:
            shutil.rmtree(new, ignore_errors=True)
            _write_folder(new, records)
            os.replace(self._folder, aside)
            os.replace(new, self._folder)
        except OSError as error:
            raise store_error(self._folder, error) from error
        return str(aside)

    def write_copy(self, file: Path) -> None:
        """Copy the records into a SQLite file."""
        write_database(file, self.read_stored(0))

    def _read_whole_batches(self, until: int) -> Iterator[Line]:
        """Yield the lines that can be read.

        Lines of a batch at the end are left out when its writer ended before the batch was durable.
        """
        batch: list[Line] = []
        for line in chain.from_iterable(map(self._read_segment, list_segments(self._folder))):
            if batch and line.last != batch[0].last:
                yield from batch
                batch = []
            batch.append(line)
        if batch and (batch[-1].seq == batch[-1].last or batch[-1].seq <= until):
            yield from batch

    def _read_segment(self, first: int) -> Iterator[Line]:
        with (self._folder / name_segment(first)).open("rb") as file:
            for data in file:
                line = read_line(data)
                if line is not None:
                    yield line


def _write_folder(folder: Path, records: Iterable[bytes]) -> None:
    make_folder(folder)
    with closing(Head(folder)) as head:
        writer = FolderWriter(folder, head, _PATIENCE)
        writer.prepare()
        rest, written = iter(records), 0
        while batch := list(islice(rest, _BATCH)):
            writer.append(written, batch)
            written += len(batch)


def inspect_folder(url: str) -> StoreCondition:
    """Return the condition of the store of a URL. Raises `InvalidRequest` for a malformed URL, `StoreError`."""
    folder = resolve_folder(parse_url(url))
    near = next(place for place in (folder, *folder.parents) if place.is_dir())
    disk = os.statvfs(near)
    exists = (folder / HEAD_NAME).exists()
    try:
        if folder.exists():
            require_own_folder(folder)
        size = sum(entry.stat().st_size for entry in os.scandir(folder)) if exists else 0
        if exists:
            with closing(Head(folder)) as head:
                head.read()  # refuses the layout of a newer release
    except OSError as error:
        raise store_error(folder, error) from error
    return StoreCondition(
        place=str(folder),
        exists=exists,
        is_writable=os.access(near, os.W_OK | os.X_OK),
        layout=LAYOUT if exists else None,
        newest_layout=LAYOUT,
        size_bytes=size,
        free_bytes=disk.f_bavail * disk.f_frsize,
    )
