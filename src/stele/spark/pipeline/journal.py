"""The journal of a pipeline, beside Spark's checkpoint, and the reports on batches that it keeps.

Before anything of a batch is committed, the journal takes down what the batch was classified by; afterwards, its
result. Tables are changed one after the other, and a process may die in between. The batch is then repeated and must be
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
"""Reasons told apart in the report of one batch."""


class DeadLetterSample(msgspec.Struct, frozen=True):
    """A dead letter, kept to be looked at without its table.

    code    name of its `ErrorCode`
    reason  why it could not be decoded
    value   its first bytes, in base64
    bytes   how many it has
    place   topic, partition and offset, or the file
    """

    code: str
    reason: str
    value: str
    bytes: int
    place: str = ""


class BatchReport(msgspec.Struct, frozen=True):
    """One micro-batch.

    batch           Spark's number of it, from 0; of a replay its own number
    at              when it was done, seconds since 1970
    rows            rows added to the tables
    dead_letters    rows added to the dead-letter table
    tombstones      null records, which become no row
    tables          rows by table
    versions        version by subject whose columns the tables have
    records         good records by what names their writer's schema: its id, or what the wire has instead
    codes           dead letters by the name of their `ErrorCode`
    reasons         dead letters by reason; of very many different ones the most frequent
    samples         some of the dead letters, where the pipeline keeps any
    columns_added   dotted paths of columns the tables gained
    changes         all changes of tables: created, columns added, widened, renamed, commented
    replayed        the batch had been begun, perhaps finished, by an earlier run
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
    """The sums over batches: of one run, or of all that a checkpoint has seen.

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
    """Hold a checkpoint for this process: two that run one pipeline at once could commit one batch twice.

    name is that of the kind of batches, see `BatchJournal`.

    Only folders of this machine can be held, and not on Windows; elsewhere Spark alone notices, later.
    Raises `Conflict` when another process, or another run in this one, holds it.
    """
    if "://" in checkpoint or fcntl is None:
        yield
        return
    folder = Path(checkpoint) / FOLDER / name
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("ab") as file:
        if not _try_lock(file):
            time.sleep(LOCK_PROBE_SECONDS)  # somebody may only have looked, like `status`
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
"""Seconds in which a look at the lock is over."""


FOLDER: Final = "stele"
"""Our folder in a checkpoint."""
KEPT_ENTRIES: Final = 10
"""Entries kept, for people who look; only the newest one is ever needed."""
KEPT_REPORTS: Final = 2000
"""Reports kept, for plots over time."""
_TOTALS: Final = "totals.json"
_LAG: Final = "lag.json"


class BatchEntry(msgspec.Struct, frozen=True):
    """What one batch was judged by.

    pins   the schemas of each route
    known  what its records call schemas, of those that were found, as texts; others are unknown for ever
    done   whether all its tables have it
    """

    batch: int
    pins: tuple[PinnedSchemas, ...]
    known: tuple[str, ...] = ()
    done: bool = False


class BatchJournal:
    """The folder `stele` of a checkpoint, on any file system pyarrow knows; name tells kinds of batches apart."""

    def __init__(self, checkpoint: str, name: str = "") -> None:
        from pyarrow.fs import FileSystem

        address = checkpoint if "://" in checkpoint else str(Path(checkpoint).resolve())
        files, folder = FileSystem.from_uri(address)
        self._files: FileSystem = files
        self._root = f"{folder}/{FOLDER}"
        self._folder = f"{self._root}/{name}" if name else self._root
        self._files.create_dir(f"{self._folder}/reports", recursive=True)

    def application_name(self) -> str:
        """Return the name under which this checkpoint's batches are counted in tables; made once."""
        known = self._read_file(f"{self._root}/application")
        if known is not None:
            return known.decode()
        name = uuid4().hex
        self._write_file(f"{self._root}/application", name.encode())
        return name

    def read_entry(self, batch: int) -> BatchEntry | None:
        """Return what a batch was judged by, None when it did not get that far.

        Raises `StoreError` for a damaged entry.
        """
        return self._read_json(f"{self._folder}/{batch}.json", BatchEntry)

    def save_entry(self, entry: BatchEntry) -> None:
        """Write down a batch before it is committed, and forget an old one."""
        self._write_file(f"{self._folder}/{entry.batch}.json", msgspec.json.encode(entry))
        self._delete_file(f"{self._folder}/{entry.batch - KEPT_ENTRIES}.json")

    def finish_batch(self, entry: BatchEntry, report: BatchReport) -> None:
        """Write down that a batch is in its tables, and what it was; once for each."""
        before = self.read_totals()
        if report.batch > before.through:
            self._write_file(f"{self._folder}/reports/{report.batch}.json", msgspec.json.encode(report))
            self._write_file(f"{self._folder}/{_TOTALS}", msgspec.json.encode(before.add_batch(report)))
            self._delete_file(f"{self._folder}/reports/{report.batch - KEPT_REPORTS}.json")
        if not entry.done:
            self.save_entry(msgspec.structs.replace(entry, done=True))

    def save_lag(self, topics: dict[str, int]) -> None:
        """Write down how many records of each topic no finished batch has had, as of now."""
        self._write_file(f"{self._folder}/{_LAG}", msgspec.json.encode({"at": time.time(), "topics": topics}))

    def read_totals(self) -> PipelineReport:
        """Return the sums over all batches there were."""
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
