"""Statistics of the delivery of events by one process, for metrics."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final

from stele.core.state import State
from stele.service.delivery import status as store
from stele.service.delivery.status import EXPORTERS, SUBSCRIPTIONS, DeliveryState

MOST_FOLLOWERS: Final = 100
"""Number of followers whose lag is reported separately; the others share one name."""
OTHERS: Final = "other"

CountAttempt = Callable[[str, str, float], None]
"""Takes the protocol of an attempt, its result, and the seconds since the change."""


def name_kind(status_collection: str) -> str:
    """Return the kind of the followers whose statuses are in a collection: `subscriptions`, `exporters`."""
    return status_collection.partition(".")[0]


class DeliveryStats:
    """Counts attempts, and records since when each follower waits.

    Args:
        count: Called with every attempt.
    """

    def __init__(self, count: CountAttempt = lambda protocol, code, seconds: None) -> None:
        self.count_attempt = count
        self._waiting: dict[tuple[str, str], int | None] = {}

    def note_waiting(self, kind: str, name: str, since: int | None) -> None:
        """Record the time of the oldest change that a follower waits for.

        `since` is in milliseconds since 1970; None: it waits for none.
        """
        self._waiting[kind, name] = since

    def forget_follower(self, kind: str, name: str) -> None:
        """Remove a follower that was deleted or stopped."""
        self._waiting.pop((kind, name), None)

    def list_lags(self) -> Mapping[tuple[str, str], float]:
        """Return how many seconds each follower is behind, by kind and name. A shared name has the longest lag."""
        now = time.time() * 1000
        lags: dict[tuple[str, str], float] = {}
        for index, ((kind, name), since) in enumerate(sorted(self._waiting.items())):
            key = (kind, name if index < MOST_FOLLOWERS else OTHERS)
            lag = 0.0 if since is None else max(now - since, 0) / 1000
            lags[key] = max(lag, lags.get(key, 0.0))
        return lags


def count_paused(state: State) -> Mapping[str, int]:
    """Return how many followers are paused, by kind."""
    counts: Counter[str] = Counter()
    for collection in (SUBSCRIPTIONS, EXPORTERS):
        documents = state.collections.get(collection)
        kind = name_kind(collection)
        counts[kind] = 0
        for (name,) in documents.items if documents is not None else ():
            status = store.find_status(state, collection, name)
            counts[kind] += status is not None and status.state is DeliveryState.PAUSED
    return counts
