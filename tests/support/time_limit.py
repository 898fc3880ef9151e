"""A limit on the time that a test's work may take, which slow and busy machines keep too."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

_COUNTED: Final = 1_000_000
_USUAL_SECONDS: Final = 0.025
"""What counting so far takes on the machine that limits are stated for."""


@contextmanager
def limit_time(seconds: float, clock: Callable[[], float] = time.process_time) -> Iterator[None]:
    """Fail when a block takes longer.

    A machine that counts more slowly in that moment gets as much longer. What the process held before is left out
    of searches for garbage, since it is none of the block's work.

    Args:
        seconds: The limit on a machine that counts to a million in 25 ms.
        clock: `time.monotonic` where other processes or pauses have a share in the work.
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
