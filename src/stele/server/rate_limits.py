"""How often one caller may ask: rates per principal, or per address of callers that are nobody in particular.

Each caller has a bucket that takes a burst of requests and drains at the rate of the settings. One time is kept of it:
when it will be empty. Where there are very many callers, those who have not asked for longest are forgotten, as if they
had not asked at all. Each worker process counts by itself.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from enum import StrEnum
from functools import lru_cache
from ipaddress import AddressValueError, IPv6Address
from typing import Final

import msgspec
from cachetools import LRUCache

from stele.errors import TooManyRequests
from stele.service.access import Principal

_SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_MOST_CALLERS: Final = 20_000
_IPV6_NETWORK_BITS: Final = 64
"""A network of that length is one caller: every host has that many addresses for itself."""


class RateKind(StrEnum):
    """Which of the rates a request passed; the labels of a metric."""

    REQUESTS = "requests"
    CHANGES = "changes"


class Rate(msgspec.Struct, frozen=True):
    """Requests per second in the long run, and how many may come at once; no limit where the first is 0."""

    per_second: float
    burst: int


class RateLimiter:
    """Counts the requests of each caller.

    Args:
        requests: The rate of all requests of a caller.
        changes: The rate of those that may change something: all methods but GET, HEAD and OPTIONS.
        clock: Seconds that only grow.
    """

    def __init__(self, requests: Rate, changes: Rate, clock: Callable[[], float] = time.monotonic) -> None:
        self._requests = _Buckets(requests) if requests.per_second else None
        self._changes = _Buckets(changes) if changes.per_second else None
        self._clock = clock

    @property
    def is_limiting(self) -> bool:
        """Whether there is any limit."""
        return self._requests is not None or self._changes is not None

    def find_refusal(self, principal: Principal, address: str, method: str) -> TooManyRequests | None:
        """Count a request, or return why it is refused; a refused one counts for nothing.

        Args:
            principal: Who asks.
            address: Where the request came from; counts for callers without a name.
            method: Of the request.
        """
        caller = f"user:{principal.name}" if principal.name else _find_network(address)
        now = self._clock()
        limited = [(RateKind.REQUESTS, self._requests)]
        if method not in _SAFE_METHODS:
            limited.append((RateKind.CHANGES, self._changes))
        for kind, buckets in limited:
            seconds = buckets.find_wait(caller, now) if buckets is not None else 0.0
            if buckets is not None and seconds > 0:
                most = f"{buckets.rate.per_second:g} {kind} per second ({kind}_per_second)"
                return TooManyRequests(f"one caller may send {most}", seconds=max(1, math.ceil(seconds)), rate=kind)
        for _, buckets in limited:
            if buckets is not None:
                buckets.add_request(caller, now)
        return None


class _Buckets:
    """By caller the time at which its bucket is empty again."""

    def __init__(self, rate: Rate) -> None:
        self.rate = rate
        self._seconds = 1 / rate.per_second
        self._full = rate.burst * self._seconds
        self._empty_at: LRUCache[str, float] = LRUCache(_MOST_CALLERS)

    def find_wait(self, caller: str, now: float) -> float:
        """Return after how many seconds the bucket has room for one more request, 0 if it has some."""
        left = self._empty_at.get(caller, now) - now
        return max(0.0, left + self._seconds - self._full)

    def add_request(self, caller: str, now: float) -> None:
        self._empty_at[caller] = max(self._empty_at.get(caller, now), now) + self._seconds


@lru_cache(4096)
def _find_network(address: str) -> str:
    """Return what stands for a client's address: itself, or the network that an IPv6 host has for itself."""
    try:
        number = int(IPv6Address(address.partition("%")[0]))
    except AddressValueError:
        return address
    mapped = IPv6Address(number).ipv4_mapped
    return str(mapped) if mapped is not None else f"{number >> _IPV6_NETWORK_BITS:x}::"
