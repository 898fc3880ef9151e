"""A cache with a limit in bytes drops the least recently used values."""

from __future__ import annotations

from stele.service.sized_cache import SizedCache


def test_the_least_recently_used_go() -> None:
    """Values are kept up to the limit; reading one counts as using it."""
    cache = SizedCache[str, str](30)
    for name in "abc":
        cache.put(name, name.upper(), 10)
    assert cache.get("a") == "A"
    cache.put("d", "D", 15)
    assert [cache.get(name) for name in "abcd"] == ["A", None, None, "D"]
    assert (len(cache), cache.bytes) == (2, 25)


def test_a_value_that_is_put_again_counts_once() -> None:
    """The newer value replaces the older one, with its own size."""
    cache = SizedCache[str, int](30)
    cache.put("a", 1, 10)
    cache.put("a", 2, 20)
    assert (cache.get("a"), len(cache), cache.bytes) == (2, 1, 20)


def test_what_is_larger_than_the_cache_is_not_kept() -> None:
    """A value larger than the cache is not cached, and displaces nothing."""
    cache = SizedCache[str, int](30)
    cache.put("a", 1, 30)
    cache.put("b", 2, 31)
    assert (cache.get("a"), cache.get("b"), cache.bytes) == (1, None, 30)
