"""What keeps an Iceberg table that a pipeline writes from growing in what nobody reads."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

LEAST: Final = "history.expire.min-snapshots-to-keep"
OLDEST: Final = "history.expire.max-snapshot-age-ms"

PROPERTIES: Final = {
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
    "commit.manifest-merge.enabled": "true",
    LEAST: "100",
    OLDEST: str(24 * 3600 * 1000),
}
"""Of tables made here: every batch is a new metadata file, a new manifest and a new snapshot, which would pile up."""

TOGETHER: Final = 50
"""Snapshots are dropped when so many may go, not one with every batch."""


def delete_unreferenced(table: Table, folder: str, keep: frozenset[str] = frozenset()) -> list[str]:
    """Delete the files of a folder that no snapshot of the table names, but those to keep; say which they were."""
    strange = {
        path for path in _list_files(table, folder) if _file_name(path) not in {_file_name(each) for each in keep}
    }
    if strange:
        named = {_file_name(path) for path in _referenced_files(table)}
        strange = {path for path in strange if _file_name(path) not in named}
    for path in strange:
        table.io.delete(path)
    return sorted(strange)


def _file_name(path: str) -> str:
    """Return a file's own name, which has a UUID in it: one file may be addressed in several ways (`file:/x`, `/x`)."""
    return path.rpartition("/")[2]


def _list_files(table: Table, folder: str) -> Iterator[str]:
    from pyarrow.fs import FileSelector, FileType
    from pyiceberg.io.pyarrow import PyArrowFileIO

    if not isinstance(table.io, PyArrowFileIO):
        return
    scheme, netloc, path = PyArrowFileIO.parse_location(folder)
    files = table.io.fs_by_scheme(scheme, netloc)
    for info in files.get_file_info(FileSelector(path, allow_not_found=True)):
        if info.type == FileType.File:
            yield f"{folder}/{info.base_name}"


def _referenced_files(table: Table) -> Iterator[str]:
    """Return the data files that any snapshot of the table names."""
    seen: set[str] = set()
    for snapshot in table.snapshots():
        for manifest in snapshot.manifests(table.io):
            if manifest.manifest_path not in seen:
                seen.add(manifest.manifest_path)
                yield from (entry.data_file.file_path for entry in manifest.fetch_manifest_entry(table.io))


def expire_snapshots(table: Table) -> int:
    """Forget old snapshots as the table's properties tell, and delete what only they needed of the metadata.

    Tables without these properties keep all theirs. Data files stay, those too that another writer has replaced.
    Returns how many snapshots went.
    """
    from pyiceberg.exceptions import CommitFailedException

    old = _expirable_snapshots(table)
    if len(old) < TOGETHER:
        return 0
    before = {path for snapshot in old for path in _metadata_files(table, snapshot)}
    try:
        table.maintenance.expire_snapshots().by_ids([snapshot.snapshot_id for snapshot in old]).commit()
    except CommitFailedException:
        return 0  # another writer was faster: with the next batch, then
    still = {path for snapshot in table.refresh().snapshots() for path in _metadata_files(table, snapshot)}
    for path in before - still:
        with suppress(FileNotFoundError):
            table.io.delete(path)
    return len(old)


def _expirable_snapshots(table: Table) -> list[Snapshot]:
    """Return the snapshots that may go.

    These are older than told, not among the newest ones, and no branch or tag points at them.
    """
    least, oldest = table.properties.get(LEAST, ""), table.properties.get(OLDEST, "")
    if not (re.fullmatch(r"\d+", least) and re.fullmatch(r"\d+", oldest)):
        return []
    until = (datetime.now(UTC) - timedelta(milliseconds=int(oldest))).timestamp() * 1000
    held = {ref.snapshot_id for ref in table.refs().values()}
    snapshots = sorted(table.snapshots(), key=lambda each: (each.sequence_number or 0, each.timestamp_ms))
    ahead = snapshots[: max(0, len(snapshots) - max(1, int(least)))]
    return [each for each in ahead if each.timestamp_ms < until and each.snapshot_id not in held]


def _metadata_files(table: Table, snapshot: Snapshot) -> set[str]:
    manifests = {manifest.manifest_path for manifest in snapshot.manifests(table.io)}
    return manifests | ({snapshot.manifest_list} if snapshot.manifest_list else set())
