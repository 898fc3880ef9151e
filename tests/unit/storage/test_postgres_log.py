"""Faults of the PostgreSQL store: of its server, its connections, its privileges, and after a restore."""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.support.certificates import write_certificates
from tests.support.doc_pages import list_sql
from tests.support.dropping_relay import dropping_relay
from tests.support.postgres import KINDS, PostgresServer, postgres
from tests.support.sealing import check_sealing
from tests.unit.service.test_registry import put, record
from typer.testing import CliRunner

from stele.cli.app import app
from stele.core.commands import DeleteMode, DeleteSubject
from stele.core.model import SubjectKey
from stele.errors import DamagedLog, InvalidRequest, StoreError, StoreReplaced
from stele.server.store_maintenance import back_up_store, inspect_store, repair_store, verify_store
from stele.service.registry import SKIPPED_SCHEMA_IDS, Registry
from stele.storage import open_log
from stele.storage.postgres.log import PostgresLog
from stele.testing.log_crew import read_all

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "databases.md"
KEY = SubjectKey("", "orders-value")
Opener = Callable[[], Awaitable[PostgresLog]]


@pytest.fixture(scope="module", params=KINDS)
def server(request: pytest.FixtureRequest) -> Iterator[PostgresServer]:
    """A server of each kind."""
    with postgres(request.param) as running:
        yield running


@pytest.fixture
def database(server: PostgresServer) -> str:
    """The name of a new database."""
    return server.create_database()


@pytest.fixture
def url(server: PostgresServer, database: str) -> str:
    """The URL of the database."""
    return server.url(database)


@pytest.fixture
async def opener(url: str) -> AsyncIterator[Opener]:
    """Open handles on the database, which are closed after the test."""
    handles: list[PostgresLog] = []

    async def open_one() -> PostgresLog:
        handles.append(await PostgresLog.open(url))
        return handles[-1]

    yield open_one
    for handle in handles:
        await handle.close()


def remove_marks(folder: Path) -> None:
    """Delete the marks of a node."""
    for mark in folder.glob("*.mark"):
        mark.unlink()


def end_connections(server: PostgresServer, database: str) -> None:
    """End all connections to a database, as an administrator or a proxy does."""
    server.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{database}'")


# --- tables -----------------------------------------------------------------------------------------------------------


async def test_nodes_that_start_at_once(url: str, server: PostgresServer, database: str) -> None:
    """Eight nodes on an empty database create one set of tables, and share one log."""
    logs = await asyncio.gather(*(PostgresLog.open(url) for _ in range(8)))
    assert sum(await asyncio.gather(*(log.append(0, [b"x"]) for log in logs))) == 1
    assert [await log.head() for log in logs] == [1] * 8
    for log in logs:
        await log.close()
    assert server.execute("SELECT layout FROM stele_store", database=database) == [(1,)]


async def test_tables_of_a_newer_release(opener: Opener, server: PostgresServer, database: str, url: str) -> None:
    """Tables of a newer release are refused."""
    await opener()
    server.execute("UPDATE stele_store SET layout = 2", database=database)
    for use in (opener, lambda: asyncio.to_thread(inspect_store, url)):
        with pytest.raises(StoreError, match="has layout 2, but this program knows only layout 1: use a newer Stele"):
            await use()


async def test_tables_that_were_replaced(opener: Opener, server: PostgresServer, database: str) -> None:
    """A node stops when its tables were replaced by others of the same name."""
    log = await opener()
    assert await log.append(0, [b"a"])
    await log.require_writable()
    server.execute("DROP TABLE stele_log, stele_snapshot, stele_store", database=database)
    await opener()
    with pytest.raises(StoreReplaced, match="has other tables than those that were opened"):
        await log.require_writable()


# --- rights and access ------------------------------------------------------------------------------------------------


async def test_missing_rights(server: PostgresServer, database: str) -> None:
    """The error for a user who may not create tables names the missing privilege."""
    user = f"u{database}"
    server.execute(
        f"CREATE ROLE {user} LOGIN PASSWORD 'sesame'", "REVOKE CREATE ON SCHEMA public FROM PUBLIC", database=database
    )
    with pytest.raises(StoreError, match="does not give this user a right that it needs: permission denied for sch"):
        await PostgresLog.open(server.url(database, user, "sesame"))


async def test_the_rights_of_the_manual(server: PostgresServer) -> None:
    """The privileges in the manual suffice for all operations."""
    database = "postgres"
    for statement in list_sql(PAGE)[0]:
        if statement.startswith("\\connect "):
            database = statement.split()[1]
        else:
            server.execute(statement, database=database)
    url = server.url("stele", "stele", "change-me")
    log = await open_log(url)
    assert await log.append(0, [b"secret", b"b"])
    await log.save_snapshot(1, b"x")
    await log.erase(1, b"")
    await log.require_writable()
    await log.close()
    assert server.execute("SELECT erasures, scrubbed FROM stele.stele_store", database="stele") == [(1, 1)]
    condition = inspect_store(url)
    assert condition is not None
    assert (condition.exists, condition.is_writable, condition.layout) == (True, True, 1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"password": "sesame"}, 'FATAL: password authentication failed for user "admin"'),
        ({"database": "nothere"}, 'FATAL: database "nothere" does not exist'),
        ({"database": "postgres?sslmode=require"}, "server does not support SSL, but SSL was required"),
    ],
)
async def test_who_is_let_in(server: PostgresServer, change: dict[str, str], message: str) -> None:
    """A rejected login raises one sentence with the reason, without the password."""
    with pytest.raises(StoreError) as caught:
        await open_log(server.url(**change))
    assert str(caught.value).endswith(message)
    assert "\n" not in str(caught.value)
    assert "sesame" not in str(caught.value)
    assert server.password not in str(caught.value)


async def test_credentials_of_the_environment(
    server: PostgresServer, url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """User and password can come from the environment instead of the URL."""
    parts = urlsplit(url)
    (tmp_path / "password").write_text(server.password + "\n")
    monkeypatch.setenv("STELE_STORE_USER", "admin")
    monkeypatch.setenv("STELE_STORE_PASSWORD_FILE", str(tmp_path / "password"))
    log = await PostgresLog.open(f"postgresql://127.0.0.1:{parts.port}{parts.path}")
    assert await log.head() == 0
    await log.close()


async def test_doubts_about_the_server(server: PostgresServer, opener: Opener, url: str) -> None:
    """A server that does not sync to disk causes a warning; synchronous_commit is turned on where it is off."""
    server.execute("ALTER ROLE admin SET synchronous_commit = off")
    try:
        log = await opener()
        assert await log.append(0, [b"a"])
        cursor = await log._writer.run(lambda connection: connection.execute("SHOW synchronous_commit"))
        assert await cursor.fetchone() == ("on",)
    finally:
        server.execute("ALTER ROLE admin RESET synchronous_commit")
    condition = inspect_store(url)
    assert condition is not None
    assert condition.doubts == ("fsync is off: a machine that fails may lose acknowledged records",)


@pytest.mark.servers
async def test_tls() -> None:
    """The certificate and the name of the server are verified as the URL asks."""
    with postgres("system") as server:
        write_certificates(server.folder)
        server.stop()
        server.start(ssl="on", ssl_cert_file=f"{server.folder}/server.pem", ssl_key_file=f"{server.folder}/server.key")
        url = server.url()
        authority = f"sslrootcert={server.folder}/ca.pem"
        log = await PostgresLog.open(f"{url.replace('127.0.0.1', 'localhost')}?sslmode=verify-full&{authority}")
        await log.close()
        with pytest.raises(StoreError, match="does not match host name"):
            await PostgresLog.open(f"{url}?sslmode=verify-full&{authority}")
        with pytest.raises(StoreError, match=r"certificate verify failed|root certificate file"):
            await PostgresLog.open(f"{url}?sslmode=verify-ca&sslrootcert={server.folder}/server.pem")


# --- faults -----------------------------------------------------------------------------------------------------------


async def test_connections_that_end(opener: Opener, server: PostgresServer, database: str) -> None:
    """After its connections end, reads continue at once, and appends and turns after at most one error.

    Notifications arrive again, too.
    """
    log, other = await opener(), await opener()
    assert await log.append(0, [b"a"])
    async with log.turn():
        end_connections(server, database)
        assert await log.head() == 1
        assert await other.tail(0, 9) == [(1, b"a")]
    with pytest.raises(StoreError, match="terminating connection due to administrator command"):
        await log.append(1, [b"b"])
    async with log.turn(), asyncio.timeout(60):
        assert await log.append(1, [b"b"])
    waiting = asyncio.create_task(other.wait(2, 120))
    await asyncio.sleep(0.3)
    assert await log.append(2, [b"c"])
    await asyncio.wait_for(waiting, 30)


async def test_an_answer_that_is_lost(server: PostgresServer, url: str) -> None:
    """A registration whose commit is not confirmed is found in the log, is counted once and succeeds."""
    async with dropping_relay(server.port) as relay:
        through = url.replace(f":{server.port}/", f":{relay.port}/")
        registry = await Registry.open(await open_log(through))
        await put(registry, record("a"))
        relay.trigger = b"COMMIT"
        second = await put(registry, record("a", "b"))
        assert relay.dropped == 1
        assert second.version_number == 2
        third = await put(registry, record("a", "b", "c"))
        assert (third.version_number, third.schema_id) == (3, second.schema_id + 1)
        await registry.close()


async def test_a_server_that_restarts() -> None:
    """While the server is down, writes are refused and reads by id succeed; afterwards nothing is lost."""
    with postgres("packaged") as server:
        registry = await Registry.open(await open_log(server.url()))
        first = await put(registry, record("a"))
        await asyncio.to_thread(server.stop, signal.SIGQUIT)
        with pytest.raises(StoreError, match="cannot be reached"):
            await put(registry, record("a", "b"))
        async with asyncio.timeout(60):
            while registry.write_failure is None:  # noqa: ASYNC110 - the follower looks once in a while
                await asyncio.sleep(0.05)
        await asyncio.to_thread(server.start)
        deadline = time.monotonic() + 60
        while True:
            try:
                second = await put(registry, record("a", "b"))
                break
            except StoreError:
                assert time.monotonic() < deadline
                await asyncio.sleep(0.1)
        assert second.schema_id == first.schema_id + 1
        await registry.close()


async def test_a_database_that_is_read_only(opener: Opener, server: PostgresServer, database: str) -> None:
    """`require_writable` reports a standby or a read-only database without a write."""
    log = await opener()
    server.execute(f"ALTER DATABASE {database} SET default_transaction_read_only = on")
    end_connections(server, database)
    with pytest.raises(StoreError, match="is read-only: it is a standby, or was set to read-only"):
        await log.require_writable()
    with pytest.raises(StoreError, match="is read-only: cannot execute"):
        await log.append(0, [b"a"])
    server.execute(f"ALTER DATABASE {database} RESET default_transaction_read_only")
    end_connections(server, database)
    await log.require_writable()
    assert await log.append(0, [b"a"])


async def test_a_turn_is_given_up_for(opener: Opener, url: str) -> None:
    """A writer that waits too long for a turn continues without one."""
    holder = await opener()
    log = await PostgresLog.open(url, patience=0.2)
    async with holder.turn(), asyncio.timeout(60), log.turn():
        assert await log.append(0, [b"a"])
    await log.close()


# --- erasure ----------------------------------------------------------------------------------------------------------


async def test_erased_bytes_are_gone(server: PostgresServer, database: str, url: str) -> None:
    """After a purge no file of the log table and of the snapshot table contains the text."""
    secret = b"sesame_open_up"
    registry = await Registry.open(await open_log(url))
    for name in (f"f{number}" for number in range(30)):
        await put(registry, record(name), SubjectKey("", name))
    await put(registry, record(secret.decode()), KEY)
    await registry._save_snapshot(always=True)
    server.execute("CHECKPOINT")
    assert find_bytes(server, secret)
    for mode in (DeleteMode.SOFT, DeleteMode.HARD):
        await registry.execute(DeleteSubject(KEY, mode))
    await registry.close()
    server.execute("CHECKPOINT")
    assert find_bytes(server, secret) == []
    assert server.execute("SELECT erasures > 0, scrubbed = erasures FROM stele_store", database=database) == [
        (True, True)
    ]


def find_bytes(server: PostgresServer, wanted: bytes) -> list[Path]:
    """Return the files of tables that contain the bytes."""
    return [path for path in (server.data / "base").rglob("*") if path.is_file() and wanted in read_bytes(path)]


def read_bytes(path: Path) -> bytes:
    """Return the content of a file of a running server; empty if the server has deleted it."""
    with suppress(FileNotFoundError):
        return path.read_bytes()
    return b""


async def test_sealed_secrets_are_gone(
    server: PostgresServer, database: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sealing removes plain secrets from the rows and from the files of the server's tables."""

    def find_secret(wanted: bytes) -> list[object]:
        server.execute("CHECKPOINT")
        question = f"SELECT seq FROM stele_log WHERE position('{wanted.decode()}' IN stored) > 0"
        rows = server.execute(question, database=database)
        return [*rows, *find_bytes(server, wanted)]

    await check_sealing(url, find_secret, monkeypatch)


async def test_who_may_not_scrub(
    opener: Opener, server: PostgresServer, database: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A user who does not own the tables can erase rows, and a warning says that their bytes are still in the files."""
    await opener()
    user = f"u{database}"
    server.execute(
        f"CREATE ROLE {user} LOGIN PASSWORD 'sesame'",
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON stele_log, stele_snapshot, stele_store TO {user}",
        database=database,
    )
    with caplog.at_level(logging.WARNING):
        log = await PostgresLog.open(server.url(database, user, "sesame"))
        assert await log.append(0, [b"secret"])
        await log.erase(1, b"")
        await log.close()
    assert "this user does not own the table stele_log" in caplog.text
    assert server.execute("SELECT erasures, scrubbed FROM stele_store", database=database) == [(1, 0)]


# --- backups and histories that go back -------------------------------------------------------------------------------


async def test_a_restored_database(server: PostgresServer, database: str, url: str, tmp_path: Path) -> None:
    """A node that has seen more records refuses to start; after a repair, no id is assigned again."""
    state_dir = tmp_path / "state"
    registry = await Registry.open(await open_log(url, state_dir))
    first = await put(registry, record("a"))
    await registry.close()
    backup = f"{database}_backup"
    server.execute(f"CREATE DATABASE {backup} TEMPLATE {database}")
    registry = await Registry.open(await open_log(url, state_dir))
    lost = await put(registry, record("a", "b"))
    await registry.close()
    server.execute(
        f"ALTER DATABASE {database} RENAME TO {database}_lost", f"ALTER DATABASE {backup} RENAME TO {database}"
    )
    with pytest.raises(
        DamagedLog, match=r"ends with record .*mark says that record .* was acknowledged: 1 records are"
    ):
        await open_log(url, state_dir)
    examination = verify_store(url, state_dir)
    assert (examination.is_whole, examination.acknowledged - examination.intact) == (False, 1)
    done = repair_store(url, state_dir, 0)
    assert "in the table stele_log_damaged_" in done.moved_to
    assert verify_store(url, state_dir).is_whole
    registry = await Registry.open(await open_log(url, state_dir))
    again = await put(registry, record("a", "c"))
    assert again.schema_id > lost.schema_id + SKIPPED_SCHEMA_IDS > first.schema_id
    await registry.close()


async def test_a_restored_dump(server: PostgresServer, database: str, url: str, tmp_path: Path) -> None:
    """After the restore steps of the manual no id is assigned twice.

    The node that wrote the lost versions is not needed for that.
    """
    registry = await Registry.open(await open_log(url, tmp_path))
    await put(registry, record("a"))
    dump = server.folder / f"{database}.dump"
    server.run_tool("pg_dump", database, "--format=custom", f"--file={dump}")
    lost = await put(registry, record("a", "b"))
    await registry.close()
    server.execute("DROP TABLE stele_log, stele_snapshot, stele_store", database=database)
    server.run_tool("pg_restore", database, dump)
    with pytest.raises(DamagedLog, match="1 records are lost"):
        await open_log(url, tmp_path)
    server.execute(*list_sql(PAGE)[2], database=database)
    remove_marks(tmp_path)
    registry = await Registry.open(await open_log(url, tmp_path))
    again = await put(registry, record("a", "c"))
    assert again.schema_id > lost.schema_id + SKIPPED_SCHEMA_IDS - 2
    await registry.close()


async def test_a_log_that_went_back_under_a_node(opener: Opener, server: PostgresServer, database: str) -> None:
    """A running node whose log lost records rejects writes."""
    bare = await opener()
    url = server.url(database)
    registry = await Registry.open(await open_log(url))
    await put(registry, record("a"))
    server.execute("DELETE FROM stele_log WHERE seq = (SELECT max(seq) FROM stele_log)", database=database)
    with pytest.raises(DamagedLog, match="has lost records that were acknowledged"):
        await put(registry, record("a", "b"))
    await registry.close()
    assert len(await read_all(bare)) == await bare.head()


def test_the_doctor_looks_at_it(server: PostgresServer, url: str) -> None:
    """`inspect_store` returns the condition of the store, with doubts about the server, and creates nothing."""
    for state in ("is not there yet", "can be read and written"):
        done = CliRunner().invoke(app, ["doctor", "--store", url])
        assert state in done.output
        assert "fsync is off: a machine that fails may lose" in done.output
        assert server.password not in done.output
        asyncio.run(_make_log(url))


async def _make_log(url: str) -> None:
    await (await open_log(url)).close()


async def test_a_copy_in_a_file(url: str, tmp_path: Path) -> None:
    """`stele backup` writes a SQLite file, which is a store that may lack records."""
    with pytest.raises(InvalidRequest, match="there is no store postgresql://127"):
        back_up_store(url, tmp_path / "copy.db")
    registry = await Registry.open(await open_log(url))
    await put(registry, record("a"))
    examination = back_up_store(url, tmp_path / "copy.db")
    assert (examination.is_whole, examination.records) == (True, registry.state.seq)
    await registry.close()
    copy = await open_log(f"sqlite:///{tmp_path}/copy.db")
    assert copy.may_lack_records()
    await copy.close()


async def test_a_restored_log_is_remembered(opener: Opener) -> None:
    """Every node knows that the log was restored, until the first append."""
    log = await opener()
    assert await log.append(0, [b"a"])
    await log.expect_lost_records()
    other = await opener()
    assert other.may_lack_records()
    assert await other.append(1, [b"b"])
    assert not other.may_lack_records()
    assert not (await opener()).may_lack_records()


async def test_damaged_records_are_named(url: str, server: PostgresServer, database: str) -> None:
    """A changed byte and a missing row are detected, by a node and by the command."""
    registry = await Registry.open(await open_log(url))
    for name in "abc":
        await put(registry, record(name), SubjectKey("", name))
    last = registry.state.seq
    await registry.close()
    server.execute(
        f"UPDATE stele_log SET stored = set_byte(stored, 40, 255) WHERE seq = {last - 2}",
        f"DELETE FROM stele_log WHERE seq = {last - 1}",
        database=database,
    )
    examination = verify_store(url, Path("none"))
    assert [damage.seq for damage in examination.damages] == [last - 2, last - 1]
    with pytest.raises(StoreError, match=rf"lost records after|Record {last - 2} of the log"):
        await Registry.open(await open_log(url))
