"""The order of servers and the arithmetic of pauses."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from stele.client.cache import AnswerCache
from stele.client.exchange import Reply, Retry, ServerOrder, TransportFailure, answer_request, parse_retry_after
from stele.client.request import Request


class Clock:
    """A clock that a test moves."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_failed_servers_go_last_and_come_back() -> None:
    """A failed server comes last, the one that failed first before others, and is equal again after its cool-down."""
    clock = Clock()
    nodes = ServerOrder(["a", "b", "c"], cool_down=30, clock=clock)
    nodes.mark_failed("a")
    clock.now = 10
    nodes.mark_failed("b")
    assert nodes.order() == ["c", "a", "b"]
    clock.now = 30
    assert nodes.order() == ["a", "c", "b"]
    nodes.mark_healthy("b")
    assert nodes.order() == ["b", "a", "c"]


def test_who_answered_is_asked_first_from_then_on() -> None:
    """A client stays with the server that answered, even after the first one's cool-down."""
    clock = Clock()
    nodes = ServerOrder(["a", "b"], cool_down=30, clock=clock)
    request = Request("GET", "/x", lambda body: body)
    steps = answer_request(request, nodes, Retry(), AnswerCache())
    next(steps)
    steps.send(TransportFailure("refused", reached=False))
    with pytest.raises(StopIteration):
        steps.send(Reply(200, {}, b""))
    clock.now = 100
    assert nodes.order() == ["b", "a"]


def test_pauses_double_up_to_the_cap() -> None:
    """Pauses grow exponentially up to the cap; a million rounds do not overflow."""
    retry = Retry(base=1, cap=5, jitter=lambda: 1.0)
    assert [retry.pause(number, 0) for number in (0, 1, 2, 3, 10**6)] == [1, 2, 4, 5, 5]


@pytest.mark.parametrize(
    ("value", "seconds"), [("7", 7.0), ("0", 0.0), ("-3", 0.0), ("", None), ("soon", None), ("nan", None)]
)
def test_retry_after_numbers(value: str, seconds: float | None) -> None:
    """Whole seconds are read, and other texts are ignored."""
    assert parse_retry_after(value) == seconds


def test_retry_after_dates() -> None:
    """A date is relative to the current time, and a past date asks for no pause."""
    now = datetime.now(UTC)
    seconds = parse_retry_after(format_datetime(now + timedelta(seconds=60), usegmt=True))
    assert seconds is not None
    assert 59 - (datetime.now(UTC) - now).total_seconds() <= seconds <= 60
    assert parse_retry_after(format_datetime(now - timedelta(seconds=60), usegmt=True)) == 0
