"""The journal of a pipeline, beside Spark's checkpoint, and the reports on batches that it keeps.

Before a batch is committed, the journal saves what the batch was classified by. After the commit, it saves the result.
Tables are changed one after the other, and the process can stop in between. The batch is then repeated and must be
classified as before: by the same schemas, with the same ids unknown. Otherwise a record whose schema was registered
meanwhile would be in two tables, or in none.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, TypeVar
from uuid import uuid4

import msgspec

from stele.errors import Conflict, StoreError
from stele.spark.pipeline.schema_evolution import TableChange
from stele.spark.registry import PinnedSchemas

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

MOST_REASONS = 20
"""Maximum number of different reasons in the report of one batch."""


class DeadLetterSample(msgspec.Struct, frozen=True):
    """A dead letter in a batch's report, which can be shown without reading the table.

    code    name of its `ErrorCode`
    reason  why it could not be decoded
    value   its first bytes, in base64
    bytes   its size in bytes
    place   topic, partition and offset, or the file
    """

    code: str
    reason: str
    value: str
    bytes: int
    place: str = ""


class BatchReport(msgspec.Struct, frozen=True):
    """The result of one micro-batch.

    batch           Spark's number of it, from 0; of a replay its own number
    at              when it was done, seconds since 1970
    rows            rows added to the tables
    dead_letters    rows added to the dead-letter table
    tombstones      null records, which become no row
    tables          rows by table
    versions        by subject, the version whose columns the tables have
    records         good records by what names their writer's schema: its id, or the wire's substitute
    codes           dead letters by the name of their `ErrorCode`
    reasons         dead letters by reason; of very many different ones the most frequent
    samples         some of the dead letters, if the pipeline keeps any
    columns_added   dotted paths of columns the tables gained
    changes         all changes of tables: created, columns added, widened, renamed, commented
    replayed        an earlier run started the batch, and perhaps finished it
    seconds         how long it took
    """

    batch: int
    at: float = 0.0
    rows: int = 0
    dead_letters: int = 0
    tombstones: int = 0
    tables: dict[str, int] = {}
    versions: dict[str, int] = {}
    records: dict[str, int] = {}
    codes: dict[str, int] = {}
    reasons: dict[str, int] = {}
    samples: tuple[DeadLetterSample, ...] = ()
    columns_added: tuple[str, ...] = ()
    changes: tuple[TableChange, ...] = ()
    replayed: bool = False
    seconds: float = 0.0


class PipelineReport(msgspec.Struct, frozen=True):
    """The sums over batches: those of one run, or all of a checkpoint.

    versions   versions used, in order, by subject
    first      when the first batch was done, seconds since 1970; last: the newest one
    through    number of the newest batch, -1 for none
    """

    batches: int = 0
    rows: int = 0
    dead_letters: int = 0
    tombstones: int = 0
    tables: dict[str, int] = {}
    versions: dict[str, tuple[int, ...]] = {}
    records: dict[str, int] = {}
    columns_added: tuple[str, ...] = ()
    changes: tuple[TableChange, ...] = ()
    seconds: float = 0.0
    first: float = 0.0
    last: float = 0.0
    through: int = -1

    def add_batch(self, batch: BatchReport) -> PipelineReport:
        """Return the report with one more batch."""
        versions = {
            subject: tuple(dict.fromkeys((*self.versions.get(subject, ()), version)))
            for subject, version in batch.versions.items()
        }
        return PipelineReport(
            batches=self.batches + 1,
            rows=self.rows + batch.rows,
            dead_letters=self.dead_letters + batch.dead_letters,
            tombstones=self.tombstones + batch.tombstones,
            tables=add_counts(self.tables, batch.tables),
            versions=self.versions | versions,
            records=add_counts(self.records, batch.records),
            columns_added=self.columns_added + batch.columns_added,
            changes=self.changes + batch.changes,
            seconds=self.seconds + batch.seconds,
            first=self.first or batch.at,
            last=batch.at,
            through=batch.batch,
        )


def add_counts(one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
    """Return the sums by key."""
    return {key: one.get(key, 0) + other.get(key, 0) for key in (*one, *(key for key in other if key not in one))}


try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]  # asked for before use


T = TypeVar("T")


@contextmanager
def pipeline_lock(checkpoint: str, name: str = "") -> Iterator[None]:
    """Hold the lock of a checkpoint, since two processes that run one pipeline could commit a batch twice.

    name is the kind of batches, see `BatchJournal`.

    The lock works for local folders only, and not on Windows. Elsewhere only Spark detects the second process, and
    later.
    Raises `Conflict` when another process, or another run in this process, holds the lock.
    """
    if "://" in checkpoint or fcntl is None:
        yield
        return
    folder = Path(checkpoint) / FOLDER / name
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("ab") as file:
        if not _try_lock(file):
            time.sleep(LOCK_PROBE_SECONDS)  # a status check may have held the lock for a moment
            if not _try_lock(file):
                doing = "replayed" if name else "run"
                raise Conflict(f"the pipeline of {checkpoint} is being {doing} by another process")
        yield


def _try_lock(file: BinaryIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


LOCK_PROBE_SECONDS: Final = 0.1
"""Seconds to wait before the second attempt; a status check holds the lock for less time than this."""


FOLDER: Final = "stele"
"""Name of Stele's folder in a checkpoint."""
KEPT_ENTRIES: Final = 10
"""Number of journal entries that are kept. Only the newest is needed; the others are for users who inspect them."""
KEPT_REPORTS: Final = 2000
"""Number of batch reports that are kept, for plots over time."""
_TOTALS: Final = "totals.json"
_LAG: Final = "lag.json"


class BatchEntry(msgspec.Struct, frozen=True):
    """What one batch was classified by.

    pins   the schemas of each route
    known  ids or other names of schemas in its records that were found, as texts; all others stay unknown
    done   whether all its tables have it
    """

    batch: int
    pins: tuple[PinnedSchemas, ...]
    known: tuple[str, ...] = ()
    done: bool = False


class BatchJournal:
    """The folder `stele` of a checkpoint, on any file system that pyarrow knows.

    `name` is the kind of batches: '' for those of the pipeline, `replay` for replays.
    """

    def __init__(self, checkpoint: str, name: str = "") -> None:
        from pyarrow.fs import FileSystem

        address = checkpoint if "://" in checkpoint else str(Path(checkpoint).resolve())
        files, folder = FileSystem.from_uri(address)
        self._files: FileSystem = files
        self._root = f"{folder}/{FOLDER}"
        self._folder = f"{self._root}/{name}" if name else self._root
        self._files.create_dir(f"{self._folder}/reports", recursive=True)

    def application_name(self) -> str:
        """Return the name that marks this checkpoint's batches in tables. It is created once."""
        known = self._read_file(f"{self._root}/application")
        if known is not None:
            return known.decode()
        name = uuid4().hex
        self._write_file(f"{self._root}/application", name.encode())
        return name

    def read_entry(self, batch: int) -> BatchEntry | None:
        """Return what a batch was classified by, or None if no entry was saved.

        Raises `StoreError` for a damaged entry.
        """
        return self._read_json(f"{self._folder}/{batch}.json", BatchEntry)

    def save_entry(self, entry: BatchEntry) -> None:
        """Save the entry of a batch, and delete an old entry."""
        self._write_file(f"{self._folder}/{entry.batch}.json", msgspec.json.encode(entry))
        self._delete_file(f"{self._folder}/{entry.batch - KEPT_ENTRIES}.json")

    def finish_batch(self, entry: BatchEntry, report: BatchReport) -> None:
        """Save the report of a batch that is in its tables, once per batch, and mark its entry as done."""
        before = self.read_totals()
        if report.batch > before.through:
            self._write_file(f"{self._folder}/reports/{report.batch}.json", msgspec.json.encode(report))
            self._write_file(f"{self._folder}/{_TOTALS}", msgspec.json.encode(before.add_batch(report)))
            self._delete_file(f"{self._folder}/reports/{report.batch - KEPT_REPORTS}.json")
        if not entry.done:
            self.save_entry(msgspec.structs.replace(entry, done=True))

    def save_lag(self, topics: dict[str, int]) -> None:
        """Save the lag by topic with the current time: the number of records that are in no finished batch."""
        self._write_file(f"{self._folder}/{_LAG}", msgspec.json.encode({"at": time.time(), "topics": topics}))

    def read_totals(self) -> PipelineReport:
        """Return the sums over all batches."""
        return self._read_json(f"{self._folder}/{_TOTALS}", PipelineReport) or PipelineReport()

    def read_reports(self) -> list[BatchReport]:
        """Return the newest batches, oldest first."""
        last = self.read_totals().through
        numbers = range(max(0, last - KEPT_REPORTS + 1), last + 1)
        reports = (self._read_json(f"{self._folder}/reports/{number}.json", BatchReport) for number in numbers)
        return [report for report in reports if report is not None]

    def _read_json(self, path: str, type_: type[T]) -> T | None:
        document = self._read_file(path)
        if document is None:
            return None
        try:
            return msgspec.json.decode(document, type=type_)
        except msgspec.MsgspecError as error:
            raise StoreError(f"{path} is damaged: {error}") from error

    def _file_exists(self, path: str) -> bool:
        from pyarrow.fs import FileType

        return bool(self._files.get_file_info(path).type == FileType.File)

    def _delete_file(self, path: str) -> None:
        if self._file_exists(path):
            self._files.delete_file(path)

    def _read_file(self, path: str) -> bytes | None:
        if not self._file_exists(path):
            return None
        with self._files.open_input_stream(path) as stream:
            return bytes(stream.read())

    def _write_file(self, path: str, data: bytes) -> None:
        folder, _, name = path.rpartition("/")
        draft = f"{folder}/.{name}.{uuid4().hex}"
        with self._files.open_output_stream(draft) as stream:
            stream.write(data)
        self._files.move(draft, path)
