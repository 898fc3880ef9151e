"""A node over a damaged, replaced or full store: its errors, and that no id is assigned twice."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import closing
from hashlib import blake2b
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio
from tests.unit.service.test_registry import put, record

from stele.core import queries
from stele.core.events import LogRecord, encode_record
from stele.core.fold import apply_record
from stele.core.model import SubjectKey
from stele.core.snapshot import dump_state
from stele.core.state import State
from stele.errors import DamagedLog, NewerLog, RecordsTooLarge, StoreError, StoreReplaced, TooLarge
from stele.server.metrics import Metrics
from stele.service.registry import SKIPPED_SCHEMA_IDS, Registry
from stele.storage import open_log
from stele.storage.memory import MemoryLog, MemoryStore
from stele.storage.sqlite.file import APPLICATION_ID

Opener = Callable[[], Awaitable[Registry]]
OTHER = SubjectKey("", "other")


@pytest_asyncio.fixture
async def node(tmp_path: Path) -> AsyncIterator[Opener]:
    """Yield a function that opens nodes on this test's store. They are closed afterwards."""
    nodes: list[Registry] = []

    async def open_node() -> Registry:
        nodes.append(await Registry.open(await open_log(f"sqlite:///{tmp_path}/log.db")))
        return nodes[-1]

    yield open_node
    for registry in nodes:
        await registry.close()


async def _until_failing(registry: Registry, *, failing: bool = True) -> None:
    async with asyncio.timeout(120):
        while (registry.write_failure is not None) is not failing:  # noqa: ASYNC110 - it looks once in a while
            await asyncio.sleep(0.02)


# --- a store that vanished ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("change", ["deleted", "replaced", "wal deleted"])
async def test_a_store_that_vanished_takes_no_writes(node: Opener, tmp_path: Path, change: str) -> None:
    """A write into missing files is refused, known schemas can still be read, and the node reports the failure."""
    registry = await node()
    first = await put(registry, record("a"))
    file = tmp_path / "log.db"
    if change == "replaced":
        shutil.copy(file, tmp_path / "copy")
        (tmp_path / "copy").replace(file)
    else:
        (file if change == "deleted" else tmp_path / "log.db-wal").unlink()
    for _ in range(3):
        with pytest.raises(StoreReplaced, match=r"cannot be written"):
            await put(registry, record("a", "b"))
    assert isinstance(registry.write_failure, StoreReplaced)
    assert b"stele_can_write 0.0" in Metrics().render_metrics(registry)[0]
    assert queries.get_schema_entry(registry.state, "", first.schema_id)


async def test_a_vanished_store_is_noticed_without_a_write(node: Opener, tmp_path: Path) -> None:
    """The node reports missing files before any write fails."""
    registry = await node()
    assert registry.write_failure is None
    (tmp_path / "log.db").unlink()
    await _until_failing(registry)


async def test_a_full_disk_is_said_until_there_is_room(
    node: Opener, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """While the log accepts no record, the node knows why, logs it once, and notices when it accepts records again."""
    registry = await node()
    await put(registry, record("a"))
    writer = registry._log.driver._writer._connection  # type: ignore[attr-defined]  # the real driver
    pages = writer.execute("PRAGMA page_count").fetchone()[0]
    writer.execute(f"PRAGMA max_page_count = {pages}")
    for number in range(3):
        with pytest.raises(StoreError, match="no space left"):
            await put(registry, record(*(f"field_{number}_{i}" for i in range(2000))))
    await asyncio.sleep(1.2)
    assert registry.write_failure is not None
    writer.execute("PRAGMA max_page_count = 1000000")
    await _until_failing(registry, failing=False)
    await put(registry, record("b"))
    output = capsys.readouterr().out
    assert output.count("cannot write") <= 2, output  # the append's reason, and that of the trial
    assert "Traceback" not in output


@pytest.mark.parametrize("left", ["no file", "empty file"])
async def test_an_empty_file_beside_traces_is_no_new_registry(node: Opener, tmp_path: Path, left: str) -> None:
    """An empty file beside traces of a log is refused, because a new log would assign its ids again."""
    registry = await node()
    await put(registry, record("a"))
    await registry.close()
    file = tmp_path / "log.db"
    file.unlink()
    if left == "empty file":
        file.touch()
    with pytest.raises(DamagedLog, match=r"missing or empty, but .*log\.db\.mark still exists"):
        await node()
    (tmp_path / "log.db.mark").unlink()
    await node()


def _modes(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()}


async def test_files_are_their_owners_alone(node: Opener, tmp_path: Path) -> None:
    """Only the owner may read the files, because the log has keys and secrets."""
    await put(await node(), record("a"))
    names = ("log.db", "log.db-wal", "log.db-shm", "log.db.lock", "log.db.mark")
    assert _modes(tmp_path) == dict.fromkeys(names, 0o600)


# --- a log that went backwards --------------------------------------------------------------------------------------


async def test_an_older_copy_beside_a_newer_mark_does_not_start(node: Opener, tmp_path: Path) -> None:
    """A copy that lacks acknowledged records does not start; without the mark it starts, and skips their ids."""
    registry = await node()
    await put(registry, record("a"))
    await registry.close()
    shutil.copy(tmp_path / "log.db", tmp_path / "backup")
    registry = await node()
    schema_ids = {(await put(registry, record("a", f"b{number}"), OTHER)).schema_id for number in range(5)}
    await registry.close()
    shutil.copy(tmp_path / "backup", tmp_path / "log.db")
    with pytest.raises(DamagedLog, match=r"[56] records are lost"):
        await node()
    (tmp_path / "log.db.mark").unlink()
    registry = await node()
    again = await put(registry, record("a", "c"))
    assert again.schema_id > max(schema_ids) + SKIPPED_SCHEMA_IDS // 2
    assert (await put(registry, record("a", "d"))).schema_id == again.schema_id + 1
    await registry.close()
    registry = await node()
    assert (await put(registry, record("a", "e"))).schema_id == again.schema_id + 2


# --- times ----------------------------------------------------------------------------------------------------------


async def test_times_never_go_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that was set back does not affect the order of the journal; its time is stored separately."""
    store = MemoryStore()
    registry = await Registry.open(MemoryLog(store))
    await put(registry, record("a"))
    now = time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: now - 3_600 * 10**9)
    await put(registry, record("a", "b"))
    await registry.close()
    registry = await Registry.open(MemoryLog(store))
    version = await put(registry, record("a", "b", "c"))
    stamps = [row.metadata for _, row in await registry.read_log(0, 100)]
    assert [stamp.at for stamp in stamps] == sorted(stamp.at for stamp in stamps)
    assert stamps[-1].clock == (now - 3_600 * 10**9) // 1_000_000
    assert stamps[0].clock is None
    stored_version = queries.get_version(registry.state, version.key, version.version_number)
    assert stored_version.at == stamps[-1].at
    await registry.close()


# --- older layouts --------------------------------------------------------------------------------------------------


async def _make_old_store(path: Path, *, snapshot: bool = True) -> State:
    """Write a file in the layout without checksums of older releases, and return its state."""
    store = MemoryStore()
    registry = await Registry.open(MemoryLog(store))
    for number in range(30):
        await put(registry, record("amount_eur", *(f"f{i}" for i in range(number))), OTHER)
    await registry.close()
    state = State()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("CREATE TABLE log (seq INTEGER PRIMARY KEY, record BLOB NOT NULL)")
        connection.execute("CREATE TABLE snapshot (seq INTEGER PRIMARY KEY, digest BLOB NOT NULL, data BLOB NOT NULL)")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("PRAGMA user_version = 1")
        connection.execute("PRAGMA journal_mode = WAL")
        for seq, row in await _read_records(store):
            connection.execute("INSERT INTO log VALUES (?, ?)", (seq, encode_record(row)))
            apply_record(state, seq, row)
            if seq == 20 and snapshot:
                data = dump_state(state)
                digest = blake2b(data, digest_size=16, salt=seq.to_bytes(8, "big")).digest()
                connection.execute("INSERT INTO snapshot VALUES (?, ?, ?)", (seq, digest, data))
    return state


async def _read_records(store: MemoryStore) -> list[tuple[int, LogRecord]]:
    registry = await Registry.open(MemoryLog(store))
    rows = await registry.read_log(0, 1000)
    await registry.close()
    return rows


@pytest.mark.parametrize("snapshot", [True, False])
async def test_a_log_without_checksums_gets_them(node: Opener, tmp_path: Path, snapshot: bool) -> None:
    """Opening an old file converts it to the present layout, with all its content."""
    state = await _make_old_store(tmp_path / "log.db", snapshot=snapshot)
    registry = await node()
    assert dump_state(registry.state) == dump_state(state)
    stored = await registry._log.load_snapshot()
    assert (stored is not None) is snapshot
    highest = max(state.namespaces[""].schema_entries)
    assert (await put(registry, record("new"))).schema_id == highest + 1
    await registry.close()
    again = await node()
    assert again.state.seq == registry.state.seq
    with closing(sqlite3.connect(tmp_path / "log.db")) as connection:
        tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert tables == {"record", "state"}


async def test_an_old_log_with_a_changed_text_is_refused(node: Opener, tmp_path: Path) -> None:
    """An old file with a text that does not match its SHA-256 is refused and left unchanged."""
    await _make_old_store(tmp_path / "log.db")
    with closing(sqlite3.connect(tmp_path / "log.db", isolation_level=None)) as connection:
        data = connection.execute("SELECT record FROM log WHERE seq = 15").fetchone()[0]
        connection.execute("UPDATE log SET record = ? WHERE seq = 15", (data.replace(b"amount_eur", b"amount_uur"),))
    before = (tmp_path / "log.db").read_bytes()
    with pytest.raises(DamagedLog, match="Record 15 "):
        await node()
    assert (tmp_path / "log.db").read_bytes() == before


# --- a store that takes only so much at once ------------------------------------------------------------------------


class _NarrowLog(MemoryLog):
    """A log that takes 4000 bytes at once."""

    refusals = 0

    async def append(self, expected: int, records: Sequence[bytes]) -> bool:
        if sum(map(len, records)) > 4000:
            self.refusals += 1
            raise RecordsTooLarge("takes no message of that size; nothing was written. Raise max.message.bytes")
        return await super().append(expected, records)


async def test_a_batch_that_is_too_large_is_written_in_parts() -> None:
    """Changes that fit one by one are all written once; only the one that is too large is refused, with a reason."""
    log = _NarrowLog(MemoryStore())
    registry = await Registry.open(log)
    await put(registry, record("first"))
    head = await log.head()
    results = await asyncio.gather(
        *(put(registry, record(f"field_{i}"), SubjectKey("", f"s{i}")) for i in range(40)),
        put(registry, record(*(f"field_{i}" for i in range(200))), SubjectKey("", "big")),
        return_exceptions=True,
    )
    assert log.refusals > 1
    refused = [result for result in results if isinstance(result, BaseException)]
    assert [type(error) for error in refused] == [TooLarge]
    assert "Raise max.message.bytes" in str(refused[0])
    assert await log.head() == head + 40
    assert len({result.schema_id for result in results if not isinstance(result, BaseException)}) == 40
    assert registry.write_failure is None
    await put(registry, record("last"), SubjectKey("", "big"))
    await registry.close()


# --- a log with records of a newer release --------------------------------------------------------------------------


class _OvertakenLog(MemoryLog):
    """A log that loses the answer to a write, while a node of a newer release writes in its place."""

    async def append(self, expected: int, records: Sequence[bytes]) -> bool:
        newer = {"stamp": {"uid": b"\0" * 16, "at": 1}, "events": [{"event": "Archived"}]}
        assert await super().append(expected, [msgspec.msgpack.encode(newer)])
        raise StoreError("the connection broke")


async def test_a_write_that_a_newer_release_overtook() -> None:
    """If another record is in the place of the write, whatever it holds, the write failed, and the error says why."""
    log = MemoryLog(MemoryStore())
    registry = await Registry.open(log)
    await put(registry, record("first"))
    head = await log.head()
    registry._log = _OvertakenLog(log._store)
    with pytest.raises(NewerLog, match=f"Record {head + 1} of the log was written by a newer release"):
        await put(registry, record("first", "second"))
    with pytest.raises(NewerLog, match="does not know the event 'Archived'"):
        await registry.read_log(head, 1)
    with pytest.raises(NewerLog):
        await registry.fresh_state()
    assert await log.head() == head + 1
    await registry.close()
