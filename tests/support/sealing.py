"""A check, for any store, that sealing encrypts a log that holds plain secrets."""

from __future__ import annotations

import base64
import os
from collections.abc import Awaitable, Callable, Sequence

import msgspec
import pytest

from stele.service.collections import Changes, Items, edit_collection, read_collection
from stele.service.log_sealing import prepare_keys, seal_plain_log
from stele.service.registry import Registry
from stele.service.secrets import Secrets, parse_source
from stele.storage import open_log

__all__ = ["check_sealing"]

_COLLECTION = "confluent.exporters"
_SECRET = b"open-sesame"
_VARIABLE = "KEY_OF_A_TEST"


def _make_document(password: bytes) -> bytes:
    return msgspec.json.encode({"name": "copy", "config": {"basic.auth.user.info": "me:" + password.decode()}})


async def _write(registry: Registry, name: str, document: bytes | None) -> None:
    def change(items: Items) -> tuple[Changes, None]:
        return {(name,): document}, None

    await edit_collection(registry, _COLLECTION, change)


async def check_sealing(
    url: str,
    find_bytes: Callable[[bytes], Sequence[object]],
    monkeypatch: pytest.MonkeyPatch,
    *,
    wait_for_erasure: Callable[[Registry], Awaitable[None]] | None = None,
) -> None:
    """Write secrets without a key, seal the log, and search the raw bytes of its store before and after.

    Args:
        url: An empty store.
        find_bytes: Returns the places in the store that hold the given bytes.
        monkeypatch: Fixture of the test, which sets the variable with the key.
        wait_for_erasure: Waits until the store has released the overwritten bytes.
    """
    monkeypatch.setenv(_VARIABLE, base64.b64encode(os.urandom(32)).decode())
    document = _make_document(_SECRET + b"-0815")
    registry = await Registry.open(await open_log(url))
    await _write(registry, "kept", document)
    await _write(registry, "gone", _make_document(_SECRET + b"-4711"))
    await registry._save_snapshot(always=True)
    await _write(registry, "gone", None)
    await _write(registry, "plain", b'{"name":"plain","config":{}}')
    assert find_bytes(_SECRET)
    registry.secrets = Secrets([parse_source("secrets_key", f"env:{_VARIABLE}")])
    await prepare_keys(registry, 1)
    done = await seal_plain_log(registry, 1)
    assert done is not None
    assert done == (1, 2), "one document is there, two records had one"
    assert registry.secrets.count_documents(await registry.fresh_state()) == (0, 0)
    if wait_for_erasure is not None:
        await wait_for_erasure(registry)
    assert (await read_collection(registry, _COLLECTION))["kept",] == document
    await registry.close()
    assert find_bytes(_SECRET) == []
    again = await Registry.open(await open_log(url))
    again.secrets = Secrets([parse_source("secrets_key", f"env:{_VARIABLE}")])
    await prepare_keys(again, 1)
    items = await read_collection(again, _COLLECTION)
    assert (set(items), items["kept",]) == ({("kept",), ("plain",)}, document)
    await again.close()
