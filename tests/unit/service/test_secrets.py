"""Secrets in documents: sealed in memory, log and snapshot, opened for readers, and moved to new keys."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import msgspec
import pytest
import structlog

from stele.core.commands import ChangeItems
from stele.core.events import ItemsChanged, decode_record, make_record
from stele.core.sealed_documents import is_resealed, read_seal
from stele.core.snapshot import dump_state
from stele.errors import InvalidRequest, SecretsLocked
from stele.service.collections import Changes, Items, edit_collection, read_collection
from stele.service.log_sealing import prepare_keys, seal_log, seal_plain_log
from stele.service.registry import Registry
from stele.service.secrets import PlainSecrets, Secrets, parse_source
from stele.storage import open_log
from stele.storage.log_copy import copy_log
from stele.storage.memory import MemoryLog, MemoryStore

PASSWORD = b"open-sesame-0815"
EXPORTERS = "confluent.exporters"
KEY = ("copy",)
DOCUMENT = msgspec.json.encode({"name": "copy", "config": {"basic.auth.user.info": "me:" + PASSWORD.decode()}})


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """Return two sources of keys."""
    for name in ("KEY_A", "KEY_B"):
        monkeypatch.setenv(name, base64.b64encode(os.urandom(32)).decode())
    return "env:KEY_A", "env:KEY_B"


def secrets_of(*sources: str, plain: PlainSecrets = PlainSecrets.ALLOW) -> Secrets:
    """Return the keys of these sources."""
    return Secrets([parse_source("secrets_key", source) for source in sources], plain)


async def open_registry(store: MemoryStore | str, *sources: str) -> Registry:
    """Open a node with these keys."""
    log = MemoryLog(store) if isinstance(store, MemoryStore) else await open_log(store)
    registry = await Registry.open(log)
    registry.secrets = secrets_of(*sources)
    await prepare_keys(registry, 1)
    return registry


async def write(registry: Registry, document: bytes | None = DOCUMENT, key: tuple[str, ...] = KEY) -> None:
    """Write or remove a document."""

    def change(items: Items) -> tuple[Changes, None]:
        return {key: document}, None

    await edit_collection(registry, EXPORTERS, change)


def read_files(folder: Path) -> bytes:
    """Return all bytes of all files in a folder."""
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


async def test_a_secret_is_nowhere_but_in_what_a_reader_gets(keys: tuple[str, str]) -> None:
    """Records, state and snapshot have the sealed document; a reader gets the original one."""
    store = MemoryStore()
    registry = await open_registry(store, keys[0])
    await write(registry)
    assert (await read_collection(registry, EXPORTERS))[KEY] == DOCUMENT
    assert PASSWORD not in b"".join(store.records) + dump_state(registry.state)
    assert b"user.info" not in b"".join(store.records)
    assert decode_record(store.records[-1]).format == 2
    await registry.close()


async def test_writing_the_same_again_writes_nothing(keys: tuple[str, str]) -> None:
    """A document that does not change keeps its seal, although each sealing gives other bytes."""
    registry = await open_registry(MemoryStore(), keys[0])
    await write(registry)
    before = registry.appended
    await write(registry)
    assert registry.appended == before
    await registry.close()


async def test_a_sealed_value_cannot_be_moved(keys: tuple[str, str]) -> None:
    """Sealed bytes cannot be opened under another key of the collection."""
    registry = await open_registry(MemoryStore(), keys[0])
    await write(registry)
    sealed = registry.state.collections[EXPORTERS].items[KEY]
    await registry.execute(ChangeItems(EXPORTERS, {("thief",): sealed}))
    with pytest.raises(SecretsLocked, match="cannot be opened"):
        (await read_collection(registry, EXPORTERS))["thief",]
    await registry.close()


async def test_without_the_key_nothing_is_lost(keys: tuple[str, str]) -> None:
    """A node with another key names the missing key and changes nothing; the right key still opens the document."""
    store = MemoryStore()
    first = await open_registry(store, keys[0])
    await write(first)
    second = await open_registry(store, keys[1])
    assert second.secrets.count_documents(await second.fresh_state()) == (0, 1)
    seal = read_seal(second.state.collections[EXPORTERS].items[KEY])
    assert seal is not None
    with pytest.raises(SecretsLocked, match=seal.key):
        (await read_collection(second, EXPORTERS))[KEY]
    with pytest.raises(SecretsLocked):
        await write(second, DOCUMENT.replace(b"me:", b"you:"))
    with pytest.raises(SecretsLocked):
        await seal_log(second, rotate=True)
    assert (await read_collection(first, EXPORTERS))[KEY] == DOCUMENT
    await first.close()
    await second.close()


async def test_without_any_key_secrets_are_plain_or_refused() -> None:
    """By default one warning is logged. With the setting, changes with secrets are refused, other documents are not."""
    registry = await Registry.open(MemoryLog())
    with structlog.testing.capture_logs() as logs:
        await write(registry)
        await write(registry, DOCUMENT, ("other",))
    assert [line["event"] for line in logs] == ["secrets are stored as plain text"]
    assert registry.secrets.count_documents(registry.state) == (2, 0)
    registry.secrets = secrets_of(plain=PlainSecrets.REFUSE)
    with pytest.raises(InvalidRequest, match="secrets_key"):
        await write(registry, DOCUMENT, ("third",))
    await write(registry, b'{"name":"bare","config":{}}', ("bare",))
    await registry.close()


@pytest.mark.parametrize("store", ["sqlite:///{}/log.db", "files:///{}/log"])
async def test_old_plain_secrets_leave_the_files(store: str, tmp_path: Path, keys: tuple[str, str]) -> None:
    """Sealing a log removes plain secrets from records, write-ahead log and snapshot, also of removed documents."""
    url = store.format(tmp_path)
    registry = await open_registry(url)
    await write(registry)
    await write(registry, DOCUMENT.replace(b"0815", b"4711"), ("gone",))
    await registry._save_snapshot(always=True)
    await write(registry, None, ("gone",))
    assert PASSWORD in read_files(tmp_path)
    registry.secrets = secrets_of(keys[0])
    done = await seal_plain_log(registry, 1)
    assert done is not None
    assert done == (1, 2)
    assert await seal_plain_log(registry, 1) is None
    assert (await read_collection(registry, EXPORTERS))[KEY] == DOCUMENT
    assert b"open-sesame" not in read_files(tmp_path)
    await registry.close()
    assert b"open-sesame" not in read_files(tmp_path)
    again = await open_registry(url, keys[0])
    assert dict(await read_collection(again, EXPORTERS)) == {KEY: DOCUMENT}
    await again.close()


async def test_rotation_makes_the_old_key_useless(keys: tuple[str, str]) -> None:
    """After a rotation the new key opens all documents, also past ones, and nothing is sealed with the old key."""
    store = MemoryStore()
    old = await open_registry(store, keys[0])
    await write(old)
    await write(old, DOCUMENT.replace(b"0815", b"4711"))
    old_id = next(iter(old.secrets._keys))
    await old.close()
    both = await open_registry(store, keys[1], keys[0])
    assert await seal_log(both, rotate=True) == (1, 2)
    await both.close()
    assert old_id.encode() not in b"".join(store.records)
    new = await open_registry(store, keys[1])
    assert b"4711" in (await read_collection(new, EXPORTERS))[KEY]
    await new.close()


async def test_a_kms_wraps_the_key_and_rotates_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The log has the key only in wrapped form; other nodes read it there; a rotation creates another one."""
    monkeypatch.setenv("LOCAL_SECRET", "the KMS")
    store = MemoryStore()
    first = await open_registry(store, "kms:local-kms:stele")
    second = await open_registry(store, "kms:local-kms:stele")
    await write(first)
    assert (await read_collection(second, EXPORTERS))[KEY] == DOCUMENT
    assert len(first.secrets._keys) == 1
    await seal_log(first, rotate=True, now=2)
    assert len(first.secrets._keys) == 2
    assert (await read_collection(second, EXPORTERS))[KEY] == DOCUMENT
    await write(second, DOCUMENT.replace(b"0815", b"4711"))
    assert b"4711" in (await read_collection(first, EXPORTERS))[KEY]
    assert PASSWORD not in b"".join(store.records)
    await first.close()
    await second.close()


async def test_copies_of_logs_keep_sealed_what_is_sealed(keys: tuple[str, str]) -> None:
    """A copy that was started with plain secrets gets the sealed ones after the source was sealed."""
    source, target = MemoryStore(), MemoryStore()
    registry = await Registry.open(MemoryLog(source))
    await write(registry)
    await copy_log(MemoryLog(source), MemoryLog(target))
    assert PASSWORD in b"".join(target.records)
    registry.secrets = secrets_of(keys[0])
    await seal_log(registry)
    await registry.close()
    assert (await copy_log(MemoryLog(source), MemoryLog(target))).erased == 1
    assert PASSWORD not in b"".join(target.records)


async def test_another_history_is_no_resealed_one() -> None:
    """A record with other public members does not count as the same record sealed again."""
    store = MemoryStore()
    registry = await Registry.open(MemoryLog(store))
    await write(registry)
    await registry.close()
    record = decode_record(store.records[-1])
    (event,) = record.events
    assert isinstance(event, ItemsChanged)
    other = make_record(record.metadata, (msgspec.structs.replace(event, collection="x"),))
    assert not is_resealed(other, record)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("file:/nowhere/key", "cannot be read"),
        ("env:STELE_NO_SUCH_KEY", "is not set"),
        ("vault", "must be one of"),
        ("kms:aws-kms", "must be one of"),
    ],
)
def test_a_missing_key_is_named(source: str, reason: str) -> None:
    """A source without a key is refused with its name."""
    with pytest.raises(InvalidRequest, match=reason):
        secrets_of(source)


def test_a_key_of_wrong_length_is_refused_and_never_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message does not contain the text that was read as a key."""
    monkeypatch.setenv("SHORT_KEY", "correct horse battery")
    with pytest.raises(InvalidRequest, match="32 bytes") as caught:
        secrets_of("env:SHORT_KEY")
    assert "horse" not in str(caught.value)
