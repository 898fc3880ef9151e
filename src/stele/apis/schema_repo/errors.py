"""Errors of both dialects: a status and plain text, found along the class tree of the error.

The two 404 texts are the original's; a refused schema answers 403 with the reasons, one per line: clients of
schema-repo show that body to whoever registers.
"""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import structlog
from litestar import Request, Response
from litestar.exceptions import HTTPException
from litestar.openapi.datastructures import ResponseSpec

from stele import errors as err
from stele.core.findings import Finding

NO_SUBJECT = "ERROR: This subject does not exist.\n"
NO_SCHEMA = "ERROR: This schema does not exist.\n"

_logger = structlog.get_logger("stele.schema-repo")

Wording = Callable[[Any], str]


def _plain(error: Exception) -> str:
    return f"ERROR: {error}\n"


def _incompatible(error: err.Incompatible) -> str:
    return _plain(error) + "".join(f"{_reason(finding)}\n" for finding in error.findings)


def _reason(finding: Finding) -> str:
    place = f" at {finding.path}" if finding.path else ""
    fix = f" ({finding.fix})" if finding.fix else ""
    return f"- {finding.rule}{place}: {finding.why}{fix}"


FAULTS: dict[type[Exception], tuple[int, Wording]] = {
    err.SubjectNotFound: (404, lambda error: NO_SUBJECT),
    err.NotFound: (404, lambda error: NO_SCHEMA),
    err.Incompatible: (403, _incompatible),
    err.Conflict: (409, _plain),
    err.TooLarge: (413, _plain),
    err.Invalid: (400, _plain),
    err.Unauthenticated: (401, _plain),
    err.Refused: (403, _plain),
    err.Unavailable: (503, _plain),
    err.NotInstalled: (501, _plain),
    err.SteleError: (500, _plain),
}
"""Status and wording by class."""

ERRORS = {
    status: ResponseSpec(str, description=why, generate_examples=False, media_type="text/plain")
    for status, why in (
        (400, "No schema, an unknown policy or validator, a reserved key"),
        (403, "A validator refuses the schema, or writes are not allowed"),
        (404, "No such subject, or no such schema in it"),
        (409, "Not the latest schema"),
        (413, "A limit is exceeded"),
        (503, "The store does not answer"),
    )
}


def fault_of(error: Exception) -> tuple[int, str]:
    """The status and body of an error: that of its class, or of its nearest ancestor in the table."""
    for cls in type(error).__mro__:
        if cls in FAULTS:
            status, wording = FAULTS[cls]
            return status, wording(error)
    if isinstance(error, HTTPException):
        phrase = HTTPStatus(error.status_code).phrase
        detail = error.detail if error.status_code in {406, 415} else f"HTTP {error.status_code} {phrase}"
        return error.status_code, f"ERROR: {detail}\n"
    return 500, "ERROR: the registry failed; its log says how\n"


def answer(request: Request[Any, Any, Any], error: Exception) -> Response[str]:
    """The exception handler of the application."""
    status, text = fault_of(error)
    if status >= 500:
        _logger.error("failed", path=request.scope["path"], exc_info=error)
    headers = {
        name: value for name, value in (getattr(error, "headers", None) or {}).items() if name.lower() == "allow"
    }
    return Response(text, status_code=status, media_type="text/plain", headers=headers)
