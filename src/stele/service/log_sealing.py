"""Sealing the secrets of a log that was written without a key, or with another one."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from stele.core.commands import ChangeItems
from stele.core.state import State
from stele.errors import InvalidRequest
from stele.service.registry import Registry
from stele.service.retry import retry_when_overtaken
from stele.service.secrets import COLLECTION, HISTORY


class _History(msgspec.Struct):
    """The record up to which all secrets in the log are sealed."""

    sealed_to: int


class SealedLog(NamedTuple):
    """Result of sealing: number of documents that were sealed again, and of past records that got sealed secrets."""

    documents: int
    records: int


async def prepare_keys(registry: Registry, now: int, *, read_only: bool = False) -> None:
    """Load every key, and create the one that a KMS wraps if it does not exist yet. Raises `KmsError`, `StoreError`."""
    await registry.secrets.load_wrapped_keys(await registry.fresh_state())
    if registry.secrets.lacks_wrapped_key and not read_only:
        await _create_wrapped_key(registry, now)


async def _create_wrapped_key(registry: Registry, now: int) -> None:
    await registry.execute(ChangeItems(COLLECTION, dict(await registry.secrets.wrap_new_key(now))), via="secrets")
    await registry.secrets.load_wrapped_keys(await registry.fresh_state())


async def seal_log(registry: Registry, *, rotate: bool = False, now: int = 0) -> SealedLog:
    """Seal all secrets in the log that are plain, also those of documents that were changed or removed since.

    The present documents are rewritten first, so that no node has plain ones in memory or in a snapshot. Then past
    records are overwritten. If it fails, it can be run again and continues.

    Args:
        registry: Registry whose `secrets` has a key.
        rotate: Also seal again what is sealed with another key than the first one; with a KMS, create a new key first.
        now: Milliseconds since 1970 UTC.

    Raises:
        InvalidRequest: There is no key.
        SecretsLocked: A key is missing; everything stays readable with the keys that it was readable with.
        StoreError: The log takes no changes.
    """
    secrets = registry.secrets
    if not secrets.has_key:
        raise InvalidRequest("no key: name one in the setting secrets_key")
    await prepare_keys(registry, now)
    if rotate and secrets.sources[0].kind == "kms":
        await _create_wrapped_key(registry, now)

    async def attempt(state: State) -> int:
        count = 0
        for collection, revision, changes in list(secrets.list_changes(state, rotate=rotate)):
            await registry.execute(ChangeItems(collection, changes, revision, sealed=True), via="secrets")
            count += len(changes)
        return count

    written = await retry_when_overtaken(registry, attempt)
    records = await registry.rewrite_records(lambda record: secrets.seal_record(record, rotate=rotate))
    sealed_to = (await registry.fresh_state()).seq
    history = msgspec.json.encode(_History(sealed_to))
    await registry.execute(ChangeItems(COLLECTION, {HISTORY: history}), via="secrets")
    return SealedLog(written, records)


async def seal_plain_log(registry: Registry, now: int) -> SealedLog | None:
    """Seal the log if it was written without a key. Return None if there is nothing to seal. Raises as `seal_log`."""
    state = await registry.fresh_state()
    collection = state.collections.get(COLLECTION)
    is_known = collection is not None and HISTORY in collection.items
    if state.seq == 0 or (is_known and registry.secrets.count_documents(state)[0] == 0):
        return None
    return await seal_log(registry, now=now)
