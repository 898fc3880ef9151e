"""What the logs show."""

from __future__ import annotations

import pytest
import structlog

from stele.server.log_config import configure_logs


@pytest.mark.parametrize("shape", ["console", "json"])
def test_tracebacks_show_no_variables(shape: str, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """A traceback says where, and leaves out the variables: printing them all can take a minute, and leak bodies."""
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
