"""Properties of requests to servers: for any answers a client stops, pauses, and never repeats a deletion."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stele.client.cache import AnswerCache
from stele.client.exchange import (
    TRANSIENT,
    Outcome,
    Pause,
    Reply,
    Retry,
    Send,
    ServerOrder,
    TransportFailure,
    answer_request,
)
from stele.client.request import CachePolicy, Effect, Request
from stele.errors import SteleError

CAP = 5.0

LOST = st.builds(TransportFailure, st.just("trouble"), st.booleans())
REFUSED = st.builds(
    Reply,
    st.sampled_from([302, 400, 404, 409, 422, 429, 500, 501, 503, 504]),
    st.sampled_from([{}, {"retry-after": "3"}, {"retry-after": "99999"}, {"retry-after": "never"}]),
    st.sampled_from([b"", b"{}", b'{"error_code": 40401}', b"<html>", b"\xff"]),
)
GOOD = st.just(Reply(200, {}, b"good"))
OUTCOMES = st.lists(LOST | REFUSED | GOOD, min_size=40, max_size=40)


def request(effect: Effect) -> Request[bytes]:
    """A request whose answer is its body."""
    return Request("DELETE" if effect is Effect.DELETE else "GET", "/x", lambda body: body, effect=effect)


@given(OUTCOMES, st.sampled_from(Effect), st.integers(1, 3), st.integers(1, 4))
def test_every_conversation_keeps_the_rules(outcomes: list[Outcome], effect: Effect, servers: int, rounds: int) -> None:
    """Attempts and pauses are bounded, the last answer decides on success, and no deletion is repeated in doubt."""
    nodes = ServerOrder([f"http://{number}" for number in range(servers)])
    steps = answer_request(request(effect), nodes, Retry(rounds=rounds, base=1.0, cap=CAP), AnswerCache())
    sent: list[Outcome] = []
    pauses: list[float] = []
    came: Outcome = None
    result: bytes | None = None
    try:
        while True:
            step = steps.send(came)
            if isinstance(step, Pause):
                pauses.append(step.seconds)
                came = None
            else:
                assert isinstance(step, Send)
                came = outcomes[len(sent)]
                sent.append(came)
    except StopIteration as end:
        result = end.value
    except SteleError:
        pass  # every refusal and every transport failure raises a SteleError
    assert 1 <= len(sent) <= servers * rounds
    assert len(pauses) < rounds
    assert all(0 <= seconds <= CAP for seconds in pauses)
    assert result == (b"good" if isinstance(sent[-1], Reply) and sent[-1].status == 200 else None)
    assert all(may_follow(outcome, effect) for outcome in sent[:-1])


def may_follow(outcome: Outcome, effect: Effect) -> bool:
    """Return whether the request may be sent again after this outcome."""
    if isinstance(outcome, TransportFailure):
        return effect is not Effect.DELETE or not outcome.reached
    assert isinstance(outcome, Reply)
    return outcome.status in (TRANSIENT if effect is not Effect.DELETE else {429})


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["get", "put", "write", "delete"]))), st.integers(1, 4))
def test_a_cache_never_invents_or_outgrows(steps: list[tuple[int, str]], capacity: int) -> None:
    """A cache returns the last value stored under a key since its last deletion, or nothing."""
    cache = AnswerCache(capacity)
    model: dict[int, int] = {}
    for number, (key, what) in enumerate(steps):
        match what:
            case "put":
                cache.put(key, number, CachePolicy.IMMUTABLE, cache.epoch)
                model[key] = number
            case "write":
                cache.forget_after_write(Effect.WRITE)
            case "delete":
                cache.forget_after_write(Effect.DELETE)
                model.clear()
            case _:
                answer = cache.get(key)
                assert answer == model.get(key) or not isinstance(answer, int)
    assert sum(isinstance(cache.get(key), int) for key in range(6)) <= capacity
