"""Decides which messages of the topic are the log, by the same rules in every node. No input or output here.

A message claims sequence numbers. The first claim to the next number wins, all others are void. Since a topic of one
partition has one order, this is enough for every node to read the same log.

Compaction removes messages that have a tombstone. A removed message of the log was replaced before, and the replacement
has a higher offset. So where offsets are missing, nothing is decided before the end of the topic is read.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Final, NamedTuple

from stele.errors import DamagedLog
from stele.storage.kafka.messages import Claim, Replacement

__all__ = ["MISSING", "ClaimIndex", "RecordPlace"]


MISSING: Final = -1
"""The value used as the offset of a missing message."""


class RecordPlace(NamedTuple):
    """Where a record is.

    seq       number of the first record in the message
    offset    offset of the message that it is read from
    origin    offset of the message that claimed it first
    version   how often that message was replaced
    """

    seq: int
    offset: int
    origin: int
    version: int


class ClaimIndex:
    """The index of the log, as far as the topic was read.

    Args:
        place: Name of the store in messages.
        is_lenient: Continue where records are missing; their offset is `MISSING` then.
    """

    def __init__(self, place: str, *, is_lenient: bool = False) -> None:
        self._place = place
        self._is_lenient = is_lenient
        self._offsets = array("q")
        """Offset of each record's message."""
        self._firsts = array("q")
        """The first record in the message of each record."""
        self._replaced: dict[int, tuple[int, int]] = {}
        """First record → offset of the first claim, and version, of messages that were replaced."""
        self._waiting_claims = array("q")
        """Offset, first record and count of each claim since the end of the topic was last reached."""
        self._waiting_replacements: list[tuple[int, Replacement]] = []
        self.is_waiting = True
        """Whether messages stay undecided until the end of the topic is reached."""
        self.gaps = 0
        """Number of times that offsets were missing."""
        self.next_offset = 0
        """The offset up to which everything was read."""
        self.position = 0
        """The offset up to which everything is decided."""
        self.void: dict[int, bytes | None] = {}
        """Offset → key, if known, of messages that are not, or no longer, part of the log and have no tombstone."""
        self.losers: dict[str, int] = {}
        """Nodes that lost a claim and won none since, in the order in which they lost → offset of that claim."""
        self.last_origin = -1
        """Offset of the claim of the last record."""

    @property
    def head(self) -> int:
        """Sequence number of the last record."""
        return len(self._offsets)

    def find_place(self, seq: int) -> RecordPlace:
        """Return where a record is. Raises `IndexError` when there is no such record."""
        if not 1 <= seq <= self.head:
            raise IndexError(seq)
        first, offset = self._firsts[seq - 1], self._offsets[seq - 1]
        origin, version = self._replaced.get(first, (offset, 0))
        return RecordPlace(first, offset, origin, version)

    def list_offsets(self, after: int, limit: int) -> list[int]:
        """Return the offsets of the messages of records after a sequence number, in the order of the records.

        Each offset is returned once.
        """
        offsets = self._offsets[after : after + limit]
        return [offset for i, offset in enumerate(offsets) if i == 0 or offset != offsets[i - 1] or offset == MISSING]

    def count_records(self, seq: int) -> int:
        """Return how many records are in the message whose first record is seq."""
        end = seq
        while end < self.head and self._firsts[end] == seq:
            end += 1
        return end - seq + 1

    def add_claim(self, offset: int, claim: Claim, key: bytes) -> None:
        """Add a claim. Offsets must ascend."""
        self._note_offset(offset)
        if self.is_waiting:
            self._waiting_claims.extend((offset, claim.seq, claim.count))
        else:
            if self._decide_claim(offset, claim.seq, claim.count, key):
                self.losers.pop(claim.node, None)
            else:
                self.losers.setdefault(claim.node, offset)
            self.position = offset + 1

    def add_replacement(self, offset: int, replacement: Replacement, key: bytes) -> None:
        """Add a replacement. Offsets must ascend."""
        self._note_offset(offset)
        if self.is_waiting:
            self._waiting_replacements.append((offset, replacement))
        else:
            self._decide_replacement(offset, replacement, key)
            self.position = offset + 1

    def add_tombstone(self, offset: int, key: bytes) -> None:
        """Add a tombstone: the message with its key needs none any more."""
        self.skip_message(offset)
        for void, known in list(self.void.items()):
            if known == key:
                del self.void[void]

    def skip_message(self, offset: int) -> None:
        """Skip a message that does not concern records."""
        self._note_offset(offset)
        if not self.is_waiting:
            self.position = offset + 1

    def reach_end(self, offset: int) -> None:
        """Note that the topic ends before this offset at present, and decide the waiting messages.

        Raises `DamagedLog` when records are missing.
        """
        if self.is_waiting:
            for origin, seq, count in self._merge_waiting():
                if seq > self.head + 1 and self._is_lenient:
                    self._firsts.extend(range(self.head + 1, seq))
                    self._offsets.extend((MISSING,) * (seq - 1 - self.head))
                elif seq > self.head + 1:
                    raise DamagedLog(
                        f"The log {self._place} has lost records {self.head + 1} to {seq - 1}: they are not in the"
                        " topic any more. Restore the newest backup, or let 'stele log verify' say what is lost and"
                        " 'stele log repair' go on without it"
                    )
                self._decide_claim(origin, seq, count, None)
            for place, replacement in self._waiting_replacements:
                self._decide_replacement(place, replacement, None)
            self._waiting_claims = array("q")
            self._waiting_replacements = []
            self.is_waiting = False
        self.next_offset = self.position = max(self.position, offset)

    def _note_offset(self, offset: int) -> None:
        if offset != self.next_offset:
            self.is_waiting = True
            self.gaps += 1
        self.next_offset = offset + 1

    def _merge_waiting(self) -> Iterator[tuple[int, int, int]]:
        """Yield the waiting claims by offset, including compacted claims of which only the replacement is left."""
        claims = self._waiting_claims
        rows = [(claims[i], claims[i + 1], claims[i + 2]) for i in range(0, len(claims), 3)]
        there = {row[0] for row in rows} if self._waiting_replacements else set()
        taken = {
            replacement.origin: (replacement.origin, replacement.seq, replacement.count)
            for _, replacement in self._waiting_replacements
            if replacement.origin not in there and replacement.origin > self.last_origin
        }
        yield from sorted([*rows, *taken.values()]) if taken else rows

    def _decide_claim(self, offset: int, seq: int, count: int, key: bytes | None) -> bool:
        is_won = seq == self.head + 1 and count > 0
        if is_won:
            self._offsets.extend((offset,) * count)
            self._firsts.extend((seq,) * count)
            self.last_origin = offset
        else:
            self.void[offset] = key
        return is_won

    def _decide_replacement(self, offset: int, replacement: Replacement, key: bytes | None) -> None:
        seq = replacement.seq
        if seq <= self.head:
            place = self.find_place(seq)
            if place.origin == replacement.origin and replacement.version > place.version:
                self.void[place.offset] = None
                self._replaced[seq] = replacement.origin, replacement.version
                for i in range(seq - 1, seq - 1 + replacement.count):
                    self._offsets[i] = offset
                return
        self.void[offset] = key
