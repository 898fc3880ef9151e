"""Cache of a client's answers. Immutable ones stay while there is room, others for a limited time. Thread-safe."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from enum import Enum
from math import inf
from threading import Lock
from typing import Any, Final

from stele.client.request import CachePolicy, Effect


class Missing(Enum):
    """The type of `MISSING`."""

    MISSING = "missing"


MISSING: Final = Missing.MISSING
"""Result of a cache lookup without an entry. It differs from None, which can be an answer."""


class AnswerCache:
    """A bounded map that drops the least recently used entry.

    capacity  answers kept
    ttl       seconds a changeable answer stays valid; 0 keeps none
    clock     monotonic seconds
    """

    def __init__(self, capacity: int = 10_000, ttl: float = 30.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._capacity = capacity
        self._ttl = ttl
        self._clock = clock
        self._answers: OrderedDict[Hashable, tuple[float, Any]] = OrderedDict()
        self._lock = Lock()
        self._epoch = 0

    @property
    def epoch(self) -> int:
        """Number of the client's own writes. Read it before a request and pass it to `put`."""
        return self._epoch

    def get(self, key: Hashable) -> Any | Missing:
        """Return the cached answer, or MISSING."""
        with self._lock:
            expires, answer = self._answers.get(key, (-inf, None))
            if expires <= self._clock():
                return MISSING
            self._answers.move_to_end(key)
            return answer

    def put(self, key: Hashable, answer: Any, lifetime: CachePolicy, epoch: int) -> None:
        """Cache an answer, unless the client has written since `epoch`: the answer may be older than that write."""
        seconds = {CachePolicy.NEVER: 0.0, CachePolicy.TTL: self._ttl, CachePolicy.IMMUTABLE: inf}[lifetime]
        with self._lock:
            if seconds <= 0 or epoch != self._epoch:
                return
            self._answers[key] = (self._clock() + seconds, answer)
            self._answers.move_to_end(key)
            while len(self._answers) > self._capacity:
                self._answers.popitem(last=False)

    def forget_after_write(self, effect: Effect) -> None:
        """Drop what the client's own write may have changed.

        A deletion drops everything, another write drops the changeable answers, and a read drops nothing.
        """
        if effect is Effect.READ:
            return
        with self._lock:
            self._epoch += 1
            if effect is Effect.DELETE:
                self._answers.clear()
            else:
                immutable_entries = {key: entry for key, entry in self._answers.items() if entry[0] == inf}
                self._answers = OrderedDict(immutable_entries)

    def clear(self) -> None:
        """Drop all entries."""
        self.forget_after_write(Effect.DELETE)
