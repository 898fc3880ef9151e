"""The log in files: its form, its state after crashes, and its errors when the files have changed."""

# ruff: noqa: ASYNC240 - small files, and nothing else runs on these loops
import asyncio
import os
import shutil
import stat
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest
import pytest_asyncio

from stele.errors import DamagedLog, InvalidRequest, StoreError, StoreReplaced
from stele.storage import maintenance, open_log
from stele.storage.files import writer
from stele.storage.files.lines import Line, print_line, read_line
from stele.storage.files.log import FilesLog
from stele.storage.files.maintenance import StoreFolder
from stele.testing.log_crew import read_all


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of the log."""
    return tmp_path / "log"


@pytest_asyncio.fixture
async def log(folder: Path) -> AsyncIterator[FilesLog]:
    """An empty log."""
    log = await FilesLog.open(folder, patience=0.3)
    yield log
    await log.close()


async def _fill(folder: Path, *batches: list[bytes]) -> Path:
    """Append batches to a log, and return the file of its records."""
    log = await FilesLog.open(folder)
    for batch in batches:
        assert await log.append(await log.head(), batch)
    await log.close()
    return _segments(folder)[-1]


async def _read(folder: Path) -> list[bytes]:
    log = await FilesLog.open(folder)
    try:
        return [entry.record for entry in await read_all(log)]
    finally:
        await log.close()


def _segments(folder: Path) -> list[Path]:
    return sorted(folder.glob("log-*.txt"))


# --- what it looks like ---------------------------------------------------------------------------------------------


async def test_records_can_be_read(log: FilesLog, folder: Path) -> None:
    """A record is one line of printable ASCII in which texts are readable."""
    await log.append(0, [b'{"type": "record"}', b"two\nlines \\ \xff"])
    header, *lines = _segments(folder)[0].read_bytes().splitlines()
    assert header.startswith(b"# stele-log 1: ")
    assert [line.split(b" ", 3)[:2] for line in lines] == [[b"1", b"1/2"], [b"2", b"2/2"]]
    assert [line.split(b" ", 3)[3] for line in lines] == [b'{"type": "record"}', rb"two\nlines \\ \xff"]
    assert all(0x20 <= byte < 0x7F for line in lines for byte in line)


@pytest.mark.parametrize("record", [b"", b"\\n\n\r\\", bytes(range(256)), "Grüße ✓".encode()])
def test_lines_come_back(record: bytes) -> None:
    """Every byte of a record is read back; a line with a changed byte, or without its end, is rejected."""
    data = print_line(Line(7, 6, 9, record))
    assert read_line(data) == Line(7, 6, 9, record)
    assert data.count(b"\n") == 1
    assert read_line(data[:-1]) is None
    for place in range(len(data)):
        changed = bytearray(data)
        changed[place] ^= 1
        assert read_line(bytes(changed)) is None


async def test_nobody_else_may_read(log: FilesLog, folder: Path) -> None:
    """Only the owner can read the folder and its files, since keys and secrets are in the log."""
    await log.append(0, [b"x"])
    await log.save_snapshot(1, b"state")
    await log.erase(1, b"y")
    async with log.turn():
        pass
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}


async def test_long_segments_end(log: FilesLog, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long segment gets no further batch, and reads cover all segments from any place."""
    monkeypatch.setattr(writer, "SEGMENT_BYTES", 4000)
    records = [b"%d " % i * (i * 37 % 900) for i in range(60)]
    for i, record in enumerate(records):
        assert await log.append(i, [record])
    assert len(_segments(folder)) > 3
    assert [entry.record for entry in await read_all(log, 7)] == records
    other = await FilesLog.open(folder)
    for after in range(0, 60, 7):
        assert [entry.record for entry in await other.tail(after, 100)] == records[after:]
    await other.erase(3, b"gone")
    assert [entry.record for entry in await log.tail(1, 3)] == [records[1], b"gone", records[3]]
    await other.close()


# --- crashes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lost", [0, 1, 5, 40])
async def test_torn_batches_are_never_seen(folder: Path, lost: int) -> None:
    """An incomplete batch of a failed writer is never returned and is cut off; a complete one is kept."""
    await _fill(folder, [b"a"], [b"b"])
    path = _segments(folder)[-1]
    batch = b"".join(print_line(Line(seq, 3, 5, b"torn %d" % seq)) for seq in (3, 4, 5))
    with path.open("ab") as file:
        file.write(batch[: len(batch) - lost])
    whole = [b"a", b"b"] + ([] if lost else [b"torn 3", b"torn 4", b"torn 5"])
    assert await _read(folder) == whole
    assert [stored for _, stored in StoreFolder(f"files:///{folder}").read_stored(0)] == whole
    await _fill(folder, [b"next"])
    assert await _read(folder) == [*whole, b"next"]


async def test_a_reader_does_not_see_what_is_not_durable(log: FilesLog, folder: Path) -> None:
    """Lines after the head are not read; the next writer keeps the complete ones."""
    await log.append(0, [b"a"])
    with _segments(folder)[-1].open("ab") as file:
        file.write(print_line(Line(2, 2, 2, b"written, not acknowledged")) + b"3 1/1 00")
    assert await log.head() == 1
    assert [entry.record for entry in await log.tail(0, 9)] == [b"a"]
    assert await log.append(1, [b"b"]) is False
    assert await log.append(2, [b"b"])
    assert [entry.record for entry in await log.tail(0, 9)] == [b"a", b"written, not acknowledged", b"b"]


async def test_an_old_head_loses_nothing(folder: Path) -> None:
    """The head is not synced: after a power failure it may be old, empty or missing, and is restored without loss."""
    await _fill(folder, [b"a"])
    before = (folder / "head").read_bytes()
    await _fill(folder, [b"b", b"c"], [b"d"])
    for content in (before, b"", b"nonsense" * 20):
        (folder / "head").write_bytes(content)
        assert await _read(folder) == [b"a", b"b", b"c", b"d"]
    (folder / "head").unlink()
    assert await _read(folder) == [b"a", b"b", b"c", b"d"]


async def test_a_head_that_breaks_while_running(log: FilesLog, folder: Path) -> None:
    """A running log restores a damaged head from its segments."""
    await log.append(0, [b"a", b"b"])
    (folder / "head").write_bytes(b"x" * 49)
    assert log.has_changed()
    assert await log.head() == 2
    assert await log.append(2, [b"c"])


async def test_damage_is_not_taken_for_a_crash(folder: Path) -> None:
    """A damaged record that was complete once raises an error and is not cut off, even without a head."""
    path = await _fill(folder, [b"a"], [b"broken"], [b"c"])
    path.write_bytes(path.read_bytes().replace(b"broken", b"brokem"))
    (folder / "head").unlink()
    with pytest.raises(DamagedLog, match=r"Record 2 is missing from .* or is damaged"):
        await FilesLog.open(folder)
    assert b"brokem" in path.read_bytes()


async def test_lost_records(folder: Path) -> None:
    """A log that ends before its head does not open."""
    path = await _fill(folder, [b"a"], [b"b"])
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(DamagedLog, match="Record 2 is missing"):
        await FilesLog.open(folder)


async def test_damaged_record(log: FilesLog, folder: Path) -> None:
    """A changed byte raises an error that names the record, and no later record is returned in its place."""
    await log.append(0, [b"a", b"secret", b"c"])
    path = _segments(folder)[0]
    path.write_bytes(path.read_bytes().replace(b"secret", b"sekret"))
    with pytest.raises(DamagedLog, match="Record 2 "):
        await log.tail(0, 9)
    assert [entry.record for entry in await log.tail(2, 9)] == [b"c"]


async def test_no_room(log: FilesLog, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch that does not fit on the disk is removed completely, and the error names the reason."""
    await log.append(0, [b"a"])
    size = _segments(folder)[0].stat().st_size

    def write_some(descriptor: int, data: memoryview, offset: int) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", write_some)
        with pytest.raises(StoreError, match="no space left"):
            await log.append(1, [b"b" * 1000])
    assert _segments(folder)[0].stat().st_size == size
    await log.require_writable()
    assert await log.append(1, [b"c"])


async def test_unfinished_files_go(folder: Path) -> None:
    """The next writer deletes the unfinished file of an interrupted erasure, which contains erased texts."""
    path = await _fill(folder, [b"a", b"secret"])
    shutil.copy(path, folder / f"{path.name}.unfinished")
    log = await FilesLog.open(folder)
    await log.erase(2, b"")
    await log.close()
    assert not [file for file in folder.iterdir() if b"secret" in file.read_bytes()]


# --- files that are not what they were ------------------------------------------------------------------------------


@pytest.mark.parametrize("replace", [False, True])
async def test_deleted_and_replaced_folders(log: FilesLog, folder: Path, replace: bool) -> None:
    """Writes into a deleted or replaced folder raise `StoreReplaced`."""
    await log.append(0, [b"a"])
    shutil.rmtree(folder)
    if replace:
        await _fill(folder, [b"theirs"])
    with pytest.raises(StoreReplaced, match="cannot be written"):
        await log.append(1, [b"b"])
    with pytest.raises(StoreReplaced):
        await log.require_writable()
    if replace:
        assert await _read(folder) == [b"theirs"]


async def test_foreign_folder(folder: Path) -> None:
    """A folder of another program is refused and left unchanged."""
    folder.mkdir()
    (folder / "holiday.jpg").write_bytes(b"x")
    with pytest.raises(StoreError, match=r"folder of another program \(holiday\.jpg"):
        await FilesLog.open(folder)
    assert [file.name for file in folder.iterdir()] == ["holiday.jpg"]


async def test_a_file_in_the_way(folder: Path) -> None:
    """A file instead of the folder raises an error."""
    folder.write_bytes(b"x")
    with pytest.raises(StoreError, match="is not a folder"):
        await FilesLog.open(folder)


@pytest.mark.parametrize("name", ["head", "segment"])
async def test_newer_layout(folder: Path, name: str) -> None:
    """A log of a later release is refused in one sentence, and left unchanged."""
    path = await _fill(folder, [b"a"])
    file = folder / "head" if name == "head" else path
    if name == "head":
        from zlib import crc32

        from stele.storage.files.head import _LINE

        line = _LINE % (2, 1)
        file.write_bytes(line + b"%08x\n" % crc32(line))
    else:
        file.write_bytes(file.read_bytes().replace(b"stele-log 1:", b"stele-log 2:"))
    before = file.read_bytes()
    with pytest.raises(StoreError, match="has layout 2, but this program knows only layout 1: use a newer Stele"):
        await FilesLog.open(folder)
    assert file.read_bytes() == before


async def test_empty_folder_beside_a_mark(folder: Path) -> None:
    """No new log is created where a mark remains, since its ids would be assigned again."""
    log = await open_log(f"files:///{folder}")
    await log.append(0, [b"a"])
    await log.close()
    for file in folder.iterdir():
        if file.name != "mark":
            file.unlink()
    with pytest.raises(DamagedLog, match="is empty, but its high-water mark"):
        await open_log(f"files:///{folder}")
    (folder / "mark").unlink()
    await (await open_log(f"files:///{folder}")).close()


async def test_a_writer_that_hangs(log: FilesLog, folder: Path) -> None:
    """An append waits for the lock of a stopped process only for a limited time and writes nothing; reads continue."""
    await log.append(0, [b"a"])
    other = await FilesLog.open(folder)
    with other._head.hold_lock(1):
        with pytest.raises(StoreError, match="locked by another process for too long"):
            await log.append(1, [b"b"])
        assert await log.head() == 1
    assert await log.append(1, [b"b"])
    await other.close()


async def test_close_leaves_nothing_open(folder: Path) -> None:
    """Closing a handle closes all its descriptors."""
    before = set(os.listdir("/proc/self/fd"))
    for _ in range(5):
        log = await FilesLog.open(folder)
        async with log.turn():
            await log.append(await log.head(), [b"x"])
        await log.close()
    deadline = time.monotonic() + 60
    while len(os.listdir("/proc/self/fd")) > len(before) and time.monotonic() < deadline:  # noqa: ASYNC110 - no event
        await asyncio.sleep(0.01)
    assert len(os.listdir("/proc/self/fd")) <= len(before)


# --- looking after it -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("url", ["files:x", "files://host/x", "files:///", "files:///x?y=1", "files:///%00"])
async def test_malformed_url(url: str) -> None:
    """The error for a malformed URL shows the right form."""
    with pytest.raises(InvalidRequest, match="has the form files:///relative/folder"):
        await open_log(url)


async def test_copy_and_repair(folder: Path, tmp_path: Path) -> None:
    """A copy is a SQLite store; a repair keeps the records before the damage, and the damaged folder."""
    url = f"files:///{folder}"
    log = await open_log(url)
    await log.append(0, [b"%d" % i for i in range(2500)])
    StoreFolder(url).write_copy(tmp_path / "copy.db")
    copy = await open_log(f"sqlite:///{tmp_path}/copy.db")
    assert await read_all(copy) == await read_all(log)
    assert copy.may_lack_records()
    await copy.close()
    await log.close()

    stored = list(StoreFolder(url).read_stored(0))
    assert [seq for seq, _ in stored] == list(range(1, 2501))
    assert [seq for seq, _ in StoreFolder(url).read_stored(2502)][-2:] == [2501, 2502]
    path = _segments(folder)[0]
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:1200], b"rubbish\n", *lines[1201:]]))
    assert [seq for seq, record in StoreFolder(url).read_stored(0) if record is None] == [1200]

    aside = StoreFolder(url).write_anew(record for _, record in stored[:1199] if record is not None)
    assert Path(aside).is_dir()
    (folder / "mark").unlink(missing_ok=True)
    log = await open_log(url)
    assert [entry.record for entry in await read_all(log)] == [b"%d" % i for i in range(1199)]
    await log.close()


async def test_condition(folder: Path) -> None:
    """`inspect_store` returns the condition of the folder and creates nothing."""
    url = f"files:///{folder}"
    condition = maintenance.inspect_store(url)
    assert condition is not None
    assert (condition.exists, condition.is_writable, condition.layout) == (False, True, None)
    assert not folder.exists()
    with pytest.raises(InvalidRequest, match="there is no store"):
        maintenance.open_files(url)
    await _fill(folder, [b"a"])
    condition = maintenance.inspect_store(url)
    assert condition is not None
    assert (condition.exists, condition.layout, condition.newest_layout) == (True, 1, 1)
    assert condition.size_bytes > 0
    with suppress(InvalidRequest):
        maintenance.open_files(url)
