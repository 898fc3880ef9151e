"""Every node reads the same log from a topic, at any time and after any compaction."""

from __future__ import annotations

import random
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from stele.storage.kafka.index import ClaimIndex
from stele.storage.kafka.messages import Claim, Replacement, print_key


class _Message(NamedTuple):
    """A message of the topic; withdrawn is the key of the one that it is a tombstone of."""

    offset: int
    key: Claim | Replacement | None
    withdrawn: bytes = b""

    @property
    def key_bytes(self) -> bytes:
        return self.withdrawn if self.key is None else print_key(self.key)


def _read(index: ClaimIndex, messages: list[_Message]) -> ClaimIndex:
    for message in messages:
        if message.key is None:
            index.add_tombstone(message.offset, message.withdrawn)
        elif isinstance(message.key, Claim):
            index.add_claim(message.offset, message.key, message.key_bytes)
        else:
            index.add_replacement(message.offset, message.key, message.key_bytes)
    return index


def _log_of(index: ClaimIndex) -> list[int]:
    return [index.find_place(seq).offset for seq in range(1, index.head + 1)]


def _write_topic(chance: random.Random, length: int) -> tuple[list[_Message], ClaimIndex]:
    """Return a topic that lagging nodes wrote (claims, replacements, tombstones), and a complete index of it."""
    topic: list[_Message] = []
    whole = ClaimIndex("topic")
    whole.reach_end(0)
    for attempt in range(length):
        index = _read(
            ClaimIndex("topic"), topic[: len(topic) - chance.randrange(3)] if chance.random() < 0.5 else topic
        )
        index.reach_end(index.next_offset)
        node, offset = chance.choice("AB"), len(topic)
        action = chance.random()
        if action < 0.5 or index.head == 0:
            message = _Message(offset, Claim(index.head + 1, chance.randint(1, 2), node, attempt))
        elif action < 0.75:
            place = index.find_place(chance.randint(1, index.head))
            count = index.count_records(place.seq)
            message = _Message(offset, Replacement(place.seq, count, place.origin, place.version + 1, node, attempt))
        elif whole.void:
            message = _Message(offset, None, topic[chance.choice(list(whole.void))].key_bytes)
        else:
            continue
        if message.key is None:
            for void in [void for void in whole.void if topic[void].key_bytes == message.withdrawn]:
                del whole.void[void]
        topic.append(message)
        _read(whole, [message])
    return topic, whole


def _compact(chance: random.Random, topic: list[_Message]) -> list[_Message]:
    """Remove messages with a later tombstone, and tombstones without such a message, but never the last message."""
    withdrawn = {message.withdrawn: message.offset for message in topic if message.key is None}
    left = [
        message
        for message in topic
        if message.key is None or withdrawn.get(message.key_bytes, -1) < message.offset or chance.random() < 0.3
    ]
    there = {message.key_bytes for message in left if message.key is not None}
    return [
        message
        for message in left
        if message is topic[-1] or message.key is not None or message.withdrawn in there or chance.random() < 0.5
    ]


@given(st.randoms(use_true_random=False), st.integers(1, 40), st.data())
def test_compaction_changes_no_log(chance: random.Random, length: int, data: st.DataObject) -> None:
    """A node that saw everything, one that starts late, and one that was stopped halfway have the same log."""
    topic, whole = _write_topic(chance, length)
    expected = _log_of(whole)
    compacted = _compact(chance, topic)
    end = len(topic)

    late = _read(ClaimIndex("topic"), compacted)
    late.reach_end(end)
    assert _log_of(late) == expected

    half = data.draw(st.integers(0, end))
    stopped = _read(ClaimIndex("topic"), topic[:half])
    stopped.reach_end(half)
    _read(stopped, [message for message in compacted if message.offset >= half])
    stopped.reach_end(end)
    assert _log_of(stopped) == expected
    assert [stopped.find_place(seq) for seq in range(1, stopped.head + 1)] == [
        late.find_place(seq) for seq in range(1, late.head + 1)
    ]
