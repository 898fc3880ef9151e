"""A cache of the most recently used values with a limit in bytes, safe to use from several threads."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class SizedCache(Generic[K, V]):
    """Values by key. Beyond max_bytes the least recently used ones are dropped.

    Keys of schemas are long tuples, whose hash is computed again each time. This cache computes it as seldom as
    possible. A put in `cachetools.LRUCache` at its limit takes ten hashes and four times as long.

    Args:
        max_bytes: Limit of the total size of the values, in bytes.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._values: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._lock = threading.Lock()
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: K) -> V | None:
        """Return a value, None if it is not there."""
        with self._lock:
            known = self._values.get(key)
            if known is None:
                return None
            self._values.move_to_end(key)
            return known[0]

    def put(self, key: K, value: V, size: int) -> None:
        """Cache a value of a size in bytes, unless it alone is larger than the cache."""
        if size > self._max_bytes:
            return
        with self._lock:
            before = self._values.pop(key, None)
            self._values[key] = value, size
            self.bytes += size if before is None else size - before[1]
            while self.bytes > self._max_bytes:
                self.bytes -= self._values.popitem(last=False)[1][1]
