"""What a dialect is asked and what the model says it must answer."""

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
    """A request, what it must tell, and how to read that off the answer."""

    request: Request
    expected: Any
    told: Callable[[Reply], Any]


class Op(NamedTuple):
    """One operation through one dialect: everything about it is here, so that it can be replayed.

    draft is the number of a schema in the pool, number a version (or an id) of the core's counting, word the rest.
    """

    door: str
    what: str
    namespace: str
    name: str
    draft: int = 0
    number: int = 0
    word: str = ""


class Differs(AssertionError):
    """An answer is not the one of the model."""


def segment(name: str) -> str:
    """A name as one segment of a path."""
    return quote(name, safe="")


def status(reply: Reply) -> int:
    """The status alone."""
    return reply.status


def text(reply: Reply) -> tuple[int, str | None]:
    """Status and text of what went well, the status of what did not."""
    return (reply.status, reply.text) if reply.status < 400 else (reply.status, None)
