"""Flipped bits and cut files: every answer stays the same, or the damage is reported, and no id is assigned twice.

All files of a store are damaged: database, write-ahead log, its index, lock and mark. The store was left by a killed
process or closed in order, with and without a snapshot.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.support.examples import scale_examples
from tests.unit.service.test_registry import record

from stele.core import queries
from stele.core.commands import RegisterSchema, Registration
from stele.core.model import SubjectKey
from stele.core.ports import TextForm
from stele.errors import SteleError
from stele.service.registry import Registry
from stele.storage import open_log
from stele.storage.maintenance import examine_store, open_files

SUBJECTS = [SubjectKey("", name) for name in ("orders", "payments", "clicks")]
VERSIONS = 40

WRITER = """
import asyncio, os, sys
from stele.service import registry
from stele.storage import open_log
from tests.unit.storage.test_damage import fill

async def main(url, ending):
    registry._SNAPSHOT_EVERY = 15 if "snapshot" in ending else 10**9
    node = await registry.Registry.open(await open_log(url))
    await fill(node)
    if "killed" in ending:
        await node._save_snapshot()
        os._exit(9)
    await node.close()

asyncio.run(main(*sys.argv[1:]))
"""


class Answers(NamedTuple):
    """The answers of an undamaged store: its texts by schema id, its versions, and its journal."""

    texts: dict[int, bytes]
    versions: dict[tuple[str, int], int]
    journal: list[object]

    @property
    def highest(self) -> int:
        """The highest assigned schema id."""
        return max(self.texts)


async def fill(node: Registry) -> None:
    """Register versions the way a dialect does."""
    for number in range(VERSIONS):
        await _register(node, SUBJECTS[number % len(SUBJECTS)], record("amount_eur", f"field_{number}"))


async def _register(node: Registry, key: SubjectKey, text: bytes) -> int:
    state = await node.fresh_state()
    prepared = await node.parser.prepare_schema(state, "avro", text, (), form=TextForm.PRINTED)
    outcome = await node.execute(RegisterSchema(key, prepared.document, prepared.references))
    assert isinstance(outcome, Registration)
    return outcome.schema_id


async def _read_answers(node: Registry) -> Answers:
    state = await node.fresh_state()
    entries = state.namespaces[""].schema_entries
    versions = {
        (subject.key.name, version.version_number): version.schema.schema_id
        for subject in state.namespaces[""].subjects.values()
        for version in subject.versions
    }
    journal: list[object] = list(await node.read_log(0, 1000))
    return Answers(
        {number: state.get_text(queries.get_schema_entry(state, "", number).content) for number in entries},
        versions,
        journal,
    )


async def _meet_damage(folder: Path, whole: Answers) -> str:
    """Open the store and use it; return 'harmless' or the reported error. Raises AssertionError for a wrong answer."""
    url = f"sqlite:///{folder}/log.db"
    try:
        node = await Registry.open(await open_log(url))
    except SteleError as error:
        return f"refused: {error}"
    try:
        state = await node.fresh_state()
        for number, entry in state.namespaces[""].schema_entries.items():
            assert state.get_text(entry.content) == whole.texts[number], "another text is served"
        try:
            assert await _read_answers(node) == whole, "an answer is missing or another one"
            outcome = "harmless"
        except SteleError as error:
            outcome = f"reported: {error}"
            assert not examine_store(open_files(url)).is_whole
        try:
            assert await _register(node, SUBJECTS[0], record("amount_eur", "new")) > whole.highest, "an id comes again"
        except SteleError as error:
            outcome = f"refused: {error}"
    finally:
        try:
            await node.close()
        except SteleError as error:
            outcome = f"reported: {error}"
    return outcome


def _flip(path: Path, chance: random.Random) -> None:
    data = bytearray(path.read_bytes())
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    path.write_bytes(data)


def _cut(path: Path, chance: random.Random) -> None:
    os.truncate(path, chance.randrange(path.stat().st_size))


@pytest.fixture(scope="module", params=["killed", "killed, snapshot", "closed", "closed, snapshot"])
def original(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of a store that a process left, killed or closed, with or without a snapshot."""
    folder = tmp_path_factory.mktemp("store")
    ending = request.param
    done = subprocess.run(
        [sys.executable, "-c", WRITER, f"sqlite:///{folder}/log.db", ending], check=False, cwd=Path.cwd()
    )
    assert done.returncode == (9 if "killed" in ending else 0)
    return folder


async def _answers_of(original: Path, folder: Path) -> Answers:
    shutil.copytree(original, folder)
    node = await Registry.open(await open_log(f"sqlite:///{folder}/log.db"))
    answers = await _read_answers(node)
    await node.close()
    assert len(answers.texts) == VERSIONS
    return answers


def _list_files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.stat().st_size)


@pytest.mark.parametrize("damage", [_flip, _cut])
async def test_damage_is_harmless_or_said(
    original: Path, tmp_path: Path, damage: Callable[[Path, random.Random], None]
) -> None:
    """No flipped bit and no cut in any file changes a text or assigns an id again."""
    whole = await _answers_of(original, tmp_path / "whole")
    files = _list_files(original)
    chance = random.Random(11)
    met = []
    for number in range(scale_examples(75)):
        folder = tmp_path / f"{number}"
        shutil.copytree(original, folder)
        # Every other time the database, which is the largest file and the most important one.
        name = "log.db" if number % 2 else chance.choice(files)
        damage(folder / name, chance)
        try:
            outcome = await _meet_damage(folder, whole)
        except AssertionError as lie:
            raise AssertionError(f"{damage.__name__} of {name}, number {number}: {lie}") from lie
        met.append(f"{name}: {outcome}")
        shutil.rmtree(folder)
    assert len(met) == scale_examples(75)
