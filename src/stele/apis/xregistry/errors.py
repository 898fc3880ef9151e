"""Errors of the dialect: a code of the specification with its title, subject and arguments.

Source: docs/protocols/xregistry.md#errors
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec
import structlog
from litestar import Request, Response
from litestar.exceptions import HTTPException
from litestar.openapi.datastructures import ResponseSpec

from stele import errors as err
from stele.apis.http.errors import error_headers, error_message, find_by_class, log_failure
from stele.apis.http.requests import NotJson, WrongShape, find_base_uri, mounted_prefix
from stele.apis.xregistry.models import ErrorBody
from stele.protocol.http_statuses import STATUS_PHRASES

_logger = structlog.get_logger("stele.xregistry")

JSON: Final = "application/json; charset=utf-8"
"""Content type of every JSON body of the dialect."""

_CORE: Final = "https://github.com/xregistry/spec/blob/main/core/spec.md#"
_HTTP: Final = "https://github.com/xregistry/spec/blob/main/core/http.md#"
_OWN: Final = "urn:stele:xregistry:"


class CodeEntry(NamedTuple):
    """Entry of an error in the specification: its status and its title, in which `<name>` stands for an argument."""

    status: int
    title: str
    base: str = _CORE


CODES: Final[Mapping[str, CodeEntry]] = {
    "action_not_supported": CodeEntry(405, "The specified action (<action>) is not supported for: <subject>."),
    "ancestor_circular_reference": CodeEntry(
        400, 'For "<subject>", the request would create a circular list of ancestors: <list>.'
    ),
    "bad_defaultversionid": CodeEntry(
        400, 'For "<subject>", an error was found in the "defaultversionid" value specified (<value>): <error_detail>.'
    ),
    "bad_details": CodeEntry(400, 'Use of "$details" in this context is not allowed: <subject>.'),
    "bad_filter": CodeEntry(400, 'For "<subject>", an error was found in "filter" value (<value>): <error_detail>.'),
    "bad_flag": CodeEntry(400, "The specified flag (<flag>) is not allowed in this context: <subject>."),
    "bad_ignore": CodeEntry(400, 'For "<subject>", an error was found in "ignore" value (<value>): <error_detail>.'),
    "bad_inline": CodeEntry(400, 'For "<subject>", an error was found in "inline" value (<value>): <error_detail>.'),
    "bad_request": CodeEntry(400, "<error_detail>."),
    "bad_sort": CodeEntry(400, 'For "<subject>", an error was found in "sort" value (<value>): <error_detail>.'),
    "cannot_doc_xref": CodeEntry(
        400,
        'Retrieving the document view of a Version for "<subject>" is not allowed because it uses "xref".',
    ),
    "capability_error": CodeEntry(400, "There was an error in the capabilities provided: <error_detail>."),
    "capability_missing_value": CodeEntry(400, 'The "<name>" capability needs to contain "<value>".'),
    "capability_unknown": CodeEntry(400, "Unknown capability specified: <field>."),
    "capability_value": CodeEntry(
        400, 'Invalid value (<value>) specified for capability "<field>". Allowable values include: <list>.'
    ),
    "capability_wildcard": CodeEntry(400, 'When "<field>" includes a value of "*" then no other values are allowed.'),
    "compatibility_violation": CodeEntry(
        400,
        'The request would cause one or more Versions of "<subject>" to violate its compatibility rule (<compat>).',
    ),
    "constraint_failure": CodeEntry(
        400,
        'The request would result in one or more Versions of "<subject>" not being compliant with its owning Group\'s'
        ' "<kind>" constraint for attribute "<path>".',
    ),
    "data_retrieval_error": CodeEntry(500, "The server was unable to retrieve all of the requested data."),
    "defaultversionid_request": CodeEntry(
        400,
        'Processing "<subject>", the "defaultversionid" attribute is not allowed to be "request" since a Version'
        " wasn't processed.",
    ),
    "extra_xref_attribute": CodeEntry(
        400, 'Attribute "<name>" is not allowed to be present since the "<singular>" (<subject>) uses "xref".'
    ),
    "format_violation": CodeEntry(
        400, 'The request would cause Version "<subject>" to be non-compliant with its "format" (<format>).'
    ),
    "groups_only": CodeEntry(
        400,
        'Attribute "<name>" is invalid. Only Group types are allowed to be specified on this request: <subject>.',
    ),
    "inline_noninlineable": CodeEntry(400, "Attempting to inline a non-inlineable attribute (<name>) on: <subject>."),
    "invalid_attribute": CodeEntry(400, 'The attribute "<name>" for "<subject>" is not valid: <error_detail>.'),
    "malformed_id": CodeEntry(400, 'For "<subject>", the specified ID value (<id>) is malformed: <error_detail>.'),
    "malformed_xref": CodeEntry(
        400, 'For "<subject>", the specified xref value (<xref>) is malformed: <error_detail>.'
    ),
    "mismatched_epoch": CodeEntry(
        400,
        'The specified epoch value (<bad_epoch>) for "<subject>" does not match its current value (<epoch>).',
    ),
    "mismatched_id": CodeEntry(
        400, 'The specified "<singular>id" value (<invalid_id>) for "<subject>" needs to be "<expected_id>".'
    ),
    "mismatched_version_attribute": CodeEntry(
        400,
        'The request would cause the "<name>" attribute across the Versions of "<subject>" to be different.',
    ),
    "misplaced_epoch": CodeEntry(
        400, 'The specified "epoch" value for "<subject>" needs to be within a "meta" entity.'
    ),
    "model_error": CodeEntry(400, "There was an error in the model definition provided: <error_detail>."),
    "not_found": CodeEntry(404, "The targeted entity (<subject>) cannot be found."),
    "one_resource": CodeEntry(400, 'Only one attribute from "<list>" can be present at a time for: <subject>.'),
    "parsing_data": CodeEntry(400, "There was an error parsing the data: <error_detail>."),
    "readonly": CodeEntry(400, "Updating a read-only entity (<subject>) is not allowed."),
    "required_attribute_missing": CodeEntry(
        400, 'One or more mandatory attributes for "<subject>" are missing: <list>.'
    ),
    "resources_only": CodeEntry(
        400,
        'Attribute "<name>" is invalid. Only Resource types are allowed to be specified on this request: <subject>.',
    ),
    "server_busy": CodeEntry(
        503, 'Due to excessive requests, the server could not complete "<subject>", please try again later.'
    ),
    "server_error": CodeEntry(500, "An unexpected error occurred, please try again later."),
    "sort_noncollection": CodeEntry(400, "Can't sort on a non-collection result set. Query path: <subject>."),
    "too_large": CodeEntry(
        406, 'For "<subject>", the size of the response is too large to return in a single response.'
    ),
    "too_many_versions": CodeEntry(
        400,
        'For "<subject>", when the "setdefaultversionid" flag is set to "request", only one Version is allowed to be'
        " specified in the request message.",
    ),
    "unknown_attribute": CodeEntry(400, 'An unknown attribute (<name>) was specified for "<subject>".'),
    "unknown_group_type": CodeEntry(400, 'An unknown Group type (<name>) was specified in "<subject>".'),
    "unknown_id": CodeEntry(
        400,
        'While processing "<subject>", the "<singular>" with a "<singular>id" value of "<id>" cannot be found.',
    ),
    "unknown_resource_type": CodeEntry(
        400, 'An unknown Resource type (<name>) was specified for Group type "<group>".'
    ),
    "unsupported_specversion": CodeEntry(
        400, 'The specified "specversion" value (<specversion>) is not supported. Supported versions: <list>.'
    ),
    "api_not_found": CodeEntry(404, "The specified API is not supported: <subject>.", _HTTP),
    "details_required": CodeEntry(405, "$details suffix is needed when using PATCH for the entity: <subject>.", _HTTP),
    "extra_xregistry_header": CodeEntry(
        400,
        'For "<subject>", xRegistry HTTP header "<name>" is not allowed on this request: <error_detail>.',
        _HTTP,
    ),
    "header_error": CodeEntry(
        400, 'For "<subject>", there was an error processing HTTP header "<name>": <error_detail>.', _HTTP
    ),
    "missing_body": CodeEntry(400, "For \"<subject>\", the request is missing an HTTP body - try '{}'.", _HTTP),
    "missing_versions": CodeEntry(
        400, 'For "<subject>", at least one Version needs to be included in the request.', _HTTP
    ),
    "unauthorized": CodeEntry(401, "The caller needs to prove who it is: <error_detail>.", _OWN),
    "forbidden": CodeEntry(403, "The caller is not allowed to do this: <error_detail>.", _OWN),
    "conflict": CodeEntry(409, "The present state of the registry does not allow this: <error_detail>.", _OWN),
    "request_too_large": CodeEntry(413, "A limit of the server is exceeded: <error_detail>.", _OWN),
    "too_many_requests": CodeEntry(429, "The caller sends too many requests: <error_detail>.", _OWN),
    "not_installed": CodeEntry(501, "A part of the server is missing: <error_detail>.", _OWN),
}
"""Errors that this server returns, by code. Those that only Stele has use a URN as their type."""


class RegistryError(err.InvalidRequest):
    """An error of the specification.

    Args:
        code: One of `CODES`.
        subject: XID of the entity or path of the request that it is about; '' is the path of the request.
        detail: Further explanation.
        arguments: Values of the placeholders in the title.
    """

    def __init__(self, code: str, subject: str = "", *, detail: str = "", **arguments: str) -> None:
        super().__init__(f"{code}: {arguments}" if arguments else code)
        self.code = code
        self.subject = subject
        self.detail = detail
        self.arguments = arguments


_CLASSES: Final[dict[type[Exception], str]] = {
    err.NotFound: "not_found",
    err.Incompatible: "compatibility_violation",
    err.FormatMismatch: "conflict",
    err.MalformedSchema: "format_violation",
    err.Conflict: "conflict",
    NotJson: "parsing_data",
    WrongShape: "parsing_data",
    err.InvalidName: "bad_request",
    err.TooLarge: "request_too_large",
    err.Invalid: "bad_request",
    err.ReadOnly: "readonly",
    err.Unauthenticated: "unauthorized",
    err.Refused: "forbidden",
    err.TooManyRequests: "too_many_requests",
    err.Unavailable: "server_busy",
    err.NotInstalled: "not_installed",
    err.SteleError: "server_error",
}
"""Codes by class, for errors of the core and the services."""

STATUSES: Final[dict[type[Exception], int]] = {kind: CODES[code].status for kind, code in _CLASSES.items()}
"""Status by error class."""

_SILENT: Final = frozenset({"unauthorized", "forbidden"})
"""Codes of access errors, whose bodies do not name their subject."""
_PLACEHOLDER = re.compile(r"<([a-z][a-z0-9_]*)>")
_GROUP_TYPE = re.compile(r"/([a-z_][a-z0-9_]*)(?:/|\Z)")
_RESOURCE_TYPE = re.compile(r"/schemagroups/[^/]+/([a-z_][a-z0-9_]*)(?:/|\Z)")
_SPECIFIED = frozenset({"capabilities", "capabilitiesoffered", "model", "modelsource", "export", "schemagroups"})

_WHY = (
    (400, "The request breaks a rule of the specification; the type says which"),
    (403, "The caller may not do this"),
    (404, "No such entity or API"),
    (405, "The path does not take the method"),
    (409, "The present state does not allow this"),
    (413, "A limit is exceeded"),
    (429, "More requests than the server takes from one caller; try again after the seconds of Retry-After"),
    (503, "The store does not answer"),
)
ERROR_RESPONSES = {status: ResponseSpec(ErrorBody, description=why, generate_examples=False) for status, why in _WHY}


def convert_error(error: Exception, path: str, method: str) -> RegistryError:
    """Return the error of the specification for an exception."""
    if isinstance(error, RegistryError):
        return error
    if isinstance(error, HTTPException):
        return _convert_http_error(error, path, method)
    code = find_by_class(_CLASSES, error) or "server_error"
    sentence = error_message(error)
    arguments = {
        "error_detail": sentence.rstrip("."),
        "compat": "policy",
        "format": "format",
    }
    names = _PLACEHOLDER.findall(CODES[code].title)
    return RegistryError(code, detail=sentence, **{name: arguments[name] for name in names if name in arguments})


def _convert_http_error(error: HTTPException, path: str, method: str) -> RegistryError:
    match error.status_code:
        case 404:
            group = _GROUP_TYPE.match(path)
            if group is not None and group[1] not in _SPECIFIED:
                return RegistryError("unknown_group_type", name=group[1])
            resource = _RESOURCE_TYPE.match(path)
            if resource is not None and resource[1] != "schemas":
                return RegistryError("unknown_resource_type", name=resource[1], group="schemagroups")
            return RegistryError("api_not_found")
        case 405:
            return RegistryError("action_not_supported", action=method)
        case 413:
            return RegistryError("request_too_large", error_detail="the body is longer than max_request_bytes")
        case status if status < 500:
            return RegistryError("bad_request", error_detail=STATUS_PHRASES[status])
        case _:
            return RegistryError("server_error")


def build_error(error: RegistryError, path: str, instance: str) -> ErrorBody:
    """Return the body of an error."""
    code = CODES[error.code]
    subject = error.subject or path
    values = {"subject": subject, **error.arguments}
    title = _PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), code.title)
    return ErrorBody(
        type=f"{code.base}{error.code}",
        title=title,
        detail=error.detail or msgspec.UNSET,
        subject=msgspec.UNSET if error.code in _SILENT else subject,
        args=error.arguments or msgspec.UNSET,
        instance=instance,
    )


def handle_error(request: Request[Any, Any, Any], error: Exception) -> Response[Any]:
    """Answer an error: the exception handler of the application."""
    path = str(request.scope["path"])
    registry_error = convert_error(error, path, request.method)
    status = CODES[registry_error.code].status
    if status >= 500:
        log_failure(_logger, path, error)
    root = find_base_uri(request)
    host = root.removesuffix(mounted_prefix(request))
    instance = root if registry_error.code in _SILENT else host + request.scope["raw_path"].decode("latin-1")
    body = build_error(registry_error, path, instance)
    headers = error_headers(error)
    if registry_error.code == "details_required":
        headers["Allow"] = "DELETE, GET, HEAD, OPTIONS, POST, PUT"
    return Response(msgspec.json.encode(body), status_code=status, media_type=JSON, headers=headers)
