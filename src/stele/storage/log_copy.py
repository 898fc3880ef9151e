"""Copies a log from one store to another, record by record, also while its servers write; and compacts a log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec

from stele.core.events import VersionRegistered, decode_record, encode_record, redact_texts
from stele.core.fold import apply_record
from stele.core.ports import Log
from stele.core.sealed_documents import is_resealed
from stele.core.snapshot import dump_state
from stele.core.state import State
from stele.errors import InvalidRequest, StoreError

__all__ = ["CompactedLog", "CopiedLog", "compact_log", "copy_log"]

_PAGE: Final = 1000
_WAIT_SECONDS: Final = 1.0


class CopiedLog(NamedTuple):
    """The result of a copy.

    records  number of records of both logs, compared one by one
    copied   how many of them were not in the target before
    erased   how many lost their texts in the target, since they were purged in the source after they were copied
    """

    records: int
    copied: int
    erased: int


async def copy_log(
    source: Log, target: Log, *, until: asyncio.Event | None = None, progress: Callable[[int], None] = lambda _: None
) -> CopiedLog:
    """Append to the target what it lacks of the source, then compare both from the first record to the last.

    Records are the same bytes in both: ids, sequence numbers and times stay. The snapshot is copied, too, so that a
    server starts on the target as quickly as before.

    Args:
        source: Its servers may continue to write.
        target: Empty, or the beginning of the source. Nothing else may write to it.
        until: Follow the source until this is set; None: only copy what is there now.
        progress: Called with the number of records in the target.

    Raises `InvalidRequest` when the target has a history of its own, `StoreError`.
    """
    before = seq = await target.head()
    erased = await _compare_logs(source, target, seq)
    while True:
        # Read before the tail, so that records written until then are copied, too.
        is_last = until is None or until.is_set()
        while entries := await source.tail(seq, _PAGE):
            if not await target.append(seq, [entry.record for entry in entries]):
                raise InvalidRequest(f"another process writes to the target: it already has a record {seq + 1}")
            seq += len(entries)
            progress(seq)
        if is_last:
            break
        await source.wait(seq, _WAIT_SECONDS)
    erased += await _compare_logs(source, target, seq)
    stored = await source.load_snapshot()
    if stored is not None and stored[0] <= seq:
        await target.save_snapshot(stored[0], bytes(stored[1]))
    return CopiedLog(seq, seq - before, erased)


async def _compare_logs(source: Log, target: Log, until: int) -> int:
    """Check that both have the same records, and erase what the source has erased since. Returns how many were erased.

    Raises `InvalidRequest` when the target has a history of its own.
    """
    erased = seq = 0
    while seq < until:
        wanted = (await source.tail(seq, _PAGE))[: until - seq]
        there = await target.tail(seq, len(wanted)) if wanted else []
        if not wanted or len(there) != len(wanted):
            raise InvalidRequest(f"the target is not a copy of the source: the source has no record {seq + 1}")
        for own, other in zip(there, wanted, strict=True):
            if own.record != other.record:
                if not _is_redacted(other.record, own.record):
                    raise InvalidRequest(f"the target is not a copy of the source: record {own.seq} differs")
                await target.erase(own.seq, other.record)
                erased += 1
        seq += len(wanted)
    return erased


def _is_redacted(shorter: bytes, longer: bytes) -> bool:
    """Return whether a record is another one without the texts that were purged, or with its secrets sealed since."""
    try:
        left, whole = decode_record(shorter), decode_record(longer)
    except msgspec.MsgspecError:
        return False
    if is_resealed(left, whole):
        return True
    purged_shas = frozenset(
        event.sha for event in left.events if isinstance(event, VersionRegistered) and event.text is None
    )
    return redact_texts(whole, purged_shas) == left


class CompactedLog(NamedTuple):
    """The result of compacting.

    records         number of the record that the snapshot was taken after
    snapshot_bytes  size of the snapshot
    erased          number of records whose purged texts were erased
    """

    records: int
    snapshot_bytes: int
    erased: int


async def compact_log(log: Log) -> CompactedLog:
    """Save a snapshot of the newest state, and erase purged texts that are still in the log.

    Such texts remain when a node ends between a purge and its erasure. Servers may continue to run. Raises
    `StoreError`.
    """
    state = State()
    purged: dict[int, set[bytes]] = {}
    while entries := await log.tail(state.seq, _PAGE):
        for entry in entries:
            try:
                record = decode_record(entry.record)
            except msgspec.MsgspecError as error:
                raise StoreError(f"record {entry.seq} of the log cannot be read by this version: {error}") from error
            apply_record(state, entry.seq, record)
            for text in state.erased:
                purged.setdefault(text.seq, set()).add(text.sha)
            state.erased.clear()
        state.pack_texts()
    # The snapshot goes first: an older one may have the texts, too.
    data = dump_state(state)
    await log.save_snapshot(state.seq, data)
    erased = 0
    for seq, shas in purged.items():
        for entry in await log.tail(seq - 1, 1):
            redacted = encode_record(redact_texts(decode_record(entry.record), frozenset(shas)))
            if redacted != entry.record:
                await log.erase(seq, redacted)
                erased += 1
    return CompactedLog(state.seq, len(data), erased)
