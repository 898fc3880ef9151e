"""Errors of the dialect: a status with a problem document (RFC 9457), or the body of the Azure flavour."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import msgspec
import structlog
from litestar import Request, Response
from litestar.exceptions import HTTPException
from litestar.openapi.datastructures import ResponseSpec

from stele import errors as err
from stele.apis.cncf import models as api
from stele.apis.http.errors import error_headers, find_by_class, log_failure
from stele.protocol.cncf import group_id_of
from stele.protocol.http_statuses import STATUS_PHRASES

PROBLEM = "application/problem+json"

_logger = structlog.get_logger("stele.cncf")
_AZURE = re.compile(r"/\$schemagroups(?:/|\Z)", re.IGNORECASE)

STATUSES: dict[type[Exception], int] = {
    err.NotFound: 404,
    err.Conflict: 409,
    err.PreconditionFailed: 412,
    err.Invalid: 400,
    err.TooLarge: 413,
    err.Unauthenticated: 401,
    err.Refused: 403,
    err.TooManyRequests: 429,
    err.Unavailable: 503,
    err.NotInstalled: 501,
    err.SteleError: 500,
}
"""Status by error class."""

AZURE_CODES: dict[type[Exception], tuple[int, str]] = {
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
    err.TooManyRequests: (429, "TooManyRequests"),
    err.Unavailable: (503, "ServerBusy"),
    err.NotInstalled: (501, "NotImplemented"),
    err.SteleError: (500, "InternalError"),
}
"""Status and code by error class, in the Azure flavour."""

_WHY = (
    (400, "No schema, a format that is missing or another one, a wrong id or attribute"),
    (403, "The caller or the mode in force may not do this"),
    (404, "No such group, schema, version or URI"),
    (409, "Exists already, incompatible, or in use"),
    (413, "A limit is exceeded"),
    (429, "More requests than the server takes from one caller; try again after the seconds of Retry-After"),
    (503, "The store does not answer"),
)
ERROR_RESPONSES = {
    status: ResponseSpec(api.ProblemDetails, description=why, generate_examples=False, media_type=PROBLEM)
    for status, why in _WHY
}
AZURE_ERROR_RESPONSES = {
    status: ResponseSpec(api.AzureFault, description=why, generate_examples=False)
    for status, why in (*_WHY, (412, "The group has another ETag"), (415, "The group takes schemas of another type"))
}

_FAILED = "internal error; the log of the server has the details"


class AzureReply(NamedTuple):
    """Status, code and message of an Azure error response."""

    status: int
    code: str
    message: str


def status_of(error: Exception) -> int:
    """Return the status of an error: that of its class or of its nearest ancestor in the table."""
    status = find_by_class(STATUSES, error)
    if status is not None:
        return status
    return error.status_code if isinstance(error, HTTPException) else 500


def azure_reply_to(error: Exception) -> AzureReply:
    """Return status, code and message of an error in the Azure flavour."""
    row = find_by_class(AZURE_CODES, error)
    if row is None:
        status = status_of(error)
        return AzureReply(status, STATUS_PHRASES[status].title().replace(" ", ""), _detail_of(error))
    findings = error.findings if isinstance(error, err.Incompatible) else ()
    sentences = [_detail_of(error), *(f"{finding.path or '/'}: {finding.why}" for finding in findings)]
    return AzureReply(*row, " ".join(sentences))


def _describe_error(error: err.SteleError) -> str:
    """Return the message of an error in the terms of this API: groups and schemas."""
    match error:
        case err.SubjectNotFound():
            return f"The schema '{error.subject}' does not exist."
        case err.Incompatible(against=None):
            return f"The policy in force refuses the document for the schema '{error.subject}'."
        case err.Incompatible():
            return f"The document is not compatible with version {error.against} of the schema '{error.subject}'."
        case err.InUse():
            return f"Other schemas refer to version {error.version} of the schema '{error.subject}'."
        case err.ReadOnly() if error.space or error.subject:
            place = f"schema '{error.subject}'" if error.subject else f"group '{group_id_of(error.space)}'"
            return f"The {place} is {error.how}."
        case _:
            return str(error)


def _detail_of(error: Exception) -> str:
    if isinstance(error, err.SteleError):
        return _describe_error(error)
    return str(error.detail) if isinstance(error, HTTPException) and error.status_code < 500 else _FAILED


def _build_problem(error: Exception, status: int) -> api.ProblemDetails:
    findings = [_finding_as_json(finding) for finding in error.findings] if isinstance(error, err.Incompatible) else []
    return api.ProblemDetails(STATUS_PHRASES[status], status, _detail_of(error), findings)


def _finding_as_json(finding: Any) -> dict[str, Any]:
    members = {name: getattr(finding, name) for name in ("rule", "path", "why", "fix", "against")}
    return {name: value for name, value in members.items() if value not in ("", None)}


def handle_error(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    """Answer an error: the exception handler of the application."""
    path = str(request.scope["path"])
    if _AZURE.match(path):
        reply = azure_reply_to(error)
        status, media_type = reply.status, "application/json"
        body: msgspec.Struct = api.AzureFault(api.AzureError(reply.code, reply.message))
    else:
        status, media_type = status_of(error), PROBLEM
        body = _build_problem(error, status)
    if status >= 500:
        log_failure(_logger, path, error)
    return Response(msgspec.json.encode(body), status_code=status, media_type=media_type, headers=error_headers(error))
