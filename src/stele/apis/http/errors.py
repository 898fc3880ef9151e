"""Error responses: the table look-up, the message and the headers that every dialect shares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

from litestar import Request
from litestar.exceptions import HTTPException

from stele.apis.http.access import find_access
from stele.core.access import Operation
from stele.errors import (
    Incompatible,
    NotInstalled,
    SteleError,
    StoreError,
    StoreTimeout,
    StoreUnreadable,
    TimeLimitReached,
    TooManyRequests,
    Unavailable,
)
from stele.protocol.http_statuses import STATUS_PHRASES

T = TypeVar("T")

_MOST_FINDINGS: Final = 20


def find_by_class(table: Mapping[type[Exception], T], error: Exception) -> T | None:
    """Return the row of an error's class or of its nearest ancestor in the table, None when the table has neither."""
    for cls in type(error).__mro__:
        if cls in table:
            return table[cls]
    return None


def error_message(error: Exception) -> str:
    """Return the message for a client.

    For a refusal it has the reasons, for a check that timed out those found so far. For defects it has no details.
    """
    if isinstance(error, (Incompatible, TimeLimitReached)):
        reasons = [f"{row.path or '/'}: {row.why}" for row in error.findings[:_MOST_FINDINGS]]
        return "; ".join([str(error), *reasons])
    if isinstance(error, SteleError):
        return str(error)
    if isinstance(error, HTTPException):
        return STATUS_PHRASES[error.status_code]
    return "internal error; the log of the server has the details"


def classify_outage(request: Request[Any, Any, Any], error: Exception) -> Exception:
    """Return `StoreUnreadable` if the store did not answer a request that only reads, else the error itself.

    For a write the result may be unknown, and damaged data do not recover. Those errors are returned unchanged.
    """
    if type(error) not in {StoreError, StoreTimeout}:
        return error
    wanted = find_access(request.scope["route_handler"])
    is_read = request.method in {"GET", "HEAD"} or (wanted is not None and wanted.operation in _READING)
    return StoreUnreadable(str(error)) if is_read else error


_READING: Final = frozenset({Operation.LIST, Operation.READ})


def log_failure(logger: Any, path: str, error: Exception) -> None:
    """Log an error that the client did not cause, with its traceback.

    A store that cannot be written, a time-out, a full queue or a missing package is not a defect. For these the
    response has the whole cause, and the log has one line at level debug.
    """
    if isinstance(error, Unavailable | NotInstalled):
        logger.debug("unavailable", path=path, error=str(error))
    else:
        logger.error("failed", path=path, exc_info=error)


def error_headers(error: Exception) -> dict[str, str]:
    """Return the headers that an error response must have.

    For a 405 these are the methods that the path takes (RFC 9110, 15.5.6), for a 429 the seconds to wait.
    """
    if isinstance(error, TooManyRequests):
        return {"Retry-After": str(error.seconds)}
    headers = dict(getattr(error, "headers", None) or {})
    return {name: ", ".join(sorted(value.split(", "))) for name, value in headers.items() if name.lower() == "allow"}
