"""Nodes of one SQLite log are killed at random moments: acknowledged writes are kept, no number is assigned twice."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import time
from pathlib import Path

from tests.support.examples import PROFILE
from tests.support.fork_server import Process, start_process

from stele.core import queries
from stele.core.commands import ChangeSettings
from stele.core.model import SettingsLevel, SubjectKey
from stele.core.policy import ALLOW_ANY
from stele.service.registry import Registry
from stele.storage import open_log

SECONDS = float(os.environ.get("STELE_KILL_SECONDS", "4" if PROFILE == "everyday" else "8"))
NODES = 8


async def _prepare(store: str) -> None:
    registry = await Registry.open(await open_log(store))
    await registry.execute(ChangeSettings(SettingsLevel(""), {"policy": ALLOW_ANY}))
    await registry.close()


def _start(store: str, folder: Path, name: int) -> Process:
    arguments = ["-m", "tests.system.kill_worker", store, str(folder / f"{name}.acks"), str(name)]
    return start_process(arguments, Path(__file__).parents[2])


def _wait_for_acks(folder: Path) -> None:
    """Wait until every node has written something. A node starts slowly on a busy machine."""
    until = time.monotonic() + 120
    while time.monotonic() < until:
        if sum(path.stat().st_size > 0 for path in folder.glob("*.acks")) == NODES:
            return
        time.sleep(0.1)
    raise TimeoutError("the nodes did not start to write")


def _acks(folder: Path) -> list[tuple[str, int, int, str]]:
    """Return the complete lines of every node. A kill may cut the last one."""
    lines = [line for path in folder.glob("*.acks") for line in path.read_text(encoding="utf-8").splitlines()]
    return [tuple(json.loads(line)) for line in lines if line.endswith("]")]


async def _verify(store: str, acks: list[tuple[str, int, int, str]]) -> int:
    registry = await Registry.open(await open_log(store))
    state = registry.state
    space = state.namespaces[""]
    assert sorted(space.schema_entries) == list(range(1, len(space.schema_entries) + 1)), (
        "a gap or a repeat among the ids"
    )
    for subject in space.subjects.values():
        assert [row.version_number for row in subject.versions] == list(range(1, len(subject.versions) + 1))
    for name, ordinal, gid, text in acks:
        version = queries.get_version(state, SubjectKey("", name), ordinal)
        assert (version.schema.schema_id, state.get_text(version.content).decode()) == (gid, text), (
            "an acknowledged write is lost"
        )
    await registry.close()
    return len(space.schema_entries)


def test_killed_nodes_lose_nothing_and_repeat_nothing(tmp_path: Path) -> None:
    """Eight nodes write while random ones are killed and restarted; nothing is lost or assigned twice."""
    store, chance = f"sqlite:///{tmp_path}/log.db", random.Random(11)
    asyncio.run(_prepare(store))
    nodes = [_start(store, tmp_path, name) for name in range(NODES)]
    kills = 0
    try:
        _wait_for_acks(tmp_path)
        until = time.monotonic() + SECONDS
        while time.monotonic() < until or kills <= 3 or len(_acks(tmp_path)) <= 20:
            time.sleep(chance.uniform(0.2, 0.8))
            victim = chance.randrange(NODES)
            nodes[victim].send_signal(signal.SIGKILL)
            nodes[victim].wait()
            kills += 1
            nodes[victim] = _start(store, tmp_path, victim)
    finally:  # nodes run until they are killed
        for node in nodes:
            node.kill()
            node.wait()
    acks = _acks(tmp_path)
    assert kills > 3
    assert len(acks) > 20
    assert len({gid for _, _, gid, _ in acks}) == len(acks), "an id was acknowledged twice"
    total = asyncio.run(_verify(store, acks))
    assert total >= len(acks)
    print(f"{kills} kills, {len(acks)} acknowledged, {total} stored")  # noqa: T201 - the figure a person wants to see
