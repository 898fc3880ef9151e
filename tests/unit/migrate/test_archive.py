"""Archives of logs: they can be restored, in part, again and after a purge; invalid files are refused."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.core.box import Box, S, T, to

from stele.core import commands as cmd
from stele.core.events import EventMetadata, LogRecord, VersionRegistered, decode_record, encode_record, redact_texts
from stele.core.fold import apply_record
from stele.core.model import SettingsLevel, SubjectKey
from stele.core.snapshot import dump_state, load_state
from stele.core.state import State
from stele.errors import InvalidRequest
from stele.migrate import archive
from stele.migrate.archive import OwnHistory, Restoration
from stele.storage.memory import MemoryLog


def log_of(*commands: Callable[[Box], Any]) -> MemoryLog:
    """Return a log with the records of these commands."""
    box, records = Box(), []
    for seq, command in enumerate(commands, 1):
        command(box)
        records.append(encode_record(LogRecord(EventMetadata(seq.to_bytes(16, "big"), 1000 + seq), box.events)))
    log = MemoryLog()
    assert asyncio.run(log.append(0, records))
    return log


STEPS: list[Callable[[Box], Any]] = [
    lambda box: box.register(S, "a"),
    lambda box: box.register(T, "b", to(S)),
    lambda box: box.do(cmd.ChangeSettings(SettingsLevel(*T), {"normalize": True})),
    lambda box: box.do(cmd.ChangeSettings(SettingsLevel("c", "nobody"), {"alias": "s"})),
    lambda box: box.do(cmd.CreateSubject(SubjectKey("g", "x"), description="ö")),
    lambda box: box.do(cmd.ChangeItems("keys", {("k", "1"): b'{"secret":1}'})),
    lambda box: box.retire(T),
]


def records_of(log: MemoryLog) -> list[bytes]:
    """Return the records of a log."""
    return [entry.record for entry in asyncio.run(log.tail(0, 10_000))]


def write_log_archive(path: Path, log: MemoryLog) -> Path:
    """Write the archive of a log, and return its path."""
    asyncio.run(archive.write_archive(log, path))
    return path


def restore_archive(path: Path, log: MemoryLog) -> Restoration:
    """Restore an archive, and return the result."""
    with archive.open_archive(path) as log_archive:
        return asyncio.run(log_archive.restore(log))


@pytest.mark.parametrize("name", ["a.gz", "a.zst"])
def test_a_log_comes_back(tmp_path: Path, name: str) -> None:
    """A restored log has the same bytes, and its archive is an identical file."""
    log, other = log_of(*STEPS), MemoryLog()
    path = write_log_archive(tmp_path / name, log)
    assert restore_archive(path, other) == Restoration(7, 7, 0, 0)
    assert records_of(other) == records_of(log)
    assert write_log_archive(tmp_path / f"b{name}", other).read_bytes() == path.read_bytes()
    assert restore_archive(path, other) == Restoration(7, 0, 0, 0)
    with archive.open_archive(path) as log_archive:
        assert log_archive.contents.records == 7
        assert sorted(log_archive.levels()) == [":.c:nobody", "t"]


@pytest.mark.parametrize("there", range(8))
def test_what_is_there_already_stays(tmp_path: Path, there: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that has any part of the archive gets the rest, with any page size."""
    monkeypatch.setattr(archive, "_PAGE", 3)
    log = log_of(*STEPS)
    path = write_log_archive(tmp_path / "a.gz", log)
    partly = log_of(*STEPS[:there])
    assert restore_archive(path, partly).missing == 7 - there
    assert records_of(partly) == records_of(log)


def test_a_store_that_went_on(tmp_path: Path) -> None:
    """Records beyond the archive are counted and kept; a store with another history is left unchanged."""
    path = write_log_archive(tmp_path / "a.gz", log_of(*STEPS[:3]))
    ahead, before = log_of(*STEPS), records_of(log_of(*STEPS))
    assert restore_archive(path, ahead) == Restoration(3, 0, 0, 4)
    assert records_of(ahead) == before
    own = log_of(STEPS[0], lambda box: box.register(T, "other"))
    own_records = records_of(own)
    with pytest.raises(OwnHistory, match="its record 2"):
        restore_archive(path, own)
    assert records_of(own) == own_records


class _Meddled(MemoryLog):
    """A log that another writer changes after it was compared."""

    async def append(self, expected: int, records: Iterable[bytes]) -> bool:  # type: ignore[override]  # wider is fine
        await super().append(0, [b"x"])
        return await super().append(expected, list(records))


def test_somebody_writes_meanwhile(tmp_path: Path) -> None:
    """A record that another writer appends meanwhile raises an error, and nothing is appended after it."""
    path, log = write_log_archive(tmp_path / "a.gz", log_of(*STEPS)), _Meddled()
    with pytest.raises(OwnHistory):
        restore_archive(path, log)
    assert records_of(log) == [b"x"]


def test_purged_texts_go_everywhere(tmp_path: Path) -> None:
    """A purged text is erased from the log and the snapshot of a store that got it from an earlier archive."""
    first, full = log_of(*STEPS[:2]), log_of(*STEPS[:2], lambda box: box.purge(T))
    purged = MemoryLog()
    rows = [decode_record(row) for row in records_of(full)]
    purged_sha = next(event.sha for event in rows[1].events if isinstance(event, VersionRegistered))
    asyncio.run(purged.append(0, [encode_record(redact_texts(row, frozenset({purged_sha}))) for row in rows]))
    other = MemoryLog()
    restore_archive(write_log_archive(tmp_path / "a.gz", first), other)

    before = State()
    for seq, row in enumerate(records_of(other), 1):
        apply_record(before, seq, decode_record(row))
    asyncio.run(other.save_snapshot(2, dump_state(before)))
    assert restore_archive(write_log_archive(tmp_path / "b.gz", purged), other) == Restoration(3, 1, 1, 0)
    assert records_of(other) == records_of(purged)
    stored = asyncio.run(other.load_snapshot())
    assert stored is not None
    state = load_state(stored[1])
    assert state is not None
    assert (state.seq, purged_sha in state.contents) == (3, False)


def test_every_byte_of_an_archive_counts(tmp_path: Path) -> None:
    """A cut, an extended and a changed archive, and a file that is no archive, are refused."""
    path = write_log_archive(tmp_path / "a.gz", log_of(*STEPS))
    lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
    head, first, *rest = lines
    cases = {
        "its last line is missing": lines[:-1],
        "lines after the end": [*lines, lines[-1]],
        "does not match": [head, first.replace(b"1001", b"1002"), *rest],
        "newer than this program": [head.replace(b'"version":1', b'"version":2'), first, *rest],
        "not an archive of a registry": [b'{"archive":"other","version":1}\n', first, *rest],
        "line 2: has members that this version does not know": [
            head,
            first.replace(b'"stamp"', b'"new":1,"stamp"'),
            *rest,
        ],
        "line 2: JSON is malformed": [head, b"{nonsense\n", *rest],
        "the SHA-256 of a text does not match": [head, first.replace(b'"text":"YQ=="', b'"text":"Yg=="'), *rest],
        "nested too deeply": [head, b'{"x":' * 100_000, b"\n"],
    }
    for why, content in cases.items():
        path.write_bytes(gzip.compress(b"".join(content)))
        with pytest.raises(InvalidRequest, match=why), archive.open_archive(path):
            pass
    path.write_bytes(gzip.compress(b"".join(lines))[:-9])
    with pytest.raises(InvalidRequest, match="damaged"), archive.open_archive(path):
        pass
    path.write_bytes(b"something else")
    with pytest.raises(InvalidRequest, match="neither gzip nor zstd"), archive.open_archive(path):
        pass


def test_records_that_nothing_led_to(tmp_path: Path) -> None:
    """An archive that is complete but no valid history is refused with the line, and nothing is restored."""
    orphan = MemoryLog()
    asyncio.run(orphan.append(0, records_of(log_of(*STEPS))[-1:]))
    path = write_log_archive(tmp_path / "a.gz", orphan)
    with pytest.raises(InvalidRequest, match="line 2: the record does not follow"), archive.open_archive(path):
        pass


def test_an_empty_registry(tmp_path: Path) -> None:
    """The archive of an empty log has no records."""
    path = write_log_archive(tmp_path / "a.zst", MemoryLog())
    assert restore_archive(path, MemoryLog()) == Restoration(0, 0, 0, 0)


def test_an_archive_is_its_owners_alone(tmp_path: Path) -> None:
    """Only the owner can read an archive, which contains secrets, even if it replaces a file readable by all."""
    path = tmp_path / "registry.stele"
    path.touch(0o644)
    write_log_archive(path, MemoryLog())
    assert path.stat().st_mode & 0o777 == 0o600
