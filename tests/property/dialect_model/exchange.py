"""Requests to a dialect, and the answers that the model expects."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote


class Request(NamedTuple):
    """One HTTP request; body is JSON unless it is bytes."""

    method: str
    path: str
    body: Any = None
    headers: Mapping[str, str] = {}


class Reply(NamedTuple):
    """One HTTP answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode()

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


class Ask(NamedTuple):
    """A request, the expected content of the answer, and a function that reads the content from an answer."""

    request: Request
    expected: Any
    told: Callable[[Reply], Any]


class Op(NamedTuple):
    """One operation through one dialect. It has all data that are needed to replay it.

    draft is the number of a schema in the pool, number a version (or an id) as the core counts, word any other
    argument.
    """

    door: str
    what: str
    namespace: str
    name: str
    draft: int = 0
    number: int = 0
    word: str = ""


class Differs(AssertionError):
    """Raised when an answer differs from that of the model."""


def segment(name: str) -> str:
    """A name as one segment of a path."""
    return quote(name, safe="")


def status(reply: Reply) -> int:
    """Return only the status."""
    return reply.status


def text(reply: Reply) -> tuple[int, str | None]:
    """Return (status, text) of a success, (status, None) of an error."""
    return (reply.status, reply.text) if reply.status < 400 else (reply.status, None)
