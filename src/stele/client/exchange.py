"""Sends one request: chooses the server, retries, and pauses between retries. A generator without I/O.

`answer_request` yields the next step (`Send` or `Pause`) and receives its outcome. So the blocking and the async
client differ only in the two functions that send and sleep, and a test needs neither network nor clock.

A request is sent again when no server received it, or when the server refused it with status 429. Reads and writes are
also sent again after any unclear failure, because writing the same schema or setting twice has the effect of one write.
A deletion is not: a second deletion would delete another `latest`, or answer "not found" for a deletion that worked.
After an unclear failure of a deletion, the error reports that its outcome is unknown.
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
"""Statuses after which another try, or another server, may succeed."""
_DOUBLINGS = 30  # more would not lengthen the pause, only overflow
_LONGEST_WAIT = 10**9  # seconds; larger numbers may not be floats
_UNREADABLE = 50005  # the vendor clients' code for a response they cannot parse


class Send(NamedTuple):
    """Step: send the request to this server. `base` has no trailing slash."""

    base: str
    method: str
    target: str
    body: bytes | None
    media: str


class Pause(NamedTuple):
    """Step: sleep."""

    seconds: float


class Reply(NamedTuple):
    """Outcome of a `Send`: a response with any status. Header names are lower-case.

    fault  why the body could not be read to its end, '' if it could
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    fault: str = ""


class TransportFailure(NamedTuple):
    """Outcome of a `Send` without a response. `reached` is False when no server can have received the request."""

    why: str
    reached: bool


Step = Send | Pause
Outcome = Reply | TransportFailure | None


@dataclass(frozen=True, slots=True)
class Retry:
    """How often and after which pauses a client retries.

    rounds   times the whole list of servers is tried, at least 1
    base     upper limit of the first pause in seconds; doubles with each round
    cap      longest pause in seconds, also when a server's Retry-After asks for more
    jitter   returns a random number between 0 and 1 for each pause, so that clients do not retry at the same time
    """

    rounds: int = 4
    base: float = 0.2
    cap: float = 20.0
    jitter: Callable[[], float] = random.random

    def pause(self, number: int, retry_after: float) -> float:
        """Return the seconds to wait after round `number`, counted from 0.

        `retry_after` is the seconds that a server asked for, 0 for none.
        """
        return min(self.cap, max(retry_after, self.jitter() * self.base * 2.0 ** min(number, _DOUBLINGS)))


class ServerOrder:
    """The servers of a registry in the order to try them.

    The server that answered last comes first; servers that failed recently come last. A client that stays with one
    server reads its own writes even when other servers lag behind.
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
        """Return all servers, best first."""
        with self._lock:
            now = self._clock()
            return sorted(self._order, key=lambda base: max(self._resting.get(base, 0.0) - now, 0.0))

    def mark_healthy(self, base: str) -> None:
        """Record that the server answered. It is tried first from now on."""
        with self._lock:
            self._resting.pop(base, None)
            if self._order[0] != base:
                self._order.remove(base)
                self._order.insert(0, base)

    def mark_failed(self, base: str) -> None:
        """Record that the server failed. Other servers are tried first during the cool-down."""
        with self._lock:
            self._resting[base] = self._clock() + self._cool_down


def answer_request(
    request: Request[T], nodes: ServerOrder, retry: Retry, cache: AnswerCache
) -> Generator[Step, Outcome, T]:
    """Return the result of a request, from the cache or a server. Raises `ResponseError` and `RegistryUnreachable`."""
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
    """Outcome of trying each server once.

    answer       the address of the server that answered, and its response; None for none
    refusal      the last error response, if any
    retry_after  the longest wait in seconds that a server asked for
    """

    answer: tuple[str, Reply] | None = None
    refusal: ResponseError | None = None
    retry_after: float = 0.0


def _send_with_retries(request: Request[T], nodes: ServerOrder, retry: Retry) -> Generator[Step, Outcome, T]:
    """Try all servers, round after round. tenacity decides about retries and the length of pauses; it never sleeps."""
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
    """Try one server after the other until one answers. Failures are added to `troubles`, by server.

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
    """Return the seconds that a Retry-After header asks for, or None for an invalid value.

    The value is a number of seconds, or a date from which the current time is subtracted.
    """
    try:
        return float(min(max(int(value), 0), _LONGEST_WAIT))
    except ValueError:
        pass
    try:
        then = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    return max((then - datetime.now(UTC)).total_seconds(), 0.0) if then.tzinfo else None
