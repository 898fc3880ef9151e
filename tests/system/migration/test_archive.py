"""An archive holds the whole registry: a restored registry answers every GET of every dialect as before."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conformance.apis.transcripts import Rule, read_rules
from tests.support.asgi_requests import send_request
from tests.system.migration.boxes import Box, box
from tests.system.migration.documented import crawl_documents
from tests.system.migration.histories import EVERYTHING, play

from stele.migrate import archive
from stele.server.asgi import App
from stele.service.registry import SKIPPED_SCHEMA_IDS
from stele.storage import open_log

TRANSCRIPTS = Path(__file__).parents[2] / "conformance" / "apis"
DIALECTS = sorted({path.parent.name for path in TRANSCRIPTS.glob("*/*.txt")})
NAMES = ["a", "b", "g", "s", "orders", "s-value", "k", "k1", "e", ".team", "ns", "default"]
RESTORE = Path(__file__).with_name("kill_restore.py")


def fill(there: Box, dialect: str) -> None:
    """Send all requests of a dialect's transcripts, one rule after the other, to one registry. Refusals are allowed."""
    server = there.transport.server
    for rule in read_rules(*sorted((TRANSCRIPTS / dialect).glob("*.txt"))):
        server.run(_send_changes(server, rule))


async def _send_changes(app: App, rule: Rule) -> None:
    """Send the write requests of a rule in the event loop of the server, which is faster than an HTTP client."""
    plain = {"host": "store", "content-type": "application/json"}
    await send_request(app, "PUT", "/mode?force=true", plain, b'{"mode":"READWRITE"}', host="store")
    for row in rule.exchanges:
        if row.method != "GET":
            headers = plain | {name.lower(): value for name, value in row.headers.items()}
            await send_request(app, row.method, row.target, headers, row.body or b"", host="store")


def extra(there: Box) -> None:
    """Send requests that no transcript holds or that use several dialects: validators, adopted rulesets, everything."""
    http, plain = there.http, {"content-type": "text/plain"}
    form = {"content-type": "application/x-www-form-urlencoded"}
    record = '{"type":"record","name":"U","fields":[]}'
    answers = [
        http.put("/schema-repo/logs", content=b"avro.validators=MUTUAL_READ&note=x", headers=form),
        http.put("/schema-repo/logs/register", content=b'"string"', headers=plain),
        http.put("/api/rulesets/avro/confluent", json={"version": None}),
        http.post("/schema-registry/v1/subject/users/schema/users", json={"schemaIdl": record, "schemaType": "AVRO"}),
        http.put("/schemagroups/g1", json={"id": "g1", "format": "avro", "groupProperties": {"a": "b"}}),
        http.post("/schemagroups/g1/schemas/s1", content=record.encode()),
    ]
    assert [answer.status_code for answer in answers if answer.status_code >= 300] == []
    play(http, EVERYTHING)


def archive_store(store: str, path: Path) -> archive.ArchiveContents:
    """Write the archive of a store, which other processes may have open."""

    async def write() -> archive.ArchiveContents:
        log = await open_log(store)
        try:
            return await archive.write_archive(log, path)
        finally:
            await log.close()

    return asyncio.run(write())


def restore(path: Path, store: str) -> archive.Restoration:
    """Restore an archive into a store and return what is still missing."""

    async def run() -> archive.Restoration:
        log = await open_log(store)
        try:
            with archive.open_archive(path) as archive_file:
                await archive_file.restore(log)
                return await archive_file.compare(log)
        finally:
            await log.close()

    return asyncio.run(run())


@pytest.mark.parametrize("dialect", [*DIALECTS, "extra"])
def test_every_dialect_answers_as_before(tmp_path: Path, dialect: str) -> None:
    """After a restore, all GETs of all dialects and the log equal the original, whatever the dialect that wrote it."""
    here, there = f"sqlite:///{tmp_path}/a.db", f"sqlite:///{tmp_path}/b.db"
    with box(here) as source:
        extra(source) if dialect == "extra" else fill(source, dialect)
        contents = archive_store(here, tmp_path / "a.zst")
        done = restore(tmp_path / "a.zst", there)
        assert (done.records, done.missing, done.ahead) == (contents.records, 0, 0)
        assert contents.records > 5
        with box(there) as target:
            before, after = (crawl_documents(one.transport.server, NAMES) for one in (source, target))
            assert {key: (before.get(key), after.get(key)) for key in before if before[key] != after.get(key)} == {}
            successful_paths = [key for key, (status, _) in before.items() if status == 200]
            assert len(successful_paths) > 40, successful_paths
    assert archive_store(there, tmp_path / "b.zst") == contents
    assert (tmp_path / "b.zst").read_bytes() == (tmp_path / "a.zst").read_bytes()


@pytest.mark.parametrize("records", [1, 40])
def test_a_killed_restore_is_finished_by_the_next(tmp_path: Path, records: int) -> None:
    """A restore that is killed after a batch leaves a prefix of the log, and a second restore completes it."""
    here, there = f"sqlite:///{tmp_path}/a.db", f"sqlite:///{tmp_path}/b.db"
    with box(here) as source:
        fill(source, "pravega")
    contents = archive_store(here, tmp_path / "a.gz")
    words = [sys.executable, str(RESTORE), str(tmp_path / "a.gz"), there, str(records)]
    killed = subprocess.run(words, capture_output=True, timeout=300, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    half = archive_store(there, tmp_path / "half.gz")
    assert records <= half.records < contents.records
    assert restore(tmp_path / "a.gz", there).missing == 0
    assert archive_store(there, tmp_path / "b.gz") == contents
    assert (tmp_path / "b.gz").read_bytes() == (tmp_path / "a.gz").read_bytes()


def test_a_restored_registry_goes_on(tmp_path: Path) -> None:
    """New ids skip those that the original may have assigned. A running registry reads the restored records."""
    here, there = f"sqlite:///{tmp_path}/a.db", f"sqlite:///{tmp_path}/b.db"
    with box(here) as source, box(there) as target:
        play(source.http, EVERYTHING[:8])
        archive_store(here, tmp_path / "a.gz")
        assert restore(tmp_path / "a.gz", there).missing == 0
        assert target.http.get("/subjects").json() == source.http.get("/subjects").json() != []
        body = {"schema": '{"type":"record","name":"New","fields":[]}'}
        registrations = [one.http.post("/subjects/new/versions", json=body).json() for one in (source, target)]
        assert registrations[1]["id"] == registrations[0]["id"] + SKIPPED_SCHEMA_IDS > 1
        archive_store(here, tmp_path / "c.gz")
        with pytest.raises(archive.OwnHistory):
            restore(tmp_path / "c.gz", there)
