"""Copied logs, logs as of a moment, and compacted logs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from stele.core import commands as cmd
from stele.core import queries
from stele.core.events import EventMetadata, IdsSkipped, LogRecord, encode_record
from stele.core.model import SubjectKey
from stele.core.ports import Log
from stele.errors import InvalidRequest, NotFound, ReadOnly
from stele.service.registry import Registry
from stele.storage import open_log
from stele.storage.log_copy import compact_log, copy_log
from stele.storage.past_log import open_past
from stele.testing.log_crew import read_all

KEY = SubjectKey("", "secrets")


@pytest.fixture
def urls(tmp_path: Path) -> tuple[str, str]:
    """URLs of a store and of an empty one of another kind."""
    return f"sqlite:///{tmp_path}/log.db", f"files:///{tmp_path}/log"


@pytest_asyncio.fixture
async def source(urls: tuple[str, str]) -> AsyncIterator[Log]:
    """A log to copy."""
    log = await open_log(urls[0])
    yield log
    await log.close()


@pytest_asyncio.fixture
async def target(urls: tuple[str, str]) -> AsyncIterator[Log]:
    """The log to copy to."""
    log = await open_log(urls[1])
    yield log
    await log.close()


async def _register(registry: Registry, name: str, key: SubjectKey = KEY) -> None:
    text = b'{"type": "enum", "name": "Word", "symbols": ["%s"]}' % name.encode()
    prepared = await registry.parser.prepare_schema(await registry.fresh_state(), "avro", text, ())
    await registry.execute(cmd.RegisterSchema(key, prepared.document, prepared.references))


def _subjects(registry: Registry) -> list[SubjectKey]:
    return [subject.key for subject in queries._all_subjects(registry.state)]


async def _purge(registry: Registry, key: SubjectKey = KEY) -> None:
    for mode in (cmd.DeleteMode.SOFT, cmd.DeleteMode.HARD):
        await registry.execute(cmd.DeleteSubject(key, mode))


async def test_every_record_stays(source: Log, target: Log) -> None:
    """A copy has the same records; a second copy writes nothing, a later one only new records."""
    await source.append(0, [b"%d" % i for i in range(2500)])
    assert await copy_log(source, target) == (2500, 2500, 0)
    assert await read_all(target) == await read_all(source)
    assert await copy_log(source, target) == (2500, 0, 0)
    await source.append(2500, [b"new"])
    assert await copy_log(source, target) == (2501, 1, 0)


async def test_a_copy_has_the_snapshot(source: Log, target: Log) -> None:
    """A copy includes the snapshot; a later copy includes the later snapshot."""
    await source.append(0, [b"one", b"two"])
    await source.save_snapshot(1, b"state")
    await copy_log(source, target)
    assert await _read_snapshot(target) == (1, b"state")
    await source.save_snapshot(2, b"later")
    await copy_log(source, target)
    assert await _read_snapshot(target) == (2, b"later")


async def _read_snapshot(log: Log) -> tuple[int, bytes]:
    snapshot = await log.load_snapshot()
    assert snapshot is not None
    return snapshot[0], bytes(snapshot[1])


async def test_a_copy_follows(source: Log, target: Log) -> None:
    """A copy that follows its source contains what was written until it ends."""
    await source.append(0, [b"before"])
    until = asyncio.Event()
    copying = asyncio.create_task(copy_log(source, target, until=until))
    for i in range(50):
        await source.append(1 + i, [b"%d" % i])
        await asyncio.sleep(0.002)
    until.set()
    assert (await copying).records == 51
    assert await read_all(target) == await read_all(source)


@pytest.mark.parametrize("records", [[b"other"], [b"a", b"b", b"c"]])
async def test_a_target_with_a_history(source: Log, target: Log, records: list[bytes]) -> None:
    """A target that is not the beginning of the source is refused and left unchanged."""
    await source.append(0, [b"a", b"b"])
    await target.append(0, records)
    with pytest.raises(InvalidRequest, match="is not a copy of the source"):
        await copy_log(source, target)
    assert [entry.record for entry in await read_all(target)] == records


async def test_texts_purged_meanwhile_leave_the_copy(urls: tuple[str, str], tmp_path: Path) -> None:
    """A text that the source erased after it was copied is erased in the copy; ids stay."""
    registry = await Registry.open(await open_log(urls[0]))
    await _register(registry, "Sesame")
    await _register(registry, "Other", SubjectKey("", "kept"))
    source, target = await open_log(urls[0]), await open_log(urls[1])
    await copy_log(source, target)
    assert _holds(tmp_path / "log", b"Sesame")
    await _purge(registry)
    await registry._queue.join()  # the text is erased after the response
    done = await copy_log(source, target)
    assert done.erased == 1
    assert not _holds(tmp_path / "log", b"Sesame")
    await target.close()
    copied = await Registry.open(await open_log(urls[1]))
    assert copied.state.seq == registry.state.seq
    assert _subjects(copied) == _subjects(registry) == [SubjectKey("", "kept")]
    for log in (source, copied, registry):
        await log.close()


def _holds(folder: Path, word: bytes) -> bool:
    return any(word in file.read_bytes() for file in folder.iterdir())


async def test_purged_texts_leave_files(urls: tuple[str, str], tmp_path: Path) -> None:
    """No file of the folder contains a purged text, not even a snapshot."""
    registry = await Registry.open(await open_log(urls[1]))
    await _register(registry, "Sesame")
    await registry._save_snapshot(always=True)
    assert _holds(tmp_path / "log", b"Sesame")
    await _purge(registry)
    await registry.close()
    assert not _holds(tmp_path / "log", b"Sesame")


async def test_compacting_erases_what_a_dead_node_left(urls: tuple[str, str], tmp_path: Path) -> None:
    """Compacting writes a snapshot and erases purged texts that a failed node left."""
    registry = await Registry.open(await open_log(urls[1]))
    await _register(registry, "Sesame")
    registry._erase_purged_texts = _do_nothing  # type: ignore[method-assign]  # as if the node died
    await _purge(registry)
    seq = registry.state.seq
    await registry.close()
    assert _holds(tmp_path / "log", b"Sesame")
    log = await open_log(urls[1])
    done = await compact_log(log)
    assert (done.records, done.erased) == (seq, 1)
    assert not _holds(tmp_path / "log", b"Sesame")
    assert (await compact_log(log)).erased == 0
    snapshot = await log.load_snapshot()
    assert snapshot is not None
    assert snapshot[0] == seq
    await log.close()


async def _do_nothing() -> None:
    pass


async def test_a_log_as_of_a_moment(urls: tuple[str, str]) -> None:
    """A log as of a record or a time ends there, and rejects writes."""
    log = await open_log(urls[0])
    for seq, at in enumerate((1_000, 2_000, 2_000, 5_000)):
        await log.append(seq, [encode_record(LogRecord(EventMetadata(b"%016d" % seq, at), (IdsSkipped(1, 1),)))])
    await log.close()
    for moment, last in {
        "2": 2,
        "0": 0,
        "4": 4,
        "1970-01-01T00:00:02Z": 3,
        "1970-01-01T00:00:01.999+00:00": 1,
        "1970-01-01T01:00:01+01:00": 1,
        "1970-01-01": 0,
        "2999-01-01T00:00:00": 4,
    }.items():
        past = await open_past(await open_log(urls[0]), moment)
        assert await past.head() == last, moment
        assert [entry.seq for entry in await past.tail(0, 99)] == list(range(1, last + 1))
        assert await past.tail(last, 5) == await past.tail(last + 3, 5) == []
        with pytest.raises(ReadOnly, match="takes no writes"):
            await past.append(last, [b"x"])
        await past.close()


@pytest.mark.parametrize("moment", ["5", "yesterday", "-1"])
async def test_moments_that_there_are_not(source: Log, urls: tuple[str, str], moment: str) -> None:
    """An invalid moment raises an error that names the valid forms."""
    await source.append(0, [b"x"])
    with pytest.raises(InvalidRequest, match=r"is not a moment|does not exist"):
        await open_past(await open_log(urls[0]), moment)


async def test_a_registry_as_of_a_moment(urls: tuple[str, str]) -> None:
    """A registry as of a moment returns the state of that moment.

    It ignores later snapshots, and rejects writes with `ReadOnly`.
    """
    registry = await Registry.open(await open_log(urls[0]))
    await _register(registry, "First")
    seq = registry.state.seq
    await _register(registry, "Second", SubjectKey("", "later"))
    await registry._save_snapshot(always=True)
    await registry.close()
    past = await Registry.open(await open_past(await open_log(urls[0]), str(seq)))
    assert _subjects(past) == [KEY]
    with pytest.raises(ReadOnly):
        await _register(past, "Third", SubjectKey("", "third"))
    with pytest.raises(NotFound):
        await past.execute(cmd.DeleteSubject(SubjectKey("", "later")))
    assert past.write_failure is None
    await past.close()
