"""A state that is loaded before workers are forked belongs to one log at one position."""

from __future__ import annotations

from pathlib import Path

import pytest

from stele.core.commands import RegisterSchema
from stele.core.model import SubjectKey
from stele.core.ports import TextForm
from stele.core.snapshot import dump_state
from stele.errors import DamagedLog
from stele.service.early_state import load_early_state
from stele.service.registry import Registry
from stele.storage import open_log
from stele.storage.high_water_mark import LogPosition


async def _fill(url: str, numbers: range) -> None:
    registry = await Registry.open(await open_log(url))
    for number in numbers:
        text = b'{"type": "enum", "name": "Name%d", "symbols": ["A"]}' % number
        state = await registry.fresh_state()
        prepared = await registry.parser.prepare_schema(state, "avro", text, (), form=TextForm.PRINTED)
        await registry.execute(RegisterSchema(SubjectKey("", f"subject-{number}"), prepared.document))
    await registry.close()


@pytest.mark.parametrize("has_snapshot", [False, True])
async def test_it_goes_on_where_the_parent_stopped(tmp_path: Path, has_snapshot: bool) -> None:
    """A worker that starts with the early state has later records, too, like a node that reads the whole log."""
    url = f"sqlite:///{tmp_path}/log.db"
    await _fill(url, range(3))
    if has_snapshot:
        registry = await Registry.open(await open_log(url))
        await registry._save_snapshot(always=True)
        await registry.close()
    log = await open_log(url)
    early = await load_early_state(log)
    await log.close()
    assert (early.snapshot_seq > 0) is has_snapshot
    await _fill(url, range(3, 5))
    log = await open_log(url)
    await log.require_position(early.position)
    worker = await Registry.open(log, early=early)
    node = await Registry.open(await open_log(url))
    try:
        assert len(worker.state.namespaces[""].subjects) == 5
        assert dump_state(worker.state) == dump_state(node.state)
    finally:
        await worker.close()
        await node.close()


async def test_another_history_is_refused(tmp_path: Path) -> None:
    """A worker refuses an early state if the log has another record at its position."""
    for name in ("one", "other"):
        await _fill(f"sqlite:///{tmp_path}/{name}.db", range(2))
    log = await open_log(f"sqlite:///{tmp_path}/one.db")
    early = await load_early_state(log)
    await log.require_position(early.position)
    await log.close()
    other = await open_log(f"sqlite:///{tmp_path}/other.db")
    with pytest.raises(DamagedLog, match="before this worker started"):
        await other.require_position(early.position)
    with pytest.raises(DamagedLog, match="records are lost"):
        await other.require_position(LogPosition(early.position.seq + 1, early.position.link))
    await other.close()
