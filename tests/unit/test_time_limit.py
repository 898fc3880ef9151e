"""Time limits fail slow blocks, and grow on a slow machine."""

from __future__ import annotations

import itertools

import pytest
from tests.support import time_limit
from tests.support.time_limit import limit_time


def test_what_takes_longer_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """A block fails over its limit; on a machine three times slower, over three times the limit."""
    monkeypatch.setattr(time_limit, "_count_seconds", lambda clock: 0.001)
    with limit_time(2, itertools.count().__next__):
        pass
    with (
        pytest.raises(AssertionError, match=r"1\.0 s, and the limit is 0\.5"),
        limit_time(0.5, itertools.count().__next__),
    ):
        pass
    monkeypatch.setattr(time_limit, "_count_seconds", lambda clock: 0.075)
    with limit_time(0.5, itertools.count().__next__):
        pass
    with pytest.raises(AssertionError, match=r"the limit is 0\.3"), limit_time(0.1, itertools.count().__next__):
        pass


def test_errors_of_the_block_stay() -> None:
    """An exception of the block is raised, however long the block took."""
    with pytest.raises(KeyError), limit_time(0, itertools.count().__next__):
        raise KeyError
