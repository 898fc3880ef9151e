"""Errors into answers: a status with a problem document (RFC 9457), or the Azure flavour's own body."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Any, NamedTuple

import msgspec
import structlog
from litestar import Request, Response
from litestar.exceptions import HTTPException
from litestar.openapi.datastructures import ResponseSpec

from stele import errors as err
from stele.apis.cncf import entities as api
from stele.apis.cncf.names import group_of
from stele.apis.http.errors import allow_header

PROBLEM = "application/problem+json"

_logger = structlog.get_logger("stele.cncf")
_AZURE = re.compile(r"/\$schemagroups(?:/|\Z)", re.IGNORECASE)

FAULTS: dict[type[Exception], int] = {
    err.NotFound: 404,
    err.Conflict: 409,
    err.PreconditionFailed: 412,
    err.Invalid: 400,
    err.TooLarge: 413,
    err.Unauthenticated: 401,
    err.Refused: 403,
    err.Unavailable: 503,
    err.NotInstalled: 501,
    err.SteleError: 500,
}
"""Status by class."""

AZURE_FAULTS: dict[type[Exception], tuple[int, str]] = {
    err.NamespaceNotFound: (404, "SchemaGroupNotFound"),
    err.VersionNotFound: (404, "SchemaVersionNotFound"),
    err.NotFound: (404, "ItemNotFound"),
    err.Incompatible: (409, "IncompatibleSchema"),
    err.PreconditionFailed: (412, "PreconditionFailed"),
    err.Conflict: (409, "Conflict"),
    err.MalformedSchema: (400, "InvalidSchema"),
    err.FormatMismatch: (415, "InvalidSchemaType"),
    err.TooLarge: (413, "RequestEntityTooLarge"),
    err.Invalid: (400, "BadRequest"),
    err.Unauthenticated: (401, "Unauthorized"),
    err.Refused: (403, "Forbidden"),
    err.Unavailable: (503, "ServerBusy"),
    err.NotInstalled: (501, "NotImplemented"),
    err.SteleError: (500, "InternalError"),
}
"""Status and code by class, in the Azure flavour."""

_WHY = (
    (400, "No schema, a format that is missing or another one, a wrong id or attribute"),
    (403, "The caller or the mode in force may not do this"),
    (404, "No such group, schema, version or URI"),
    (409, "Exists already, incompatible, or in use"),
    (413, "A limit is exceeded"),
    (503, "The store does not answer"),
)
ERRORS = {
    status: ResponseSpec(api.Problem, description=why, generate_examples=False, media_type=PROBLEM)
    for status, why in _WHY
}
AZURE_ERRORS = {
    status: ResponseSpec(api.AzureFault, description=why, generate_examples=False)
    for status, why in (*_WHY, (412, "The group has another ETag"), (415, "The group takes schemas of another type"))
}

_FAILED = "the registry failed; its log says how"


class Fault(NamedTuple):
    """An answer."""

    status: int
    code: str
    message: str


def status_of(error: Exception) -> int:
    """The status of an error: that of its class, or of its nearest ancestor in the table."""
    for cls in type(error).__mro__:
        if cls in FAULTS:
            return FAULTS[cls]
    return error.status_code if isinstance(error, HTTPException) else 500


def azure_fault_of(error: Exception) -> Fault:
    """As `status_of`, with the code and the message of the Azure flavour."""
    for cls in type(error).__mro__:
        if cls in AZURE_FAULTS:
            reasons = error.findings if isinstance(error, err.Incompatible) else ()
            told = [_detail(error), *(f"{finding.path or '/'}: {finding.why}" for finding in reasons)]
            return Fault(*AZURE_FAULTS[cls], " ".join(told))
    status = status_of(error)
    return Fault(status, HTTPStatus(status).phrase.title().replace(" ", ""), _detail(error))


def _sentence(error: err.SteleError) -> str:
    """What went wrong, in the words of this API: groups and schemas."""
    match error:
        case err.SubjectNotFound():
            return f"The schema '{error.subject}' does not exist."
        case err.Incompatible():
            number = "an earlier version" if error.against is None else f"version {error.against}"
            return f"The document is not compatible with {number} of the schema '{error.subject}'."
        case err.InUse():
            return f"Other schemas refer to version {error.version} of the schema '{error.subject}'."
        case err.ReadOnly() if error.space or error.subject:
            place = f"schema '{error.subject}'" if error.subject else f"group '{group_of(error.space)}'"
            return f"The {place} is {error.how}."
        case _:
            return str(error)


def _detail(error: Exception) -> str:
    if isinstance(error, err.SteleError):
        return _sentence(error)
    return str(error.detail) if isinstance(error, HTTPException) and error.status_code < 500 else _FAILED


def _problem(error: Exception, status: int) -> api.Problem:
    found = [_finding(finding) for finding in error.findings] if isinstance(error, err.Incompatible) else []
    return api.Problem(HTTPStatus(status).phrase, status, _detail(error), found)


def _finding(finding: Any) -> dict[str, Any]:
    told = {name: getattr(finding, name) for name in ("rule", "path", "why", "fix", "against")}
    return {name: value for name, value in told.items() if value not in ("", None)}


def answer(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    """The exception handler of the application."""
    path = str(request.scope["path"])
    if _AZURE.match(path):
        fault = azure_fault_of(error)
        status, media_type = fault.status, "application/json"
        body: msgspec.Struct = api.AzureFault(api.AzureError(fault.code, fault.message))
    else:
        status, media_type = status_of(error), PROBLEM
        body = _problem(error, status)
    if status >= 500:
        _logger.error("failed", path=path, exc_info=error)
    return Response(msgspec.json.encode(body), status_code=status, media_type=media_type, headers=allow_header(error))
