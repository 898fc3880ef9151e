"""A limit on the time that a test's work may take, scaled for slow and busy machines."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

_COUNTED: Final = 1_000_000
_USUAL_SECONDS: Final = 0.025
"""Seconds that the count to `_COUNTED` takes on the machine that limits are stated for."""


@contextmanager
def limit_time(seconds: float, clock: Callable[[], float] = time.process_time) -> Iterator[None]:
    """Raise AssertionError when the block takes longer than the limit.

    On a machine that counts more slowly at that moment, the limit grows in proportion. Objects that existed before the
    block are excluded from garbage collection, because they are not part of its work.

    Args:
        seconds: The limit on a machine that counts to a million in 25 ms.
        clock: Clock to measure with. Use `time.monotonic` where other processes or pauses are part of the work.
    """
    gc.freeze()
    start = clock()
    try:
        yield
        spent = clock() - start
    finally:
        gc.unfreeze()
    if spent > seconds:
        limit = seconds * max(1.0, _count_seconds(clock) / _USUAL_SECONDS)
        assert spent <= limit, f"{spent:.1f} s, and the limit is {limit:.1f}"


def _count_seconds(clock: Callable[[], float]) -> float:
    start = clock()
    for _ in range(_COUNTED):
        pass
    return clock() - start
