"""The content of the logs."""

from __future__ import annotations

import os
import re
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime

import pytest
import structlog

from stele.server.log_config import TimeStamper, configure_logs


@pytest.mark.parametrize("shape", ["console", "json"])
def test_tracebacks_show_no_variables(shape: str, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """A traceback has no variables: printing them can take a minute, and reveal request bodies."""
    configure_logs("info", shape)  # type: ignore[arg-type]  # the two shapes there are
    try:
        _fail("hunter" + str(2))
    except ZeroDivisionError as error:
        structlog.get_logger("test").error("failed", exc_info=error)
    finally:
        structlog.reset_defaults()
    written = capfdbinary.readouterr().err
    assert b"ZeroDivisionError" in written
    assert b"hunter2" not in written


def _fail(secret: str) -> float:
    return len(secret) / 0


@pytest.mark.parametrize("shape", ["console", "json"])
def test_a_log_that_cannot_be_written_stops_nobody(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines are lost when the stream is closed or the other end of the pipe has ended, and no error is raised."""
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        configure_logs("info", shape)  # type: ignore[arg-type]  # the two shapes there are
        try:
            log = structlog.get_logger("test")
            log.info("one", number=1)
            assert b"one" in os.read(reading, 1000)
            os.close(reading)
            log.error("two")
            with suppress(OSError):
                stream.close()
            log.error("three")
        finally:
            structlog.reset_defaults()


@pytest.mark.parametrize("is_terminal", [False, True])
@pytest.mark.parametrize("text", ["a\r\nforged", "a\x1b[31mred", "a\x00b", "a\x85b", "a\u2028b", "a\u202eb"])
def test_no_text_makes_a_line_or_commands_a_terminal(
    text: str, is_terminal: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Texts from clients stay one line of printable characters, also with a traceback."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal, raising=False)
    configure_logs("info", "console")
    try:
        log = structlog.get_logger("test")
        log.info("request", path=text)
        line = re.sub(r"\x1b\[[0-9;]*m(?!red)", "", capsys.readouterr().err)
        assert line.endswith("\n")
        assert line[:-1].isprintable()
        log.error("failed", path=text, exc_info=ValueError("why"))
        assert text not in capsys.readouterr().err
    finally:
        structlog.reset_defaults()


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"path": "/a", "status": 200, "ms": 1.5},
        {"subject": "a b", "reason": 'it\'s "so"\n', "z": None, "a": "", "b": ["x"]},
        {"path": "/ä=b", "tab": "\t", "last": ""},
    ],
)
def test_plain_lines_are_those_of_the_library(fields: dict[str, object], capsys: pytest.CaptureFixture[str]) -> None:
    """The fast renderer writes the same lines as structlog."""
    configure_logs("info", "console")
    try:
        for event in ("request", "a longer event than the column is wide"):
            structlog.get_logger("test").info(event, **fields)
            ours = capsys.readouterr().err
            stamp = ours.split(" ")[0]
            renderer = structlog.dev.ConsoleRenderer(colors=False)
            theirs = renderer(None, "", {"timestamp": stamp, "level": "info", "event": event, **fields})
            assert ours == f"{theirs}\n"
    finally:
        structlog.reset_defaults()


def test_times_are_those_of_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Times have microseconds in UTC, also when the second changes and when the clock goes back."""
    stamp = TimeStamper()
    for at, microseconds in (
        (1_700_000_000, 250_000),
        (1_700_000_000, 7),
        (1_700_000_001, 999_999),
        (1_699_999_999, 5),
    ):
        monkeypatch.setattr(time, "time_ns", lambda at=at, more=microseconds: at * 10**9 + more * 1000 + 999)
        expected = f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%S}.{microseconds:06}Z"
        assert stamp(None, "", {})["timestamp"] == expected
