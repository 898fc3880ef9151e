"""A cache of responses, in front of all dialects.

A response is a function of its request (`make_key`) and of the part of the log it depends on
(`apis.http.dependencies`). It is sent again only when memory is certainly up to date and nothing it depends on has
changed since: then the dialect would return the same. A request with other headers than those in the key gets the same
response, so every header that an endpoint reads is in the key.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Hashable, Iterable
from http import HTTPStatus
from itertools import chain
from typing import Any, Final, NamedTuple

from stele.apis.http.dependencies import Dependencies
from stele.core.access import AccessRules
from stele.core.model import SubjectKey
from stele.core.state import State
from stele.errors import StoreError
from stele.protocol.http_statuses import STATUS_PHRASES
from stele.server.asgi import Message
from stele.server.metrics import RequestCounter
from stele.service.access import Principal
from stele.service.registry import Registry

AnswerKey = tuple[Any, ...]

KEY_HEADERS: Final = frozenset(
    {b"accept", b"accept-encoding", b"content-type", b"host", b"if-match", b"if-none-match", b"last-event-id"}
)
"""Request headers that responses depend on."""
_FIRST_HEADER: Final = 5
"""Index of the first header in a key."""
_OVERHEAD: Final = 2000
"""Bytes of memory that an entry takes in addition to its texts."""
_LARGEST_SHARE: Final = 8
"""A response may take up to one eighth of the cache."""
_TRUSTED_SECONDS: Final = 0.001
"""Seconds for which memory counts as up to date for immutable responses, which only a purge can change."""


class StatePosition(NamedTuple):
    """The position of the log and the access rules in force at the beginning of a request."""

    state: State
    seq: int
    purges: int
    serial: int
    rules: AccessRules


class CachedAnswer(NamedTuple):
    """A response, not to be changed by its sender, and what it depends on.

    head, body      the messages `http.response.start` and `http.response.body`
    status_line     status line of the head, in the form of HTTP/1.1
    raw_headers     headers of the head, in the form of HTTP/1.1; empty when the server would have to add some
    position        position of the log
    dependencies    changes that invalidate it; None: the next record does
    counter         counts it when it is sent again
    dialect         name of the dialect that made it
    subject         name of the subject it is about, for the log of requests; '' when there is none
    size            about how many bytes of memory it takes
    """

    head: Message
    body: Message
    status_line: bytes
    raw_headers: bytes
    position: StatePosition
    dependencies: Dependencies | None
    counter: RequestCounter
    dialect: str
    subject: str
    size: int


def make_key(
    method: str,
    target: bytes,
    headers: Iterable[tuple[bytes, bytes]],
    place: tuple[str, int],
    caller: Hashable,
    digest: bytes = b"",
) -> AnswerKey:
    """Return the key of a response in the cache.

    Args:
        method: The method.
        target: Path and query, as they were sent.
        headers: Those that responses depend on (`select_key_headers`).
        place: Scheme and port the request came to.
        caller: The caller (`AccessControl.make_caller_key`), since the response depends on its permissions.
        digest: Digest of the body.
    """
    return (method, target, place, caller, digest, *headers)


def select_key_headers(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Return those headers of a request that responses depend on."""
    return [pair for pair in headers if pair[0] in KEY_HEADERS]


def make_answer(
    key: AnswerKey,
    messages: tuple[Message, Message],
    position: StatePosition,
    dependencies: Dependencies | None,
    counter: RequestCounter,
    dialect: str,
    subject: str,
) -> CachedAnswer:
    """Return a response to store under a key. `CachedAnswer` describes the other arguments."""
    head, body = messages
    status, headers = HTTPStatus(head["status"]), head["headers"]
    line = b"HTTP/1.1 %d %b\r\n" % (status, STATUS_PHRASES[status].encode("ascii"))
    has_length = status == HTTPStatus.NOT_MODIFIED or any(name == b"content-length" for name, _ in headers)
    raw_headers = b"".join([b"%b: %b\r\n" % pair for pair in headers]) if has_length else b""
    texts = [key[1], raw_headers, body["body"], *chain.from_iterable((*key[_FIRST_HEADER:], *headers))]
    size = _OVERHEAD + sum(map(len, texts))
    return CachedAnswer(head, body, line, raw_headers, position, dependencies, counter, dialect, subject, size)


class ResponseCache:
    """Responses by key. It keeps the most recently used ones up to max_bytes."""

    def __init__(self, registry: Registry, max_bytes: int) -> None:
        self._registry = registry
        self._max_bytes = max_bytes
        self._answers: OrderedDict[AnswerKey, CachedAnswer] = OrderedDict()
        self._trusted_until = 0.0
        self.bytes = 0

    def make_caller_key(self, principal: Principal, address: str) -> Hashable:
        """Return the part of keys that identifies the caller."""
        return self._registry.access.make_caller_key(principal, address)

    def __len__(self) -> int:
        return len(self._answers)

    def find_answer(self, key: AnswerKey) -> CachedAnswer | None:
        """Return the cached response to a request if it is still valid, else None."""
        answer = self._answers.get(key)
        if answer is None or not self._holds(answer):
            return None
        self._answers.move_to_end(key)
        return answer

    async def find_after_catching_up(self, key: AnswerKey, seconds: float | None) -> CachedAnswer | None:
        """Like `find_answer`, but first read the log where the node may be behind, for at most so many seconds.

        Returns None for an error of the store, so that the dialect reports it.
        """
        answer = self.find_answer(key)
        if answer is not None or key not in self._answers or self._registry.is_fresh():
            return answer
        try:
            async with asyncio.timeout(seconds):
                await self._registry.fresh_state()
        except (StoreError, TimeoutError):
            return None
        answer = self._answers.get(key)
        return answer if answer is not None and self._is_unchanged(answer) else None

    def mark_position(self) -> StatePosition:
        """Return the current position of the log, before a request is handled."""
        state = self._registry.state
        return StatePosition(state, state.seq, state.purges, state.serial, self._registry.access.rules)

    def keep_answer(self, key: AnswerKey, answer: CachedAnswer) -> None:
        """Store a response, unless what it depends on has changed since its request began."""
        self.remove_answer(key)
        if answer.size <= self._max_bytes // _LARGEST_SHARE and self._is_unchanged(answer):
            self._answers[key] = answer
            self.bytes += answer.size
            while self.bytes > self._max_bytes:
                _, oldest = self._answers.popitem(last=False)
                self.bytes -= oldest.size

    def remove_answer(self, key: AnswerKey) -> None:
        """Delete a response."""
        before = self._answers.pop(key, None)
        if before is not None:
            self.bytes -= before.size

    def _holds(self, answer: CachedAnswer) -> bool:
        """Return whether the dialect would certainly return the same now, determined without waiting."""
        if answer.dependencies is None or not answer.dependencies.immutable:
            return self._registry.is_fresh() and self._is_unchanged(answer)
        now = time.perf_counter()
        if now >= self._trusted_until:
            if not self._registry.has_read_all():
                return False
            self._trusted_until = now + _TRUSTED_SECONDS
        return self._is_unchanged(answer)

    def _is_unchanged(self, answer: CachedAnswer) -> bool:
        """Return whether nothing that a response depends on has changed since its request began."""
        position, dependencies, state = answer.position, answer.dependencies, self._registry.state
        if state is not position.state or self._registry.access.rules is not position.rules:
            return False
        if dependencies is None:
            return state.seq == position.seq
        if dependencies.immutable:
            return state.purges == position.purges
        if state.shared_seq > position.seq or (dependencies.names and state.serial != position.serial):
            return False
        return all(_newest_seq(state, key) <= position.seq for key in dependencies.subjects)


def _newest_seq(state: State, key: SubjectKey) -> int:
    subject = state.find_subject(key)
    return subject.versions[-1].seq if subject is not None and subject.versions else 0
