"""A state that is loaded before worker processes are forked, which then share its memory.

It holds plain data: no thread, connection, lock of a file or event loop goes with it. A worker opens the log itself,
makes sure that it is still the history that the state was made of, and reads on from there.
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
"""Records that are read after the snapshot, at most: the rest is left to the workers, which answer meanwhile."""
_PAGE: Final = 1000


def decode_snapshot(stored: tuple[int, bytes | memoryview] | None) -> tuple[State, int]:
    """Return the state that a snapshot of a log holds, and its seq; an empty state and 0 for none that can be used."""
    state = load_state(stored[1]) if stored is not None else None
    if stored is None or state is None or state.seq != stored[0]:
        return State(), 0
    return state, stored[0]


class EarlyState(NamedTuple):
    """A state, the position of the log that it stands on, and the seq of the snapshot it was made of (0: of none)."""

    state: State
    position: LogPosition
    snapshot_seq: int


async def load_early_state(log: ChainedLog) -> EarlyState:
    """Return the state of the newest snapshot, with what the log has after it if that is not much.

    Raises `StoreError` for a log that cannot be read, `DamagedLog` for one that lost records.
    """
    state, snapshot_seq = decode_snapshot(await log.load_snapshot())
    while state.seq < snapshot_seq + _TAIL and (entries := await log.tail(state.seq, _PAGE)):
        for entry in entries:
            apply_record(state, entry.seq, read_entry(entry))
        state.pack_texts()
    state.erased.clear()  # Whoever wrote a purge takes the text out of the log.
    return EarlyState(state, await log.find_position(state.seq), snapshot_seq)
