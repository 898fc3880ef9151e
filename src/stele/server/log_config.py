"""Structured logs on standard error: one event per line, readable by humans or as JSON."""

from __future__ import annotations

import logging
import re
import sys
import time
from collections.abc import MutableMapping
from contextlib import suppress
from functools import partial
from typing import IO, Any, Final, Literal

import orjson
import structlog

_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def configure_logs(level: Literal["debug", "info", "warning", "error"], shape: Literal["console", "json"]) -> None:
    """Set up structlog for this process. Loggers of the standard library log warnings and above only."""
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        TimeStamper(),
    ]
    if shape == "json":
        structlog.configure(
            processors=[*shared, structlog.processors.format_exc_info, structlog.processors.JSONRenderer(orjson.dumps)],
            wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
            logger_factory=partial(LineLogger, sys.stderr.buffer, b"\n"),
        )
    else:
        # Plain tracebacks: the pretty ones print every local variable, which can hold the event loop for a minute.
        colors = sys.stderr.isatty()
        renderer = structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=structlog.dev.plain_traceback)
        structlog.configure(
            processors=[*shared, *([_escape_controls, renderer] if colors else [partial(_render_plain, renderer)])],
            wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
            logger_factory=partial(LineLogger, sys.stderr, "\n"),
        )
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(levelname)s %(name)s %(message)s")


class TimeStamper:
    """Processor: adds the time in ISO 8601, as structlog does. The part up to the second is cached."""

    def __init__(self) -> None:
        self._known = (0, "")
        """A second since 1970 and its text. One tuple, so that threads read both together."""

    def __call__(self, logger: Any, name: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        """Add the time to an event."""
        second, nanoseconds = divmod(time.time_ns(), 1_000_000_000)
        known, timestamp = self._known
        if second != known:
            timestamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
            self._known = second, timestamp
        event["timestamp"] = f"{timestamp}.{nanoseconds // 1000:06d}Z"
        return event


class LineLogger:
    """Writes lines to a stream. When the stream is closed, lines are lost and no error is raised.

    Args:
        stream: Stream of text or of bytes, like the lines.
        end: End of a line.
    """

    def __init__(self, stream: IO[Any], end: str | bytes, *_: object) -> None:
        self._stream = stream
        self._end = end

    def write_line(self, line: Any) -> None:
        """Write a complete line and flush the stream."""
        with suppress(OSError, ValueError):  # the other end of a pipe has gone; the stream was closed
            self._stream.write(line + self._end)
            self._stream.flush()

    debug = info = warning = error = critical = exception = msg = write_line


_CONTROLS: Final = "\\x00-\\x1f\\x7f-\\x9f\\u2028-\\u202e\\u2066-\\u2069"
"""Characters that end a line, control a terminal or change the direction of a text, for a character class of `re`."""
_HAS_CONTROLS: Final = re.compile(f"[{_CONTROLS}]")
_QUOTED: Final = re.compile(f"[ ={_CONTROLS}\"']")
"""Matches texts that must be quoted."""
_OF_ERRORS: Final = frozenset({"exc_info", "exception", "stack"})


def _render_plain(
    renderer: structlog.dev.ConsoleRenderer, logger: Any, name: str, event: MutableMapping[str, Any]
) -> str:
    """Return what the renderer returns without colours, five times as fast, since every write is logged."""
    if not _OF_ERRORS.isdisjoint(event):
        return str(renderer(logger, name, _escape_controls(logger, name, event)))
    head = f"{event.pop('timestamp')} [{event.pop('level'):<9}] {event.pop('event'):<30}"
    parts = [head]
    for key in sorted(event):
        value = event[key]
        plain = isinstance(value, str) and not _QUOTED.search(value)
        parts.append(f"{key}={value}" if plain else f"{key}={value!r}")
    return " ".join(parts).rstrip(" ")


def _escape_controls(logger: Any, name: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Processor: escapes control characters in texts from clients, so that they cannot control a terminal."""
    for key, value in event.items():
        if isinstance(value, str) and key not in _OF_ERRORS and _HAS_CONTROLS.search(value):
            event[key] = repr(value)
    return event
