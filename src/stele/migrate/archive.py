"""Stele's archive format: the log of a registry in one file, which shows whether it is complete.

The log is all that a registry stores, so an archive holds everything that any dialect can return, as it was written:
times, callers, uids and what was deleted since. It also holds the secrets of keys and exporters, so it is as
confidential as the store itself. It consists of JSON lines inside gzip, or zstd if the name ends in `.zst`. The lines
are a header with the format's version, the records in their order, and a trailer with the number of lines and the
SHA-256 of all of them.
"""

from __future__ import annotations

import gzip
import hashlib
import shutil
import tempfile
import zlib
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

import msgspec

from stele.core import zstd
from stele.core.events import (
    LogRecord,
    VersionRegistered,
    decode_record,
    encode_record,
    has_intact_texts,
    print_record,
    read_record,
    redact_texts,
)
from stele.core.fold import apply_record
from stele.core.ports import Log, LogEntry
from stele.core.sealed_documents import is_resealed
from stele.core.snapshot import dump_state
from stele.core.state import OWN, State
from stele.errors import Conflict, DamagedLog, InvalidRequest, StoreError
from stele.migrate import files
from stele.migrate.dump_file import number_lines
from stele.migrate.progress import Progress, report_nothing
from stele.migrate.reading import decode_json

VERSION = 1
"""Version of the format. Readers refuse higher ones."""

_PAGE = 1000
"""Records read or appended at once."""
_LEVEL = 9
_ZSTD_OPTIONS: dict[int, int] = {
    zstd.CompressionParameter.compression_level: _LEVEL,
    zstd.CompressionParameter.checksum_flag: 1,
}
_GZIP = 16 + zlib.MAX_WBITS
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_GZIP_MAGIC = b"\x1f\x8b"
_CONTRADICTIONS = (LookupError, ValueError, TypeError, AttributeError)
"""Errors of folding a record that refers to things which no earlier record created."""
_encode = msgspec.json.Encoder(order="deterministic").encode


class _Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    archive: str
    version: int


class _Trailer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    lines: int
    sha256: str


class _End(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    end: _Trailer


_HEADER = _Header("stele", VERSION)
_header = msgspec.json.Decoder(_Header)
_end = msgspec.json.Decoder(_End)
_END = b'{"end":'


class ArchiveContents(NamedTuple):
    """The number of records of an archive, and their digest (SHA-256 of its lines, hex)."""

    records: int
    sha256: str


class Restoration(msgspec.Struct, frozen=True, rename="camel"):
    """Comparison of a store with an archive.

    records   number of records of the archive
    missing   how many of them the store lacked (before `restore`) or lacks (`compare`)
    erasable  texts in the store that were purged when the archive was made
    ahead     how many records of its own the store has after those of the archive
    """

    records: int
    missing: int
    erasable: int
    ahead: int


class OwnHistory(Conflict):
    """Raised when the store has records that differ from the archive's: the archive cannot be restored into it."""

    def __init__(self, seq: int) -> None:
        super().__init__(f"the store has a history of its own: its record {seq} is not that of the archive")
        self.seq = seq


# --- writing --------------------------------------------------------------------------------------------------------


async def write_archive(log: Log, path: Path, progress: Progress = report_nothing) -> ArchiveContents:
    """Write the current log; an existing file is replaced only by a complete new one.

    Raises `InvalidRequest` when the file cannot be written, `StoreError`.
    """
    chunks, count = [], -1  # the header is no record
    digest = hashlib.sha256()
    pack = zstd.ZstdCompressor(options=_ZSTD_OPTIONS) if path.suffix == ".zst" else _compress_gzip()
    async for line in _archive_lines(log, progress):
        digest.update(line)
        count += 1
        chunks.append(pack.compress(line))
    trailer = _End(_Trailer(count + 1, digest.hexdigest()))
    chunks += [pack.compress(_encode(trailer) + b"\n"), pack.flush()]
    files.write_file(path, chunks)
    return ArchiveContents(count, digest.hexdigest())


def _compress_gzip() -> Any:
    return zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)  # without name and time, so equal logs give equal bytes


async def _archive_lines(log: Log, progress: Progress) -> AsyncIterator[bytes]:
    yield _encode(_HEADER) + b"\n"
    last, seq = await log.head(), 0
    while seq < last:
        for entry in await log.tail(seq, min(_PAGE, last - seq)):
            seq = entry.seq
            record = _stored_records(entry.record, seq)
            if not has_intact_texts(record):
                raise DamagedLog(f"record {seq} of the log has a text whose SHA-256 does not match")
            yield print_record(record) + b"\n"
        progress("records", seq, last)


def _stored_records(data: bytes, seq: int) -> LogRecord:
    try:
        return decode_record(data)
    except msgspec.MsgspecError as error:
        raise StoreError(f"record {seq} of the log cannot be read by this version: {error}") from error


# --- reading --------------------------------------------------------------------------------------------------------


class Archive:
    """A verified archive: its digest is correct, and every record follows from those before it."""

    def __init__(self, file: BinaryIO, path: Path) -> None:
        self._file = file
        self._path = path
        self._state = State()
        self._digest = ""
        for seq, record in enumerate(self.iter_records(), 1):
            self._fold_state(seq, record)
        self.contents = ArchiveContents(self._state.seq, self._digest)

    def iter_records(self) -> Iterator[LogRecord]:
        """Yield the records in their order.

        Raises `InvalidRequest`, which names the wrong line or the missing part.
        """
        self._file.seek(0)
        try:
            with _unpack_stream(self._file, self._path) as lines:
                yield from self._read_lines(lines)
        except (OSError, EOFError, zstd.ZstdError, zlib.error) as error:
            raise InvalidRequest(f"{self._path}: the archive is damaged: {error}") from None

    def _read_lines(self, lines: BinaryIO) -> Iterator[LogRecord]:
        digest = hashlib.sha256()
        end: _Trailer | None = None
        for number, line in number_lines(lines):
            place = f"{self._path}, line {number}"
            if end is not None:
                raise InvalidRequest(f"{place}: there are lines after the end")
            if number == 1:
                _check_header(decode_json(_header.decode, line, place), place)
            elif line.startswith(_END):
                end = decode_json(_end.decode, line, place).end
                if end != _Trailer(number - 1, digest.hexdigest()):
                    raise InvalidRequest(
                        f"{self._path}: the digest at the end does not match: the archive was changed or damaged"
                    )
            else:
                yield _verify_line(decode_json(read_record, line, place), place)
            digest.update(line + b"\n")
        if end is None:
            raise InvalidRequest(f"{self._path}: the archive is incomplete: its last line is missing")
        self._digest = end.sha256

    def _fold_state(self, seq: int, record: LogRecord) -> None:
        try:
            apply_record(self._state, seq, record)
        except _CONTRADICTIONS:
            raise InvalidRequest(
                f"{self._path}, line {seq + 1}: the record does not follow from those before it"
            ) from None
        self._state.erased.clear()
        self._state.pack_texts()

    @property
    def state(self) -> State:
        """The state that the records make. It must not be changed."""
        return self._state

    def levels(self) -> list[str]:
        """Return every subject that has settings or a mode, as the Confluent API names it.

        No other list contains all of them.
        """
        return [
            f":.{space.name}:{name}" if space.name else name
            for space in self._state.namespaces.values()
            for name in {*space.settings, *space.modes} - {OWN}
        ]

    # --- bringing it to a log -----------------------------------------------------------------------------------------

    async def compare(self, log: Log) -> Restoration:
        """Return what a log has of the archive. Raises `OwnHistory`, `StoreError`; changes nothing."""
        head = await log.head()
        erasable = 0
        async for _, there, wanted in self._read_both(log, head):
            erasable += there != wanted
        total = self.contents.records
        return Restoration(total, max(total - head, 0), erasable, max(head - total, 0))

    async def restore(self, log: Log, progress: Progress = report_nothing) -> Restoration:
        """Append what a log lacks of the archive, and erase the texts purged since. A second call changes nothing.

        Raises `OwnHistory` before anything is written, or when another process writes to the log meanwhile;
        `StoreError`.
        """
        before = await self.compare(log)
        seq = before.records - before.missing
        missing = (encode_record(row) for place, row in enumerate(self.iter_records(), 1) if place > seq)
        for batch in _in_batches(missing):
            if not await log.append(seq, batch):
                raise OwnHistory(seq + 1)
            seq += len(batch)
            progress("records", seq, before.records)
        if before.erasable:
            await self._erase_texts(log)
        if before.missing:
            await log.expect_lost_records()
        return before

    async def _read_both(self, log: Log, head: int) -> AsyncIterator[tuple[int, LogRecord, LogRecord]]:
        """Yield the records of the log with those of the archive, as far as both go.

        They are equal except for texts purged and secrets sealed since. Raises `OwnHistory` for other differences.
        """
        page: Sequence[LogEntry] = ()
        for seq, wanted in enumerate(self.iter_records(), 1):
            if seq > head:
                return
            place = (seq - 1) % _PAGE
            if place == 0:
                page = await log.tail(seq - 1, _PAGE)
            there = _stored_records(page[place].record, seq)
            if there != wanted and not _is_same_history(there, wanted):
                raise OwnHistory(seq)
            yield seq, there, wanted

    async def _erase_texts(self, log: Log) -> None:
        """Erase purged texts from the log, after saving a new snapshot, since the old one may contain them, too."""
        if await log.load_snapshot() is not None:
            while entries := await log.tail(self._state.seq, _PAGE):
                for entry in entries:
                    apply_record(self._state, entry.seq, _stored_records(entry.record, entry.seq))
            await log.save_snapshot(self._state.seq, dump_state(self._state))
        async for seq, there, wanted in self._read_both(log, self.contents.records):
            if there != wanted:
                await log.erase(seq, encode_record(wanted))


@contextmanager
def open_archive(path: Path) -> Iterator[Archive]:
    """Open an archive and verify it by reading all of it. `-` is standard input. Raises `InvalidRequest`."""
    with files.open_input(path) as file:
        if path == files.STANDARD:
            with tempfile.TemporaryFile() as copy:  # it is read several times
                shutil.copyfileobj(file, copy)
                yield Archive(cast("BinaryIO", copy), path)
        else:
            yield Archive(file, path)


@contextmanager
def _unpack_stream(file: BinaryIO, path: Path) -> Iterator[BinaryIO]:
    head = file.read(4)
    file.seek(0)
    if head == _ZSTD_MAGIC:
        with zstd.ZstdFile(file) as unpacked:
            yield cast("BinaryIO", unpacked)
    elif head.startswith(_GZIP_MAGIC):
        with gzip.open(file) as unpacked:
            yield cast("BinaryIO", unpacked)
    else:
        raise InvalidRequest(f"{path}: neither gzip nor zstd, so not an archive")


def _check_header(header: _Header, place: str) -> None:
    if header.archive != "stele":
        raise InvalidRequest(f"{place}: this is not an archive of a registry")
    if header.version > VERSION:
        raise InvalidRequest(f"{place}: format {header.version} is newer than this program, which reads {VERSION}")


def _verify_line(record: LogRecord, place: str) -> LogRecord:
    """Return the record if its texts match their digests. Raises `InvalidRequest` if they do not."""
    if not has_intact_texts(record):
        raise InvalidRequest(f"{place}: the SHA-256 of a text does not match")
    return record


def _is_same_history(there: LogRecord, wanted: LogRecord) -> bool:
    """Return whether two records differ only by texts purged, and secrets sealed, since one of them was written."""
    return (
        redact_texts(there, _without_texts(wanted)) == wanted
        or is_resealed(there, wanted)
        or is_resealed(wanted, there)
    )


def _without_texts(record: LogRecord) -> frozenset[bytes]:
    return frozenset(row.sha for row in record.events if isinstance(row, VersionRegistered) and row.text is None)


def _in_batches(records: Iterable[bytes]) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    for record in records:
        batch.append(record)
        if len(batch) == _PAGE:
            yield batch
            batch = []
    if batch:
        yield batch
