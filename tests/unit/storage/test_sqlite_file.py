"""Which SQLite files are accepted, and the errors for others, which are left unchanged."""

import asyncio
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.fork_server import start_process_with_pipes

from stele.errors import StoreError
from stele.storage import open_log
from stele.storage.record_chain import Checksum
from stele.storage.sqlite import SqliteLog
from stele.storage.sqlite.file import APPLICATION_ID, SCHEMA_VERSION


async def _fill(path: Path, count: int = 3) -> None:
    log = await SqliteLog.open(path)
    assert await log.append(0, [b"record %d " % i * 200 for i in range(count)])
    await log.close()


def _run(path: Path, *statements: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        return [row for statement in statements for row in connection.execute(statement).fetchall()]


async def test_stamp_and_settings(tmp_path: Path) -> None:
    """The file has the application id, keeps a write-ahead log, syncs every commit and scrubs freed pages."""
    path = tmp_path / "log.db"
    log = await SqliteLog.open(path)
    assert _run(path, "PRAGMA application_id", "PRAGMA user_version", "PRAGMA journal_mode") == [
        (APPLICATION_ID,),
        (SCHEMA_VERSION,),
        ("wal",),
    ]
    names = ("synchronous", "secure_delete", "fullfsync")
    writer = log._writer._connection
    assert [writer.execute(f"PRAGMA {name}").fetchone() for name in names] == [(2,), (1,), (1,)]
    await log.close()


@pytest.mark.parametrize(
    ("statements", "why"),
    [
        (["CREATE TABLE theirs (x)"], "another program"),
        (["PRAGMA application_id = 7"], "another program"),
        (["PRAGMA user_version = 1"], "another program"),
        ([f"PRAGMA application_id = {APPLICATION_ID}", f"PRAGMA user_version = {SCHEMA_VERSION + 1}"], "newer Stele"),
        ([f"PRAGMA application_id = {APPLICATION_ID}"], "layout 0"),
    ],
)
async def test_foreign_database(tmp_path: Path, statements: list[str], why: str) -> None:
    """A database of another program or of a newer Stele is refused and left unchanged."""
    path = tmp_path / "log.db"
    _run(path, *statements)
    before = path.read_bytes()
    with pytest.raises(StoreError, match=why):
        await SqliteLog.open(path)
    assert path.read_bytes() == before


async def test_no_database(tmp_path: Path) -> None:
    """A file that is no database is refused and left unchanged."""
    path = tmp_path / "log.db"
    path.write_bytes(b"my holiday pictures " * 1000)
    with pytest.raises(StoreError, match="not a SQLite database"):
        await SqliteLog.open(path)
    assert path.read_bytes() == b"my holiday pictures " * 1000


async def test_empty_file_becomes_a_log(tmp_path: Path) -> None:
    """An empty file, as mktemp creates it, becomes a new log."""
    path = tmp_path / "log.db"
    path.touch()
    await _fill(path)


async def test_damaged_database(tmp_path: Path) -> None:
    """Reading or writing a file with overwritten pages raises a StoreError with a remedy, never a wrong record."""
    path = tmp_path / "log.db"
    await _fill(path, 400)
    content = bytearray(path.read_bytes())
    content[8192:] = b"\xa5" * (len(content) - 8192)  # all leaves; the root is the second page
    path.write_bytes(content)
    log = await SqliteLog.open(path)
    with pytest.raises(StoreError, match="damaged"):
        await log.tail(0, 1000)
    with pytest.raises(StoreError, match="damaged"):
        await log.append(400, [b"x"])
    await log.close()


@pytest.mark.parametrize(("layout", "checksum"), [(2, Checksum.SHA256), (3, Checksum.XXH3)])
async def test_a_file_keeps_its_kind_of_checksum(tmp_path: Path, layout: int, checksum: Checksum) -> None:
    """A new file gets the faster checksum; a file of the previous release keeps the one that this release can read."""
    path, url = tmp_path / "log.db", f"sqlite:///{tmp_path}/log.db"
    records = [b"record %d " % number * 20 for number in range(6)]
    await (await open_log(url)).close()
    _run(path, f"PRAGMA user_version = {layout}")
    for first in (0, 3):
        log = await open_log(url)
        assert await log.append(first, records[first : first + 3])
        await log.close()
    log = await open_log(url)
    assert [entry.record for entry in await log.tail(0, 10)] == records
    await log.close()
    assert _run(path, "PRAGMA user_version") == [(layout,)]
    assert _run(path, "SELECT DISTINCT substr(stored, 1, 2) FROM record") == [(checksum.value,)]


@pytest.mark.parametrize(("count", "size"), [(64, 10), (256, 10), (700, 10), (300, 20_000)])
async def test_long_tails(tmp_path: Path, count: int, size: int) -> None:
    """A tail is the same when the event loop reads it, its thread, or both."""
    log = await SqliteLog.open(tmp_path / "log.db")
    records = [b"%09d" % number + bytes(size) for number in range(count)]
    assert await log.append(0, records)
    for after, limit in ((0, 1000), (0, 64), (1, 256), (0, 257), (100, 128), (count, 5)):
        assert [entry.record for entry in await log.tail(after, limit)] == records[after : after + limit]
    await log.close()


async def test_lost_records(tmp_path: Path) -> None:
    """A gap in the sequence numbers is reported."""
    path = tmp_path / "log.db"
    await _fill(path, 200)
    log = await SqliteLog.open(path)
    _run(path, "DELETE FROM record WHERE seq IN (1, 150)")
    for after, limit in ((0, 5), (0, 200), (140, 20)):
        with pytest.raises(StoreError, match="has lost records"):
            await log.tail(after, limit)
    assert len(await log.tail(1, 148)) == 148
    await log.close()


async def test_folder_in_the_way(tmp_path: Path) -> None:
    """A folder in place of the file, or a file in place of the folder, raises an error with the reason."""
    with pytest.raises(StoreError, match="cannot be opened: it is a folder"):
        await SqliteLog.open(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"cannot be made or opened: .*/file"):
        await SqliteLog.open(tmp_path / "file" / "log.db")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(StoreError, match="loop"):
        await SqliteLog.open(tmp_path / "loop" / "log.db")


async def test_symbolic_link_shares_the_lock(tmp_path: Path) -> None:
    """Processes that open the log by a symbolic link share the same turn."""
    path = tmp_path / "log.db"
    await _fill(path)
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "alias.db"
    link.symlink_to(path)
    one, two = await SqliteLog.open(path), await SqliteLog.open(link)
    async with one.turn():
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(two.turn().__aenter__(), 0.1)
    assert not list(link.parent.glob("*.lock"))
    await one.close()
    await two.close()


async def test_locked_database(tmp_path: Path) -> None:
    """Another program's long write lock makes writes fail after the timeout, and does not affect reads."""
    path = tmp_path / "log.db"
    await _fill(path)
    log = await SqliteLog.open(path, busy_timeout=0.1)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        for write in (log.append(3, [b"x"]), log.save_snapshot(1, b"x"), log.erase(1, b"x")):
            with pytest.raises(StoreError, match="locked by another program"):
                await write
        assert await log.append(2, [b"x"]) is False
        assert len(await log.tail(0, 9)) == 3
        other.execute("ROLLBACK")
    assert await log.append(3, [b"x"])
    await log.close()


async def test_full_disk(tmp_path: Path) -> None:
    """When the disk is full nothing of the batch is written, and the log works again once there is space."""
    path = tmp_path / "log.db"
    await _fill(path)
    log = await SqliteLog.open(path)
    writer = log._writer._connection
    pages = writer.execute("PRAGMA page_count").fetchone()[0]
    writer.execute(f"PRAGMA max_page_count = {pages + 2}")
    with pytest.raises(StoreError, match="no space left on its disk; nothing was written"):
        await log.append(3, [b"small", os.urandom(100_000)])
    with pytest.raises(StoreError, match="no space left"):
        await log.save_snapshot(3, os.urandom(100_000))
    assert await log.head() == 3
    writer.execute("PRAGMA max_page_count = 1000000")
    assert await log.append(3, [b"small", b"again"])
    await log.close()


_FILE_LIMIT = """
import asyncio, resource, signal, sys
from stele.errors import StoreError
from stele.storage import open_log
from stele.storage.record_chain import Checksum
from stele.storage.sqlite import SqliteLog

async def main(path):
    log = await SqliteLog.open(path)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))
    head = 0
    try:
        while True:
            assert await log.append(head, [b"x" * 50_000] * 3)
            head += 3
    except StoreError as error:
        assert await log.head() == head > 0, (head, await log.head())
        print(head, error)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert await log.append(head, [b"after"])
    await log.close()

asyncio.run(main(sys.argv[1]))
"""


async def test_failing_write(tmp_path: Path) -> None:
    """When the kernel refuses to write (here: a file size limit), nothing of the batch is written."""
    path = tmp_path / "log.db"
    output = subprocess.run(  # noqa: ASYNC221 - nothing else runs on this loop
        [sys.executable, "-c", _FILE_LIMIT, str(path)], check=True, capture_output=True, text=True
    ).stdout
    head = int(output.split()[0])
    assert "disk" in output
    log = await SqliteLog.open(path)
    assert [len(entry.record) for entry in await log.tail(0, head + 9)] == [50_000] * head + [5]
    await log.close()


@pytest.fixture
def plain_user() -> Iterator[Path]:
    """A folder of a user other than root, whose privileges the test has."""
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    root = os.geteuid() == 0
    if root:
        os.chown(folder, 65534, 65534)
        os.seteuid(65534)
    yield folder
    if root:
        os.seteuid(0)
    folder.chmod(0o700)
    shutil.rmtree(folder)


async def test_read_only_file(plain_user: Path) -> None:
    """A write-protected log can be read; a write raises an error with the reason."""
    path = plain_user / "log.db"
    await _fill(path)
    path.chmod(0o400)
    log = await SqliteLog.open(path)
    assert len(await log.tail(0, 9)) == 3
    with pytest.raises(StoreError, match="read-only"):
        await log.append(3, [b"x"])
    await log.close()


async def test_forbidden_folder(plain_user: Path) -> None:
    """The error for a folder that cannot be written or read names the folder and the reason."""
    os.chmod(plain_user, 0o500)
    with pytest.raises(StoreError, match=f"{plain_user}.*Permission denied"):
        await SqliteLog.open(plain_user / "new" / "log.db")
    with pytest.raises(StoreError, match="cannot be opened"):
        await SqliteLog.open(plain_user / "log.db")
    os.chmod(plain_user, 0o000)
    with pytest.raises(StoreError, match=str(plain_user)):
        await SqliteLog.open(plain_user / "new" / "log.db")


_OPEN = """
import asyncio, sys
from stele.storage.sqlite import SqliteLog

async def main(path):
    print("ready", flush=True)
    sys.stdin.readline()
    log = await SqliteLog.open(path)
    while not await log.append(await log.head(), [b"x"]):
        pass
    await log.close()

asyncio.run(main(sys.argv[1]))
"""


async def test_made_by_many_at_once(tmp_path: Path) -> None:
    """Processes that open a missing log at the same moment create one log and share it."""
    for round_ in range(3):
        path = tmp_path / f"{round_}" / "log.db"
        crew = [start_process_with_pipes(["-c", _OPEN, str(path)], Path.cwd()) for _ in range(8)]
        for process in crew:
            assert process.stdout is not None
            process.stdout.readline()
        for process in crew:
            assert process.stdin is not None
            process.stdin.write(b"go\n")
            process.stdin.flush()
        for process in crew:
            process.communicate(timeout=120)
        assert [process.returncode for process in crew] == [0] * 8
        log = await SqliteLog.open(path)
        assert await log.head() == 8
        await log.close()
