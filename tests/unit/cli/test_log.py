"""`stele log` and `stele backup`: their output for whole and damaged stores, and the files that they leave."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.unit.service.test_registry import put, record
from typer.testing import CliRunner, Result

from stele.cli.app import app
from stele.core.events import EventMetadata, IdsSkipped, LogRecord, encode_record
from stele.core.model import SubjectKey
from stele.errors import DamagedLog
from stele.service.registry import SKIPPED_SCHEMA_IDS, Registry
from stele.storage import open_log

KEY = SubjectKey("", "orders")


def run(*words: str) -> Result:
    """Run the command with these words."""
    return CliRunner().invoke(app, list(words))


def show_log(*words: str) -> Any:
    """Return the JSON output of a command, and its exit code."""
    done = run(*words, "-o", "json")
    return json.loads(done.stdout), done.exit_code


@pytest.fixture
def store(tmp_path: Path) -> str:
    """Return the URL of a store with ten versions."""
    url = f"sqlite:///{tmp_path}/log.db"
    asyncio.run(register(url, *(record("amount_eur", f"f{number}") for number in range(10))))
    return url


async def register(url: str, *texts: bytes) -> list[int]:
    """Register texts and return their schema ids."""
    registry = await Registry.open(await open_log(url))
    try:
        return [(await put(registry, text, KEY)).schema_id for text in texts]
    finally:
        await registry.close()


def change(tmp_path: Path, statement: str, *values: object) -> None:
    """Change the database with an SQL statement, to simulate damage."""
    with closing(sqlite3.connect(tmp_path / "log.db", isolation_level=None)) as connection:
        connection.execute(statement, values)


def flip_text(tmp_path: Path, seq: int) -> None:
    """Change one letter of a text."""
    with closing(sqlite3.connect(tmp_path / "log.db", isolation_level=None)) as connection:
        stored = connection.execute("SELECT stored FROM record WHERE seq = ?", (seq,)).fetchone()[0]
        assert b"amount_eur" in stored
        connection.execute(
            "UPDATE record SET stored = ? WHERE seq = ?", (stored.replace(b"amount_eur", b"amount_uur"), seq)
        )


def test_a_whole_store(store: str) -> None:
    """An undamaged store has no findings, and a repair does nothing."""
    report, code = show_log("log", "verify", "--store", store)
    assert code == 0
    assert report["records"] >= 10
    assert report == {
        **dict.fromkeys(("records", "acknowledged", "intact"), report["records"]),
        "damages": [],
        "lost": [],
    }
    assert "nothing to repair" in run("log", "repair", "--store", store).stdout


def test_a_changed_text_is_told_and_repaired(store: str, tmp_path: Path) -> None:
    """The damaged record and all after it are reported; a repair keeps the others and skips the lost ids."""
    flip_text(tmp_path, 7)
    with pytest.raises(DamagedLog, match="Record 7 "):
        asyncio.run(register(store, record("x")))
    report, code = show_log("log", "verify", "--store", store)
    assert (code, report["intact"]) == (1, 6)
    assert report["damages"] == [{"seq": 7, "problem": "has a wrong checksum"}]
    assert [row["seq"] for row in report["lost"]] == list(range(7, report["records"] + 1))
    last = {"seq": report["records"], "namespace": "", "subject": "orders", "version": 10, "schema_id": 10}
    assert report["lost"][-1] == last
    assert run("export", str(tmp_path / "a.gz"), "--store", store).exit_code == 2
    assert not (tmp_path / "a.gz").exists()
    done, code = show_log("log", "repair", "--store", store)
    assert (code, done["kept"]) == (0, 6)
    assert Path(done["movedTo"]).exists()
    assert run("log", "verify", "--store", store).exit_code == 0
    first, second = asyncio.run(register(store, record("x"), record("y")))
    assert first > 10 + SKIPPED_SCHEMA_IDS // 2
    assert second == first + 1
    assert run("export", str(tmp_path / "a.gz"), "--store", store).exit_code == 0


def test_a_store_of_the_release_before_is_examined_and_repaired(store: str, tmp_path: Path) -> None:
    """A damaged store in the format of the previous release can be verified and repaired."""
    flip_text(tmp_path, 7)
    change(tmp_path, "PRAGMA user_version = 2")
    report, code = show_log("log", "verify", "--store", store)
    assert (code, report["damages"]) == (1, [{"seq": 7, "problem": "has a wrong checksum"}])
    done, code = show_log("log", "repair", "--store", store)
    assert (code, done["kept"]) == (0, 6)
    assert asyncio.run(register(store, record("x")))
    assert run("log", "verify", "--store", store).exit_code == 0


def test_lost_records_are_told_and_skipped(store: str, tmp_path: Path) -> None:
    """After a repair of a truncated log, lost ids and those up to --last-id are not assigned again."""
    change(tmp_path, "DELETE FROM record WHERE seq > 8")
    with pytest.raises(DamagedLog, match=r"[23] records are lost"):
        asyncio.run(register(store, record("x")))
    result = run("log", "verify", "--store", store)
    assert result.exit_code == 1
    assert "records precede the first damage" in result.stdout
    done, _ = show_log("log", "repair", "--store", store, "--last-id", "50000")
    assert done["kept"] == 8
    assert asyncio.run(register(store, record("x"))) > [50_000]


def test_a_record_in_its_neighbours_place(store: str, tmp_path: Path) -> None:
    """A record that was copied to another position has a wrong checksum there."""
    change(tmp_path, "UPDATE record SET stored = (SELECT stored FROM record WHERE seq = 5) WHERE seq = 4")
    report, code = show_log("log", "verify", "--store", store)
    assert (code, report["damages"][0]["seq"], report["intact"]) == (1, 4, 3)


async def test_a_backup_of_a_store_in_use(tmp_path: Path) -> None:
    """A backup includes the write-ahead log, is readable by its owner only, and counts as a restored registry."""
    url = f"sqlite:///{tmp_path}/log.db"
    registry = await Registry.open(await open_log(url))
    last = [await put(registry, record("a", f"b{number}"), KEY) for number in range(5)][-1]
    backup = tmp_path / "backup.db"
    done = await asyncio.to_thread(run, "backup", str(backup), "--store", url)
    assert done.exit_code == 0, done.output
    await registry.close()
    assert backup.stat().st_mode & 0o777 == 0o600
    assert not backup.with_name("backup.db-wal").exists()
    assert run("backup", str(backup), "--store", url).exit_code == 2
    restored = await Registry.open(await open_log(f"sqlite:///{backup}"))
    assert restored.state.seq == registry.state.seq
    assert (await put(restored, record("new"), KEY)).schema_id > last.schema_id + SKIPPED_SCHEMA_IDS // 2
    await restored.close()


def test_a_backup_where_no_folder_is(store: str, tmp_path: Path) -> None:
    """The error names the file that cannot be written, not the store."""
    done = run("backup", str(tmp_path / "none" / "backup.db"), "--store", store)
    assert done.exit_code == 2
    assert "".join(done.stderr.split()).endswith("none/backup.dbcannotbewritten:Nosuchfileordirectory")
    assert "log.db" not in done.stderr


def test_an_imported_registry_is_a_restored_one(store: str, tmp_path: Path) -> None:
    """An archive may be older than its registry: importing it is exact, and the first write skips ids."""
    archive = str(tmp_path / "a.zst")
    assert run("export", archive, "--store", store).exit_code == 0
    (schema_id,) = asyncio.run(register(store, record("later")))
    other = f"sqlite:///{tmp_path}/other.db"
    for _ in range(2):
        assert run("import", archive, "--store", other).exit_code == 0
    assert run("import", archive, "--store", other, "--verify").exit_code == 0
    assert asyncio.run(register(other, record("new"))) > [schema_id + SKIPPED_SCHEMA_IDS // 2]


def test_no_store_is_made(tmp_path: Path) -> None:
    """A misspelled store is an error, and no empty store is created."""
    for words in (["log", "verify"], ["log", "repair"], ["backup", f"{tmp_path}/b"], ["export", f"{tmp_path}/a.gz"]):
        done = run(*words, "--store", f"sqlite:///{tmp_path}/no.db")
        assert done.exit_code == 2
        assert "there is no store" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_pages_that_cannot_be_read(store: str, tmp_path: Path) -> None:
    """Records that SQLite cannot read are reported one by one, and a repair keeps the records before them."""
    file = tmp_path / "log.db"
    data = bytearray(file.read_bytes())
    page = data.rindex(b"amount_eur") // 4096
    first = data.index(b"amount_eur") // 4096
    assert page > first
    data[page * 4096 : (page + 1) * 4096] = b"\xa5" * 4096
    file.write_bytes(data)
    report, code = show_log("log", "verify", "--store", store)
    assert code == 1
    assert {row["problem"] for row in report["damages"]} == {"is missing or cannot be read"}
    done, code = show_log("log", "repair", "--store", store)
    assert (code, done["kept"]) == (0, report["intact"])
    assert run("log", "verify", "--store", store).exit_code == 0
    assert asyncio.run(register(store, record("x"))) > [10 + SKIPPED_SCHEMA_IDS // 2]


def test_a_log_moves_between_stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy reports how many records are the same; a missing source is not created."""
    monkeypatch.chdir(tmp_path)
    asyncio.run(_write_records("files:///from"))
    assert show_log("log", "copy", "files:///from", "sqlite:///to.db") == ({"records": 3, "copied": 3, "erased": 0}, 0)
    done = run("log", "compact", "--store", "sqlite:///to.db")
    assert done.exit_code == 0
    assert "after record 3; 0 purged texts erased" in done.stdout
    assert run("log", "copy", "files:///none", "sqlite:///other.db").exit_code != 0
    assert not (tmp_path / "none").exists()
    assert not (tmp_path / "other.db").exists()


async def _write_records(url: str) -> None:
    log = await open_log(url)
    for seq in range(3):
        record = LogRecord(EventMetadata(b"%016d" % seq, seq), (IdsSkipped(1, 1),))
        await log.append(seq, [encode_record(record)])
    await log.close()
