"""The audit trail: its content, the detection of changes to it, and its continuation after restarts and crashes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from tests.unit.service.test_registry import KEY, put, record
from tests.unit.service.test_secrets import PASSWORD, write

from stele.core.audit_chain import AuditEntry, BrokenLine, ChainEnd, read_entry, read_line, verify_lines
from stele.core.commands import ChangeSettings, DeleteMode, DeleteSubject
from stele.core.model import SettingsLevel
from stele.service.access import CALLER, Caller, Principal
from stele.service.audit import AuditReader, AuditWriter
from stele.service.audit_file import AuditFile, find_files
from stele.service.registry import Registry
from stele.storage.memory import MemoryLog, MemoryStore

SECRET_KEY = b"k" * 32
ANN = Caller(Principal("ann", method="basic"), "10.0.0.7", "confluent", "curl/8", "r-1")


@contextmanager
def acting_as(caller: Caller) -> Iterator[None]:
    """Run the block as that caller."""
    token = CALLER.set(caller)
    try:
        yield
    finally:
        CALLER.reset(token)


def read_entries(path: Path) -> list[AuditEntry]:
    """Return all entries of a trail."""
    return [read_entry(read_line(line)) for file in find_files(path) for line in file.read_bytes().splitlines()]


def entry(number: int) -> AuditEntry:
    """Return some entry."""
    return AuditEntry(number, "refused", details={"n": number})


async def test_entries_say_who_when_from_where_and_what() -> None:
    """The entry of a change has caller, address, client, request and dialect, and digests before and after."""
    registry = await Registry.open(MemoryLog())
    with acting_as(ANN):
        outcome = await put(registry, record("a"))
        for ruleset in ("avro-spec", "avro-java"):
            level = SettingsLevel(*KEY)
            await registry.execute(ChangeSettings(level, {"ruleset": ruleset}), via="confluent")
        await registry.execute(DeleteSubject(KEY, DeleteMode.SOFT))
    page = await AuditReader(registry).read_page(0, 100)
    assert page.next == page.end == registry.state.seq
    by_kind = {row.kind: row for row in page.entries}
    registered = by_kind["registered"]
    assert (registered.address, registered.agent, registered.request_id) == ("10.0.0.7", "curl/8", "r-1")
    assert (registered.version, registered.schema_id, registered.before) == (1, outcome.schema_id, None)
    assert registered.after == registered.details["sha256"]
    first, second = (row for row in page.entries if row.kind == "settings_changed")
    assert (first.actor, first.via) == ("ann", "confluent")
    assert first.before is None
    assert first.after is not None
    assert second.before == first.after != second.after
    assert by_kind["soft_deleted"].before == registered.after
    later = await AuditReader(registry).read_page(page.end - 2, 100)
    assert later.entries == [row for row in page.entries if (row.seq or 0) > page.end - 2]
    await registry.close()


async def test_no_entry_holds_a_secret(tmp_path: Path) -> None:
    """The trail has neither a document nor a digest of its secret members: another secret leaves the same digest."""
    registry = await Registry.open(MemoryLog())
    writer = AuditWriter(registry, AuditFile(tmp_path / "audit.jsonl"))
    await writer.start()
    await write(registry)
    await write(registry, b'{"name":"copy","config":{"basic.auth.user.info":"other"}}')
    await writer.close()
    changes = [row for row in read_entries(tmp_path / "audit.jsonl") if row.kind == "item_changed"]
    assert len(changes) == 2
    assert changes[0].after == changes[1].before == changes[1].after
    assert PASSWORD not in (tmp_path / "audit.jsonl").read_bytes()
    await registry.close()


async def test_notes_and_changes_are_written_once(tmp_path: Path) -> None:
    """Two processes write one file: every change is in it once, notes of both are, and the chain is intact."""
    path, store = tmp_path / "audit.jsonl", MemoryStore()
    nodes = [await Registry.open(MemoryLog(store)) for _ in range(2)]
    writers = [AuditWriter(node, AuditFile(path, SECRET_KEY)) for node in nodes]
    for writer in writers:
        await writer.start()
    for number in range(6):
        node = nodes[number % 2]
        await put(node, record("a", f"f{number}"))
        node.audit.note("refused", caller=ANN, status=403, number=number)
        for writer in writers:
            await writer.write_pending()
    for node, writer in zip(nodes, writers, strict=True):
        await node.fresh_state()
        await writer.close()
        await node.close()
    entries = read_entries(path)
    changes = [(row.seq, row.part) for row in entries if row.seq is not None]
    assert changes == sorted(set(changes))
    assert {row.version for row in entries if row.kind == "registered"} == set(range(1, 7))
    assert sorted(row.details["number"] for row in entries if row.kind == "refused") == list(range(6))
    assert isinstance(verify_lines(path.read_bytes().splitlines(), SECRET_KEY), ChainEnd)


async def test_the_trail_goes_on_after_a_restart(tmp_path: Path) -> None:
    """Changes made while no writer ran are appended at the next start."""
    path, store = tmp_path / "audit.jsonl", MemoryStore()
    for number in range(2):
        registry = await Registry.open(MemoryLog(store))
        await put(registry, record("a", f"before{number}"))
        writer = AuditWriter(registry, AuditFile(path))
        await writer.start()
        await put(registry, record("a", f"after{number}"))
        await writer.close()
        await registry.close()
    entries = read_entries(path)
    assert entries[0].kind == "trail_started"
    assert [row.version for row in entries if row.kind == "registered"] == [2, 3, 4], "1 came before the trail"
    assert isinstance(verify_lines(path.read_bytes().splitlines(), b""), ChainEnd)


def test_a_half_written_line_is_taken_off_and_told(tmp_path: Path) -> None:
    """A line cut off at any byte is removed and reported. The chain stays intact, and no complete line is lost."""
    whole = tmp_path / "whole"
    file = AuditFile(whole)
    file.append([entry(1), entry(2)], 5, 0)
    data = whole.read_bytes()
    first = data.index(b"\n") + 1
    for cut in (first + 1, first + 50, len(data) - 1):
        path = tmp_path / f"cut{cut}"
        path.write_bytes(data[:cut])
        again = AuditFile(path)
        assert again.read_end().position == 0, "the second entry is written again"
        again.append([entry(2)], 5, 0)
        kinds = [row.kind for row in read_entries(path)]
        assert kinds == ["refused", "half_line_removed", "refused"]
        end = verify_lines(path.read_bytes().splitlines(), b"")
        assert isinstance(end, ChainEnd)
        assert end.position == 5
        again.close()
    file.close()


def test_every_change_of_a_file_shows(tmp_path: Path) -> None:
    """A changed, removed, inserted or moved line is reported, even if the line is well-formed; so is another key."""
    path = tmp_path / "audit.jsonl"
    file = AuditFile(path, SECRET_KEY)
    file.append([entry(number) for number in range(6)], 0, 0)
    lines = path.read_bytes().splitlines()
    assert isinstance(verify_lines(lines, SECRET_KEY), ChainEnd)
    forged = msgspec.json.encode(
        msgspec.structs.replace(read_line(lines[2]), entry=msgspec.Raw(b'{"at":1,"kind":"x"}'))
    )
    for changed, where in (
        ([*lines[:2], forged, *lines[3:]], 3),
        ([*lines[:2], *lines[3:]], 3),
        ([*lines[:2], lines[3], lines[2], *lines[4:]], 3),
        ([*lines[:2], lines[1], *lines[2:]], 3),
        ([*lines[:2], b"", *lines[2:]], 3),
        ([forged.replace(b'"number":3', b'"number":1'), *lines[1:]], 1),
        ([*lines[:5], lines[5][:-20]], 6),
    ):
        result = verify_lines(changed, SECRET_KEY)
        assert isinstance(result, BrokenLine)
        assert result.line == where
    assert isinstance(verify_lines(lines, b""), BrokenLine)
    file.close()


def test_full_files_are_kept_and_chained(tmp_path: Path) -> None:
    """A full file is renamed, the next one continues the chain, and the oldest are deleted if there are too many."""
    path = tmp_path / "audit.jsonl"
    file = AuditFile(path, max_bytes=2000, most_files=3)
    for number in range(60):
        file.append([entry(number)], number + 1, number)
    files = find_files(path)
    assert len(files) == 4
    assert files[-1] == path
    end = None
    for part in files:
        result = verify_lines(part.read_bytes().splitlines(), b"", end)
        assert isinstance(result, ChainEnd), result
        end = result
    assert end is not None
    assert (end.number, end.position) == (60, 60)
    file.close()
    os.rename(path, tmp_path / "moved")
    assert AuditFile(path).read_end().number > 0, "a file that was moved away does not begin the chain anew"
