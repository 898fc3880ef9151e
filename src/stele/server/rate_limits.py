"""Rate limits per principal, or per address of anonymous callers.

Each caller has a bucket that holds a burst of requests and drains at the rate in the settings. Only the time when it
will be empty is stored. The times are in memory that the workers of a server share, so a rate applies to the server as
a whole. With very many callers, those whose buckets are empty first are dropped.
"""

from __future__ import annotations

import math
import mmap
import time
from collections.abc import Callable
from enum import StrEnum
from functools import lru_cache
from hashlib import blake2b
from ipaddress import AddressValueError, IPv6Address
from secrets import token_bytes
from typing import Final

import msgspec

from stele.errors import TooManyRequests
from stele.service.access import Principal

_SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_SETS: Final = 4096
_ROWS: Final = 8
"""Callers in one set. When a set is full, the caller whose bucket is empty first is dropped."""
_ROW_BYTES: Final = 16
_IPV6_NETWORK_BITS: Final = 64
"""Prefix length of an IPv6 network that counts as one caller, since each host has all addresses of such a network."""


class RateKind(StrEnum):
    """The rate limit that a request exceeded; the labels of a metric."""

    REQUESTS = "requests"
    CHANGES = "changes"


class Rate(msgspec.Struct, frozen=True):
    """Requests per second on average, and the size of a burst. per_second 0 means no limit."""

    per_second: float
    burst: int


class BucketTimes:
    """Times at which buckets are empty, by caller, in memory that forked processes share.

    A row is eight bytes of a keyed hash of the caller and a time of `time.monotonic`, which is the same in all
    processes of a machine. There is no lock: when two processes count at the same instant, one of the two requests may
    be lost.
    """

    def __init__(self) -> None:
        memory = memoryview(mmap.mmap(-1, _SETS * _ROWS * _ROW_BYTES))
        self._callers = memory[: _SETS * _ROWS * 8].cast("Q")
        self._times = memory[_SETS * _ROWS * 8 :].cast("d")
        self._key = token_bytes(32)

    def find_row(self, caller: str) -> tuple[int, int]:
        """Return the row of a caller, or the row that it replaces, and the hash that identifies the caller."""
        digest = blake2b(caller.encode("utf-8", "surrogatepass"), key=self._key, digest_size=8).digest()
        mark = int.from_bytes(digest, "big") or 1
        first = mark % _SETS * _ROWS
        rows = range(first, first + _ROWS)
        for row in rows:
            if self._callers[row] == mark:
                return row, mark
        return min(rows, key=self._times.__getitem__), mark

    def get_time(self, row: int, mark: int) -> float:
        """Return when the bucket of the caller in that row is empty; 0 if it is not known."""
        return self._times[row] if self._callers[row] == mark else 0.0

    def set_time(self, row: int, mark: int, time: float) -> None:
        """Store when the bucket of a caller is empty."""
        self._times[row] = time
        self._callers[row] = mark


_shared_times: dict[RateKind, BucketTimes] = {}


def share_rates() -> None:
    """Make this process and those that are forked from it later count callers together."""
    _shared_times.update({kind: BucketTimes() for kind in RateKind})


class RateLimiter:
    """Counts the requests of each caller, together with other processes after `share_rates`.

    Args:
        requests: The rate of all requests of a caller.
        changes: The rate of requests that may change something: all methods but GET, HEAD and OPTIONS.
        clock: Returns a monotonic time in seconds.
    """

    def __init__(self, requests: Rate, changes: Rate, clock: Callable[[], float] = time.monotonic) -> None:
        self._requests = _Buckets(requests, RateKind.REQUESTS) if requests.per_second else None
        self._changes = _Buckets(changes, RateKind.CHANGES) if changes.per_second else None
        self._clock = clock

    @property
    def is_limiting(self) -> bool:
        """Whether there is any limit."""
        return self._requests is not None or self._changes is not None

    def find_refusal(self, principal: Principal, address: str, method: str) -> TooManyRequests | None:
        """Count a request, or return the error if it exceeds a rate. A refused request is not counted.

        Args:
            principal: The caller.
            address: Address the request came from; used for callers without a name.
            method: Method of the request.
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
    """The buckets of one rate: for each caller the time at which its bucket is empty."""

    def __init__(self, rate: Rate, kind: RateKind) -> None:
        self.rate = rate
        self._seconds = 1 / rate.per_second
        self._full = rate.burst * self._seconds
        self._times = _shared_times.get(kind) or BucketTimes()

    def find_wait(self, caller: str, now: float) -> float:
        """Return the seconds until the bucket has room for one more request, 0 if it has room now."""
        left = max(0.0, self._times.get_time(*self._times.find_row(caller)) - now)
        return max(0.0, left + self._seconds - self._full)

    def add_request(self, caller: str, now: float) -> None:
        row, mark = self._times.find_row(caller)
        self._times.set_time(row, mark, max(self._times.get_time(row, mark), now) + self._seconds)


@lru_cache(4096)
def _find_network(address: str) -> str:
    """Return the address itself, or for IPv6 the network that one host has for itself."""
    try:
        number = int(IPv6Address(address.partition("%")[0]))
    except AddressValueError:
        return address
    mapped = IPv6Address(number).ipv4_mapped
    return str(mapped) if mapped is not None else f"{number >> _IPV6_NETWORK_BITS:x}::"
