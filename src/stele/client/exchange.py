"""How one request gets its answer: which server, how often, after which pause. A generator without I/O.

`answer` yields what to do (`Send` or `Pause`) and is sent what came of it, so the sync and the async client differ only
in the two functions that really send and sleep, and a test needs neither network nor clock.

What may be sent again: anything a server never saw, anything refused by 429, and every read and write that failed in an
unclear way, because writing the same schema or setting twice is the same as once. A deletion is not: its second sending
would delete another `latest`, or answer "not found" for a deletion that worked. So it is sent again only in the first
two cases, and otherwise the error says that its outcome is unknown.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from threading import Lock
from typing import NamedTuple, TypeVar

import msgspec
from tenacity import DoSleep, RetryCallState, Retrying, retry_if_result, stop_after_attempt

from stele.client.cache import MISSING, AnswerCache
from stele.client.errors import ResponseError, read_failure, response_error
from stele.client.request import Effect, Request
from stele.errors import RegistryUnreachable

T = TypeVar("T")

TRANSIENT = frozenset({429, 500, 502, 503, 504})
"""Statuses another try, or another server, may mend."""
_DOUBLINGS = 30  # more make no longer pause, only overflow
_LONGEST_WAIT = 10**9  # seconds; larger numbers are no floats
_UNREADABLE = 50005  # the code vendor clients give an answer they cannot parse


class Send(NamedTuple):
    """Do: send the request to the server; base has no trailing slash."""

    base: str
    method: str
    target: str
    body: bytes | None
    media: str


class Pause(NamedTuple):
    """Do: sleep."""

    seconds: float


class Reply(NamedTuple):
    """Came of a `Send`: an answer, good or bad. Header names are lower-case.

    fault  why the body could not be read to its end, '' if it could
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    fault: str = ""


class TransportFailure(NamedTuple):
    """Came of a `Send`: no answer. reached is False when the server certainly never saw the request."""

    why: str
    reached: bool


Step = Send | Pause
Outcome = Reply | TransportFailure | None


@dataclass(frozen=True, slots=True)
class Retry:
    """How patient a client is.

    rounds   times the whole list of servers is tried, at least 1
    base     seconds of the first pause at most; doubles with each round
    cap      longest pause in seconds, also when a server's Retry-After asks for more
    jitter   a number between 0 and 1, drawn for each pause: clients of one outage do not come back together
    """

    rounds: int = 4
    base: float = 0.2
    cap: float = 20.0
    jitter: Callable[[], float] = random.random

    def pause(self, number: int, retry_after: float) -> float:
        """Seconds before round number + 1; retry_after is what a server wanted, 0 when none did."""
        return min(self.cap, max(retry_after, self.jitter() * self.base * 2.0 ** min(number, _DOUBLINGS)))


class ServerOrder:
    """The servers of a registry: the one that answered last goes first, those that failed lately go last.

    Staying with one server reads one's own writes even where others lag behind.
    """

    def __init__(
        self, bases: Sequence[str], *, cool_down: float = 30.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._order = list(bases)
        self._resting: dict[str, float] = {}
        self._cool_down = cool_down
        self._clock = clock
        self._lock = Lock()

    def order(self) -> list[str]:
        """All servers, best first."""
        with self._lock:
            now = self._clock()
            return sorted(self._order, key=lambda base: max(self._resting.get(base, 0.0) - now, 0.0))

    def mark_healthy(self, base: str) -> None:
        """The server is well; it is asked first from now on."""
        with self._lock:
            self._resting.pop(base, None)
            if self._order[0] != base:
                self._order.remove(base)
                self._order.insert(0, base)

    def mark_failed(self, base: str) -> None:
        """The server is not well; others are asked first for a while."""
        with self._lock:
            self._resting[base] = self._clock() + self._cool_down


def answer_request(
    request: Request[T], nodes: ServerOrder, retry: Retry, cache: AnswerCache
) -> Generator[Step, Outcome, T]:
    """The result of a request, from the cache or a server. Raises `ResponseError` and `RegistryUnreachable`."""
    known = cache.get(request.key)
    if known is not MISSING:
        result: T = known
        return result
    epoch = cache.epoch
    try:
        result = yield from _send_with_retries(request, nodes, retry)
    finally:
        cache.forget_after_write(request.effect)  # also after an error: the write may have happened
    cache.put(request.key, result, request.cache_policy, epoch)
    return result


class _Round(NamedTuple):
    """What came of asking the servers in turn: an answer and who gave it, or how long they want to be left alone."""

    answer: tuple[str, Reply] | None = None
    refusal: ResponseError | None = None
    retry_after: float = 0.0


def _send_with_retries(request: Request[T], nodes: ServerOrder, retry: Retry) -> Generator[Step, Outcome, T]:
    """Ask all servers, round after round. tenacity decides whether to go on and how long to pause; it never sleeps."""
    retrying = Retrying(
        stop=stop_after_attempt(retry.rounds),
        wait=lambda state: retry.pause(state.attempt_number - 1, _last_round(state).retry_after),
        retry=retry_if_result(lambda done: done.answer is None),
        retry_error_callback=_last_round,
    )
    retrying.begin()
    state = RetryCallState(retrying, None, (), {})
    refusal: ResponseError | None = None
    troubles: dict[str, str] = {}
    while not isinstance(action := retrying.iter(retry_state=state), _Round):
        if isinstance(action, DoSleep):
            state.prepare_for_next_attempt()
            yield Pause(float(action))
        else:
            done = yield from _ask_servers(request, nodes, troubles)
            refusal = done.refusal or refusal
            state.set_result(done)
    if action.answer is None:
        raise refusal or RegistryUnreachable(_unreachable_message(request, troubles))
    return _decode_reply(request, *action.answer)


def _last_round(state: RetryCallState) -> _Round:
    assert state.outcome is not None
    done: _Round = state.outcome.result()
    return done


def _ask_servers(request: Request[T], nodes: ServerOrder, troubles: dict[str, str]) -> Generator[Step, Outcome, _Round]:
    """Ask one server after the other until one answers. troubles takes why others did not.

    Raises `RegistryUnreachable` and `ResponseError` for a deletion that must not be sent again.
    """
    done = _Round()
    for base in nodes.order():
        outcome = yield Send(base, request.method, request.target, request.body, request.media)
        if isinstance(outcome, TransportFailure):
            nodes.mark_failed(base)
            troubles[base] = outcome.why
            if outcome.reached and request.effect is Effect.DELETE:
                message = _unreachable_message(request, troubles)
                raise RegistryUnreachable(f"{message}; whether it was deleted is unknown")
            continue
        assert isinstance(outcome, Reply)
        if outcome.status not in TRANSIENT:
            nodes.mark_healthy(base)
            return _Round((base, outcome))
        nodes.mark_failed(base)
        refusal = _refusal_error(request, base, outcome)
        if request.effect is Effect.DELETE and outcome.status != HTTPStatus.TOO_MANY_REQUESTS:
            raise refusal
        done = _Round(None, refusal, max(done.retry_after, refusal.failure.retry_after or 0.0))
    return done


def _decode_reply(request: Request[T], base: str, reply: Reply) -> T:
    if not HTTPStatus.OK <= reply.status < HTTPStatus.MULTIPLE_CHOICES:
        raise _refusal_error(request, base, reply)
    if reply.fault:
        raise _unreadable_error(request, base, reply, reply.fault)
    try:
        return request.read(reply.body)
    except (msgspec.MsgspecError, LookupError, UnicodeDecodeError) as error:
        raise _unreadable_error(request, base, reply, str(error)) from error


def _unreadable_error(request: Request[T], base: str, reply: Reply, why: str) -> ResponseError:
    failure = _refusal_error(request, base, reply).failure
    message = f"the answer is not what the API promises: {why}"
    return response_error(msgspec.structs.replace(failure, error_code=_UNREADABLE, message=message))


def _refusal_error(request: Request[T], base: str, reply: Reply) -> ResponseError:
    return response_error(
        read_failure(
            reply.body,
            method=request.method,
            url=base + request.target,
            status=reply.status,
            subject=request.subject,
            version=request.version,
            retry_after=parse_retry_after(reply.headers.get("retry-after", "")),
        )
    )


def _unreachable_message(request: Request[T], troubles: Mapping[str, str]) -> str:
    reasons = "; ".join(f"{base}: {why}" for base, why in troubles.items())
    return f"no registry answered {request.method} {request.target} ({reasons})"


def parse_retry_after(value: str) -> float | None:
    """Seconds a Retry-After header asks for: a number, or a date of which the distance to now counts; else None."""
    try:
        return float(min(max(int(value), 0), _LONGEST_WAIT))
    except ValueError:
        pass
    try:
        then = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    return max((then - datetime.now(UTC)).total_seconds(), 0.0) if then.tzinfo else None
