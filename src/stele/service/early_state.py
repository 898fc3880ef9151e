"""A state that is loaded before worker processes are forked, which then share its memory.

It holds plain data: no thread, connection, file lock or event loop. A worker opens the log itself, checks that the log
still has the history that the state was made from, and reads the records after it.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from stele.core.fold import apply_record
from stele.core.snapshot import load_state
from stele.core.state import State
from stele.service.old_records import read_entry
from stele.storage.chained_log import ChainedLog
from stele.storage.high_water_mark import LogPosition

__all__ = ["EarlyState", "decode_snapshot", "load_early_state"]

_TAIL: Final = 20_000
"""Maximum number of records that are read after the snapshot. Workers read the rest while they answer requests."""
_PAGE: Final = 1000


def decode_snapshot(stored: tuple[int, bytes | memoryview] | None) -> tuple[State, int]:
    """Return the state of a snapshot and its seq; an empty state and 0 if there is no usable snapshot."""
    state = load_state(stored[1]) if stored is not None else None
    if stored is None or state is None or state.seq != stored[0]:
        return State(), 0
    return state, stored[0]


class EarlyState(NamedTuple):
    """A state, its position in the log, and the seq of the snapshot it was made from (0: no snapshot)."""

    state: State
    position: LogPosition
    snapshot_seq: int


async def load_early_state(log: ChainedLog) -> EarlyState:
    """Return the state of the newest snapshot, plus up to `_TAIL` records after it.

    Raises `StoreError` for a log that cannot be read, `DamagedLog` for one that lost records.
    """
    state, snapshot_seq = decode_snapshot(await log.load_snapshot())
    while state.seq < snapshot_seq + _TAIL and (entries := await log.tail(state.seq, _PAGE)):
        for entry in entries:
            apply_record(state, entry.seq, read_entry(entry))
        state.pack_texts()
    state.erased.clear()  # The node that wrote the purge erases the text from the log.
    return EarlyState(state, await log.find_position(state.seq), snapshot_seq)
