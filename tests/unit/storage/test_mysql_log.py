"""Faults of the MySQL store: of its server, its connections, its privileges, and after a restore."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.support.certificates import write_certificates
from tests.support.doc_pages import list_sql
from tests.support.dropping_relay import dropping_relay
from tests.support.mariadb import MariadbServer, mariadb
from tests.support.sealing import check_sealing
from tests.unit.service.test_registry import put, record

from stele.core.commands import DeleteMode, DeleteSubject
from stele.core.model import SubjectKey
from stele.errors import DamagedLog, InvalidRequest, StoreError, StoreReplaced
from stele.server.store_maintenance import back_up_store, inspect_store, repair_store, verify_store
from stele.service.registry import SKIPPED_SCHEMA_IDS, Registry
from stele.storage import open_log
from stele.storage.mysql.log import MysqlLog

pytestmark = pytest.mark.servers

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "databases.md"
KEY = SubjectKey("", "orders-value")
Opener = Callable[[], Awaitable[MysqlLog]]


@pytest.fixture(scope="module")
def server() -> Iterator[MariadbServer]:
    """A MariaDB server from the system's packages."""
    with mariadb() as running:
        yield running


@pytest.fixture
def database(server: MariadbServer) -> str:
    """The name of a new database."""
    return server.create_database()


@pytest.fixture
def url(server: MariadbServer, database: str) -> str:
    """The URL of the database."""
    return server.url(database)


@pytest.fixture
async def opener(url: str) -> AsyncIterator[Opener]:
    """Open handles on the database, which are closed after the test."""
    handles: list[MysqlLog] = []

    async def open_one() -> MysqlLog:
        handles.append(await MysqlLog.open(url))
        return handles[-1]

    yield open_one
    for handle in handles:
        await handle.close()


def remove_marks(folder: Path) -> None:
    """Delete the marks of a node."""
    for mark in folder.glob("*.mark"):
        mark.unlink()


def end_connections(server: MariadbServer, database: str) -> None:
    """End all connections to a database, as an administrator or a proxy does."""
    rows = server.execute(f"SELECT id FROM information_schema.processlist WHERE db = '{database}'")
    server.execute(*(f"KILL {row[0]}" for row in rows))


# --- tables and rights ------------------------------------------------------------------------------------------------


async def test_nodes_that_start_at_once(url: str, server: MariadbServer, database: str) -> None:
    """Eight nodes on an empty database create one set of tables, and share one log."""
    logs = await asyncio.gather(*(MysqlLog.open(url) for _ in range(8)))
    assert sum(await asyncio.gather(*(log.append(0, [b"x"]) for log in logs))) == 1
    assert [await log.head() for log in logs] == [1] * 8
    assert len({log._log_id for log in logs}) == 1
    for log in logs:
        await log.close()
    assert server.execute("SELECT layout FROM stele_store", database=database) == [(1,)]


async def test_tables_of_a_newer_release(opener: Opener, server: MariadbServer, database: str, url: str) -> None:
    """Tables of a newer release are refused."""
    await opener()
    server.execute("UPDATE stele_store SET layout = 2", database=database)
    for use in (opener, lambda: asyncio.to_thread(inspect_store, url)):
        with pytest.raises(StoreError, match="has layout 2, but this program knows only layout 1: use a newer Stele"):
            await use()


async def test_tables_that_were_replaced(opener: Opener, server: MariadbServer, database: str) -> None:
    """A node stops when its tables were replaced by others of the same name."""
    log = await opener()
    assert await log.append(0, [b"a"])
    await log.require_writable()
    server.execute("DROP TABLE stele_log, stele_snapshot, stele_store", database=database)
    await opener()
    with pytest.raises(StoreReplaced, match="now holds another log than the one that was opened"):
        await log.require_writable()


async def test_missing_rights(server: MariadbServer, database: str) -> None:
    """The error for a user who may not create tables names the missing privilege."""
    user = f"u{database}"
    server.execute(f"CREATE USER {user} IDENTIFIED BY 'sesame'", f"GRANT SELECT, INSERT ON {database}.* TO {user}")
    with pytest.raises(StoreError, match="does not give this user a right that it needs: CREATE command denied"):
        await MysqlLog.open(server.url(database, user, "sesame"))


async def test_the_rights_of_the_manual(server: MariadbServer) -> None:
    """The privileges in the manual suffice for all operations."""
    server.execute(*list_sql(PAGE)[1])
    url = server.url("stele", "stele", "change-me")
    log = await open_log(url)
    assert await log.append(0, [b"secret", b"b"])
    await log.save_snapshot(1, b"x")
    await log.erase(1, b"")
    await log.require_writable()
    await log.close()
    assert server.execute("SELECT erasures, scrubbed FROM stele_store", database="stele") == [(1, 1)]
    condition = inspect_store(url)
    assert condition is not None
    assert (condition.exists, condition.is_writable, condition.layout) == (True, True, 1)
    assert condition.doubts == (
        "innodb_flush_log_at_trx_commit is 2, not 1: a machine that fails may lose acknowledged records",
    )


@pytest.mark.parametrize(
    ("user", "where", "message"),
    [
        ("admin", "mysql", "refuses the user or the password: Access denied for user 'admin'@'127.0.0.1'"),
        ("admin", "nothere", "is not there: Unknown database 'nothere'"),
        ("nobody", "mysql", "refuses the user or the password: Access denied for user 'nobody'@'127.0.0.1'"),
    ],
)
async def test_who_is_let_in(server: MariadbServer, user: str, where: str, message: str) -> None:
    """A rejected login raises one sentence with the reason, without the password."""
    password = None if where == "nothere" else "sesame"
    with pytest.raises(StoreError) as caught:
        await open_log(server.url(where, user, password))
    assert message in str(caught.value)
    assert "sesame" not in str(caught.value)
    assert server.password not in str(caught.value)


async def test_tls_that_the_server_has_not(server: MariadbServer, url: str) -> None:
    """Required TLS raises an error if the server does not support it."""
    with pytest.raises(StoreError, match="SSL"):
        await open_log(f"{url}?ssl-mode=required")


async def test_tls() -> None:
    """The certificate and the name of the server are verified as the URL asks."""
    with mariadb() as server:
        write_certificates(server.folder)
        server.stop()
        server.start(ssl_cert=f"{server.folder}/server.pem", ssl_key=f"{server.folder}/server.key")
        url = server.url(server.create_database())
        authority = f"ssl-ca={server.folder}/ca.pem"
        log = await MysqlLog.open(f"{url.replace('127.0.0.1', 'localhost')}?ssl-mode=verify_identity&{authority}")
        await log.close()
        with pytest.raises(StoreError, match="IP address mismatch"):
            await MysqlLog.open(f"{url}?ssl-mode=verify_identity&{authority}")
        with pytest.raises(StoreError, match="certificate verify failed"):
            await MysqlLog.open(f"{url}?ssl-mode=verify_ca")


async def test_records_that_do_not_fit(opener: Opener, server: MariadbServer) -> None:
    """A record beyond `max_allowed_packet` is refused with the name of the setting; the log stays usable."""
    before = server.execute("SELECT @@global.max_allowed_packet")[0][0]
    server.execute("SET GLOBAL max_allowed_packet = 1048576")
    try:
        log = await opener()
        with pytest.raises(
            StoreError, match="cannot take a record of 1048576 bytes: raise its max_allowed_packet, which is 1048576"
        ):
            await log.append(0, [b"a", bytes(1 << 20)])
        big = bytes(range(256)) * 4000
        assert await log.append(0, [b"a", big, b"c"])
        assert [entry.record for entry in await log.tail(0, 9)] == [b"a", big, b"c"]
        await log.save_snapshot(1, big * 9)
        assert await log.load_snapshot() == (1, big * 9)
    finally:
        server.execute(f"SET GLOBAL max_allowed_packet = {before}")


# --- faults -----------------------------------------------------------------------------------------------------------


async def test_connections_that_end(opener: Opener, server: MariadbServer, database: str) -> None:
    """After its connections end, reads continue at once, and appends and turns after at most one error."""
    log, other = await opener(), await opener()
    assert await log.append(0, [b"a"])
    async with log.turn():
        end_connections(server, database)
        assert await log.head() == 1
        assert await other.tail(0, 9) == [(1, b"a")]
    with pytest.raises(StoreError, match="ended the connection"):
        await log.append(1, [b"b"])
    async with asyncio.timeout(60), log.turn():
        assert await log.append(1, [b"b"])
    waiting = asyncio.create_task(other.wait(2, 120))
    await asyncio.sleep(0.3)
    assert await log.append(2, [b"c"])
    await asyncio.wait_for(waiting, 30)


async def test_an_answer_that_is_lost(server: MariadbServer, url: str) -> None:
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
    """Writes are refused while the server is down; afterwards they succeed, and nothing is lost."""
    with mariadb() as server:
        registry = await Registry.open(await open_log(server.url(server.create_database())))
        first = await put(registry, record("a"))
        await asyncio.to_thread(server.stop, signal.SIGKILL)
        with pytest.raises(StoreError, match=r"cannot be reached|ended the connection"):
            await put(registry, record("a", "b"))
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


async def test_a_server_that_is_read_only(opener: Opener, server: MariadbServer) -> None:
    """`require_writable` reports a replica or a read-only server without a write."""
    log = await opener()
    server.execute("SET GLOBAL read_only = 1")
    try:
        with pytest.raises(StoreError, match="is read-only: it is a replica, or was set to read-only"):
            await log.require_writable()
    finally:
        server.execute("SET GLOBAL read_only = 0")
    await log.require_writable()


async def test_a_turn_is_given_up_for(opener: Opener, url: str) -> None:
    """A writer that waits too long for a turn continues without one."""
    holder = await opener()
    log = await MysqlLog.open(url, patience=0.2)
    async with holder.turn(), asyncio.timeout(60), log.turn():
        assert await log.append(0, [b"a"])
    await log.close()


# --- erasure, backups and histories that go back ----------------------------------------------------------------------


async def test_erased_bytes_are_gone(server: MariadbServer, database: str, url: str) -> None:
    """After a purge no file of the log table and of the snapshot table contains the text."""
    secret = b"sesame_open_up"
    registry = await Registry.open(await open_log(url))
    for name in (f"f{number}" for number in range(30)):
        await put(registry, record(name), SubjectKey("", name))
    await put(registry, record(secret.decode()), KEY)
    await registry._save_snapshot(always=True)
    server.execute("FLUSH TABLES stele_log FOR EXPORT", "UNLOCK TABLES", database=database)
    files = server.data / database
    assert [path for path in files.glob("*.ibd") if secret in path.read_bytes()]
    for mode in (DeleteMode.SOFT, DeleteMode.HARD):
        await registry.execute(DeleteSubject(KEY, mode))
    await registry.close()
    server.execute("FLUSH TABLES stele_log FOR EXPORT", "UNLOCK TABLES", database=database)
    assert [path for path in files.glob("*") if secret in path.read_bytes()] == []
    assert server.execute("SELECT erasures > 0, scrubbed = erasures FROM stele_store", database=database) == [(1, 1)]


async def test_sealed_secrets_are_gone(
    server: MariadbServer, database: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sealing removes plain secrets from the rows and from the files of the tables."""

    def find_secret(wanted: bytes) -> list[object]:
        server.execute("FLUSH TABLES stele_log FOR EXPORT", "UNLOCK TABLES", database=database)
        rows = server.execute(f"SELECT seq FROM stele_log WHERE LOCATE('{wanted.decode()}', stored)", database=database)
        files = (server.data / database).glob("*")
        return [*rows, *(path for path in files if wanted in path.read_bytes())]

    await check_sealing(url, find_secret, monkeypatch)


async def test_a_restored_database(server: MariadbServer, database: str, url: str, tmp_path: Path) -> None:
    """A node that has seen more records refuses to start; after a repair, no id is assigned again."""
    state_dir = tmp_path / "state"
    registry = await Registry.open(await open_log(url, state_dir))
    first = await put(registry, record("a"))
    lost = await put(registry, record("a", "b"))
    await registry.close()
    server.execute("DELETE FROM stele_log ORDER BY seq DESC LIMIT 1", database=database)
    with pytest.raises(DamagedLog, match=r"mark says that record .* was acknowledged: 1 records are lost"):
        await open_log(url, state_dir)
    examination = verify_store(url, state_dir)
    assert (examination.is_whole, examination.acknowledged - examination.intact) == (False, 1)
    running = await MysqlLog.open(url)
    done = repair_store(url, state_dir, 0)
    assert "in the table stele_log_damaged_" in done.moved_to
    with pytest.raises(StoreReplaced):
        await running.require_writable()
    await running.close()
    assert verify_store(url, state_dir).is_whole
    registry = await Registry.open(await open_log(url, state_dir))
    again = await put(registry, record("a", "c"))
    assert again.schema_id > lost.schema_id + SKIPPED_SCHEMA_IDS > first.schema_id
    await registry.close()


async def test_a_restored_dump(server: MariadbServer, database: str, url: str, tmp_path: Path) -> None:
    """After the restore steps of the manual no id is assigned twice.

    The node that wrote the lost versions is not needed for that.
    """
    registry = await Registry.open(await open_log(url, tmp_path))
    await put(registry, record("a"))
    dumped = server.dump(database)
    lost = await put(registry, record("a", "b"))
    await registry.close()
    server.restore(database, dumped)
    with pytest.raises(DamagedLog, match="1 records are lost"):
        await open_log(url, tmp_path)
    server.execute(*list_sql(PAGE)[2], database=database)
    remove_marks(tmp_path)
    registry = await Registry.open(await open_log(url, tmp_path))
    again = await put(registry, record("a", "c"))
    assert again.schema_id > lost.schema_id + SKIPPED_SCHEMA_IDS - 2
    await registry.close()


async def test_a_copy_in_a_file(url: str, tmp_path: Path) -> None:
    """`stele backup` writes a SQLite file, which is a store that may lack records."""
    with pytest.raises(InvalidRequest, match="there is no store mysql://127"):
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


async def test_credentials_of_the_environment(server: MariadbServer, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """User and password can come from the environment instead of the URL."""
    parts = urlsplit(url)
    monkeypatch.setenv("STELE_STORE_USER", "admin")
    monkeypatch.setenv("STELE_STORE_PASSWORD", server.password)
    log = await MysqlLog.open(f"mysql://127.0.0.1:{parts.port}{parts.path}")
    assert await log.head() == 0
    await log.close()
