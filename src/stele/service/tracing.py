"""Spans: the named steps of a request, for tracing. This module does not depend on where they are sent."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Final, Protocol

_NOTHING: Final = nullcontext()


class Tracer(Protocol):
    """Records spans."""

    def open_span(self, name: str, attributes: Mapping[str, int | str]) -> AbstractContextManager[object]:
        """Return a span below the one of the current task, that lasts as long as its context."""
        ...


class NoTracer:
    """Records nothing."""

    def open_span(self, name: str, attributes: Mapping[str, int | str]) -> AbstractContextManager[object]:
        """Return a context that does nothing."""
        return _NOTHING
