"""Structured logs on standard error: one event per line, for people or for machines."""

from __future__ import annotations

import logging
import sys
from typing import Literal

import orjson
import structlog

_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def configure_logs(level: Literal["debug", "info", "warning", "error"], shape: Literal["console", "json"]) -> None:
    """Set up structlog for this process; the standard library's loggers keep to warnings."""
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    if shape == "json":
        structlog.configure(
            processors=[*shared, structlog.processors.format_exc_info, structlog.processors.JSONRenderer(orjson.dumps)],
            wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
            logger_factory=structlog.BytesLoggerFactory(sys.stderr.buffer),
        )
    else:
        # Plain tracebacks: the pretty ones print every local variable, which can hold the event loop for a minute.
        renderer = structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
        )
        structlog.configure(
            processors=[*shared, renderer],
            wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
            logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        )
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(levelname)s %(name)s %(message)s")
