"""Journals of pipelines, read from the folders of their checkpoints: neither Spark nor a pipeline has to run.

`stele.spark.pipeline.journal` writes them. This module reads the part that pages show.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from stele.errors import NotFound

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]  # asked for before use

_HAS_LOCKS: Final = bool(fcntl)
FOLDER: Final = "stele"
"""Folder of the journal in a checkpoint."""
MOST_PIPELINES: Final = 200
"""Pipelines of one folder that are read, the first ones by name."""
MOST_BATCHES: Final = 50
"""Reports of batches that are read, the newest ones."""
_MOST_BYTES: Final = 4 * 1024 * 1024

T = TypeVar("T")


class ColumnChangeReport(msgspec.Struct, frozen=True):
    """A change of a column.

    `kind` is what was done, `path` the column (empty for the whole table), `type` its type afterwards ('' if
    unchanged).
    """

    kind: str = ""
    path: tuple[str, ...] = ()
    type: str = ""


class TableChangeReport(msgspec.Struct, frozen=True):
    """A change of a table."""

    table: str = ""
    change: ColumnChangeReport = ColumnChangeReport()


class SampledLetter(msgspec.Struct, frozen=True):
    """A dead letter whose first bytes are kept; see `DeadLetterSample` in `stele.spark.pipeline.journal`."""

    code: str = ""
    reason: str = ""
    value: str = ""
    bytes: int = 0
    place: str = ""


class BatchSummary(msgspec.Struct, frozen=True):
    """One batch; see `BatchReport` in `stele.spark.pipeline.journal`. Times are in seconds since 1970."""

    batch: int
    at: float = 0.0
    rows: int = 0
    dead_letters: int = 0
    tombstones: int = 0
    versions: dict[str, int] = {}
    codes: dict[str, int] = {}
    reasons: dict[str, int] = {}
    samples: tuple[SampledLetter, ...] = ()
    columns_added: tuple[str, ...] = ()
    changes: tuple[TableChangeReport, ...] = ()
    replayed: bool = False
    seconds: float = 0.0


class PipelineTotals(msgspec.Struct, frozen=True):
    """The sums over all batches; through is the number of the newest one, -1 for none."""

    batches: int = 0
    rows: int = 0
    dead_letters: int = 0
    tombstones: int = 0
    tables: dict[str, int] = {}
    versions: dict[str, tuple[int, ...]] = {}
    records: dict[str, int] = {}
    seconds: float = 0.0
    first: float = 0.0
    last: float = 0.0
    through: int = -1


class PipelineLag(msgspec.Struct, frozen=True):
    """Number of records of each topic that no finished batch had read, at a time (seconds since 1970)."""

    at: float = 0.0
    topics: dict[str, int] = {}

    @property
    def records(self) -> int:
        """Number of these records in all topics."""
        return sum(self.topics.values())


class PipelineJournal(msgspec.Struct, frozen=True):
    """A pipeline.

    name     name of the folder that is its checkpoint
    running  whether a process holds the checkpoint; None: that cannot be determined here
    totals   totals over the whole life of its checkpoint
    batches  the newest ones, newest first
    reasons  dead letters of these batches by reason, the most common first
    codes    likewise by code
    offsets  where the newest batch that Spark planned ends, by source: text as Spark wrote it
    lag      how far it was behind its topics when that was last measured; None: unknown
    problem  why the journal cannot be read; '' where it can
    """

    name: str
    running: bool | None
    totals: PipelineTotals = PipelineTotals()
    batches: tuple[BatchSummary, ...] = ()
    reasons: dict[str, int] = {}
    codes: dict[str, int] = {}
    offsets: tuple[str, ...] = ()
    lag: PipelineLag | None = None
    problem: str = ""


def list_journals(folder: str) -> list[PipelineJournal]:
    """Return the pipelines whose checkpoints are subfolders of a folder, by name, each with its newest batch only."""
    root = Path(folder)
    try:
        names = sorted(
            entry.name for entry in os.scandir(root) if entry.is_dir() and (root / entry.name / FOLDER).is_dir()
        )
    except OSError:
        return []
    return [_read_journal(root / name, most_batches=1) for name in names[:MOST_PIPELINES]]


def read_journal(folder: str, name: str) -> PipelineJournal:
    """Return a pipeline. Raises `NotFound`."""
    checkpoint = Path(folder) / name
    if name in {"", ".", ".."} or "/" in name or "\\" in name or "\0" in name or not (checkpoint / FOLDER).is_dir():
        raise NotFound(f"There is no checkpoint '{name}' among the pipelines.")
    return _read_journal(checkpoint, most_batches=MOST_BATCHES)


def _read_journal(checkpoint: Path, *, most_batches: int) -> PipelineJournal:
    journal = checkpoint / FOLDER
    running = _is_held(journal)
    try:
        totals = _read_json(journal / "totals.json", PipelineTotals) or PipelineTotals()
        batches = tuple(_read_batches(journal, totals.through, most_batches))
        lag = _read_json(journal / "lag.json", PipelineLag)
    except (msgspec.MsgspecError, OSError, ValueError) as error:
        return PipelineJournal(checkpoint.name, running, problem=f"the journal is damaged: {error}")
    return PipelineJournal(
        checkpoint.name,
        running,
        totals,
        batches,
        _sum_counts(batch.reasons for batch in batches),
        _sum_counts(batch.codes for batch in batches),
        _read_offsets(checkpoint),
        lag,
    )


def _read_batches(journal: Path, through: int, most: int) -> Iterator[BatchSummary]:
    for number in range(through, max(-1, through - most), -1):
        report = _read_json(journal / "reports" / f"{number}.json", BatchSummary)
        if report is not None:
            yield report


def _read_json(path: Path, shape: type[T]) -> T | None:
    try:
        with path.open("rb") as file:
            document = file.read(_MOST_BYTES + 1)
    except FileNotFoundError:
        return None
    if len(document) > _MOST_BYTES:
        raise ValueError(f"{path.name} is longer than {_MOST_BYTES} bytes")
    return msgspec.json.decode(document, type=shape)


def _read_offsets(checkpoint: Path) -> tuple[str, ...]:
    """Return the lines of the newest offsets file after its header: one for each source."""
    try:
        numbers = [int(entry.name) for entry in os.scandir(checkpoint / "offsets") if entry.name.isdigit()]
        newest = checkpoint / "offsets" / str(max(numbers))
        lines = newest.read_text(encoding="utf-8", errors="replace")[:100_000].splitlines()
    except (OSError, ValueError):
        return ()
    return tuple(line for line in lines[2:] if line.strip() not in {"", "-"})


def _is_held(journal: Path) -> bool | None:
    """Return whether a process holds the lock of a journal."""
    if not _HAS_LOCKS:
        return None
    try:
        with (journal / "lock").open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    except OSError:
        return None
    return False


def _sum_counts(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for each in counts:
        for name, count in each.items():
            sums[name] = sums.get(name, 0) + count
    return dict(sorted(sums.items(), key=lambda item: (-item[1], item[0])))
