"""What a client remembers, and for how long."""

from __future__ import annotations

from threading import Thread

import pytest

from stele.client.cache import MISSING, AnswerCache
from stele.client.request import CachePolicy, Effect


class Clock:
    """A clock that a test moves."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    """A clock at zero."""
    return Clock()


@pytest.fixture
def cache(clock: Clock) -> AnswerCache:
    """Capacity of two answers, ten seconds for changeable ones."""
    return AnswerCache(capacity=2, ttl=10, clock=clock)


def test_changeable_answers_end_with_their_time(cache: AnswerCache, clock: Clock) -> None:
    """`latest` is cached for the time to live only; ids are cached for ever."""
    cache.put("latest", 1, CachePolicy.TTL, cache.epoch)
    cache.put("id", 2, CachePolicy.IMMUTABLE, cache.epoch)
    clock.now = 9.9
    assert cache.get("latest") == 1
    clock.now = 10
    assert cache.get("latest") is MISSING
    clock.now = 1e9
    assert cache.get("id") == 2


def test_none_is_an_answer(cache: AnswerCache) -> None:
    """A known None is not a miss."""
    cache.put("k", None, CachePolicy.IMMUTABLE, cache.epoch)
    assert cache.get("k") is None


def test_answers_without_life_are_not_kept(cache: AnswerCache, clock: Clock) -> None:
    """Lists are never cached. A time to live of zero disables caching of all changeable answers."""
    cache.put("list", 1, CachePolicy.NEVER, cache.epoch)
    assert cache.get("list") is MISSING
    off = AnswerCache(ttl=0, clock=clock)
    off.put("latest", 1, CachePolicy.TTL, off.epoch)
    assert off.get("latest") is MISSING


def test_longest_unused_goes_first(cache: AnswerCache) -> None:
    """A full cache drops the least recently used answer."""
    for key in ("a", "b"):
        cache.put(key, key, CachePolicy.IMMUTABLE, cache.epoch)
    cache.get("a")
    cache.put("c", "c", CachePolicy.IMMUTABLE, cache.epoch)
    assert [cache.get(key) for key in "abc"] == ["a", MISSING, "c"]


def test_own_writes_void_what_they_may_have_changed(cache: AnswerCache) -> None:
    """Registering drops `latest`. Deleting drops numbered versions too, because purged numbers may be reused."""
    cache.put("latest", 1, CachePolicy.TTL, cache.epoch)
    cache.put("id", 2, CachePolicy.IMMUTABLE, cache.epoch)
    cache.forget_after_write(Effect.READ)
    assert cache.get("latest") == 1
    cache.forget_after_write(Effect.WRITE)
    assert (cache.get("latest"), cache.get("id")) == (MISSING, 2)
    cache.forget_after_write(Effect.DELETE)
    assert cache.get("id") is MISSING


def test_answers_asked_for_before_a_write_are_not_kept(cache: AnswerCache) -> None:
    """A read that overlaps a write of the same client may be stale, so it is not cached."""
    epoch = cache.epoch
    cache.forget_after_write(Effect.WRITE)
    cache.put("latest", 1, CachePolicy.TTL, epoch)
    assert cache.get("latest") is MISSING


def test_threads_share_one_cache() -> None:
    """Concurrent reads, writes and evictions neither fail nor exceed the capacity."""
    cache = AnswerCache(capacity=50)
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            for number in range(3000):
                key = (seed * number) % 97
                cache.put(key, key, CachePolicy.IMMUTABLE, cache.epoch)
                assert cache.get(key) in (MISSING, key)
                if number % 500 == 0:
                    cache.forget_after_write(Effect.WRITE)
        except BaseException as error:  # passed to the main thread
            failures.append(error)

    threads = [Thread(target=work, args=(seed,)) for seed in (3, 5, 7, 11)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert len(cache._answers) <= 50
