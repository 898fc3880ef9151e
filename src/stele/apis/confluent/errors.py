"""Errors of the dialect: status, error code and message, by the class of the error.

An error code is the HTTP status itself, or the status times 100 plus a number. Messages keep the spelling of
Confluent's registry, because clients and their tests compare them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, NamedTuple

import structlog
from litestar import Request, Response
from litestar.exceptions import HTTPException

from stele import errors as err
from stele.apis.confluent import karapace
from stele.apis.confluent.models import ErrorMessage, RefusedBodyMessage
from stele.apis.confluent.names import (
    InvalidContext,
    NoSuchResource,
    context_name,
    parse_context,
    parse_subject_key,
    qualify_subject,
)
from stele.apis.confluent.options import ConfluentOptions
from stele.apis.confluent.profiles import PROFILES, ProfileName
from stele.apis.http.errors import classify_outage, error_headers, find_by_class, log_failure
from stele.apis.http.requests import NotJson, WrongShape, decode_segment
from stele.core.findings import Finding
from stele.core.model import SubjectKey
from stele.protocol.http_statuses import STATUS_PHRASES
from stele.service.delivery.exporter_definitions import (
    ExporterExists,
    InvalidExporterConfig,
    InvalidExporterName,
    InvalidExporterSubjects,
    TooManyExporters,
)
from stele.service.delivery.exporters import ExporterNotFound
from stele.service.limits import RegistryFull

MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"

_LONGEST = 2000
"""Most characters of a refused schema that a message repeats."""

_logger = structlog.get_logger("stele.confluent")


class RefusedText(err.MalformedSchema):
    """`MalformedSchema` with the text, the references and the type that the client sent, which the message repeats."""

    def __init__(self, error: err.MalformedSchema, text: str, references: Sequence[str], schema_type: str) -> None:
        super().__init__(
            error.why,
            line=error.line,
            column=error.column,
            path=error.path,
            expected=error.expected,
            undefined=error.undefined,
        )
        self.text = text
        self.references = tuple(references)
        self.schema_type = schema_type


class FailedLookup(err.MalformedSchema):
    """The schema to look up is malformed."""


class RefusedChange(err.Incompatible):
    """`Incompatible`, with the messages that explain it and the compatibility level in force."""

    def __init__(self, subject: str, findings: Sequence[Finding], messages: Sequence[str], level: str = "") -> None:
        super().__init__(subject, findings)
        self.messages = tuple(messages)
        self.level = level


class UnknownConstant(err.Invalid):
    """A member has a value that is not one of its constants.

    Confluent's registry reports this as a body that it cannot read.
    """

    def __init__(self, enum: str, word: str, constants: Sequence[str]) -> None:
        super().__init__(
            f"Cannot deserialize value of type `io.confluent.kafka.schemaregistry.client.rest.entities.{enum}` "
            f'from String "{word[:_LONGEST]}": not one of the values accepted for Enum class: '
            f"[{', '.join(constants)}]"
        )


# --- keys of the DEK registry -----------------------------------------------------------------------------------------


class KeyNotFound(err.NotFound):
    """No key has that name, or that subject, algorithm and version. The message contains `name`."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Key '{name}' not found")


class KeyNotSoftDeleted(err.NotFound):
    """A key must be soft-deleted before it is deleted permanently."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Key '{name}' was not deleted first before being permanently deleted")


class KekSoftDeleted(err.NotFound):
    """A data key cannot be restored while the key that wraps it is soft-deleted."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Key '{name}' must be undeleted first")


class KeyExists(err.AlreadyExists):
    """The key already exists."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Key '{name}' already exists; use a different value")


class TooManyKeys(err.Conflict):
    """The limit of keys (setting `max_keys`) is reached."""

    def __init__(self, most: int) -> None:
        super().__init__(f"A maximum of {most} keys already exist (max_keys)")


class InvalidKey(err.Invalid):
    """A field of a key is missing or wrong."""

    def __init__(self, field: str, why: str = "") -> None:
        super().__init__(f"Invalid or missing value for field '{field}' of key{': ' if why else ''}{why}")


class KeyInUse(err.Conflict):
    """Data keys are wrapped with the key."""

    def __init__(self, name: str) -> None:
        super().__init__(f"One or more references exist to the key '{name}'")


class KeyGenerationFailed(err.SteleError):
    """The KMS did not wrap or unwrap a data key."""


class KeyGenerationRefused(err.Refused):
    """The KMS does not let this server use its key."""


# --- associations -----------------------------------------------------------------------------------------------------


class AssociationNotFound(err.BindingNotFound):
    """The resource has no association."""

    def __init__(self, resource: str) -> None:
        super().__init__(f"Association for '{resource}' not found.")


class TooManyAssociations(err.Conflict):
    """The limit of associations (setting `max_associations`) is reached."""

    def __init__(self, most: int) -> None:
        super().__init__(f"A maximum of {most} associations already exist (max_associations)")


class ResourceTaken(err.AlreadyExists):
    """The resource has another association of that type."""

    def __init__(self, association_type: str, resource: str) -> None:
        super().__init__(f"An association of type '{association_type}' already exists for resource '{resource}'")


class SubjectTaken(err.Conflict):
    """The subject already has associations, which rules out the request."""

    def __init__(self, subject: str) -> None:
        super().__init__(f"An association already exists for subject '{subject}'")


class SubjectOwned(err.Conflict):
    """The subject has a strong association and cannot be shared with another resource."""

    def __init__(self, subject: str) -> None:
        super().__init__(f"A strong association already exists for subject '{subject}'")


class NoActiveVersion(err.Conflict):
    """An association requires an active version of its subject."""

    def __init__(self, subject: str) -> None:
        super().__init__(f"No active (non-deleted) version exists for subject '{subject}'")


class AssociationFrozen(err.Conflict):
    """A frozen association cannot be changed. It can only be deleted together with its subject."""

    def __init__(self, association_type: str, subject: str) -> None:
        super().__init__(f"The association of type  '{association_type}' is frozen for subject '{subject}'")


class InvalidAssociation(err.Invalid):
    """A property of an association is missing or wrong."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"The association specified an invalid value for property: '{name}', detail: {why}")


class BatchTooLarge(err.Invalid):
    """A batch has more requests than the limit."""

    def __init__(self) -> None:
        super().__init__("Associations batchMutate request exceeded a configured limit")


class OwnedReference(err.Refused):
    """A subject with a strong association belongs to its resource: no other schema may depend on it."""

    def __init__(self, subject: str) -> None:
        super().__init__(f"Subject {subject} has a strong association and cannot be referenced by another subject")


# --- answers -------------------------------------------------------------------------------------------------------


class ErrorContext(NamedTuple):
    """What messages need in addition to the error: subject and context of the path, and the options."""

    subject: str
    context: str
    options: ConfluentOptions


class ErrorAnswer(NamedTuple):
    """Status, error code and message of an error response."""

    status: int
    code: int
    message: str


Wording = Callable[[Any, ErrorContext], str]
ErrorTable = Mapping[type[Exception], tuple[int, int, Wording]]
"""Status, code and wording by class."""


def malformed_schema_message(error: err.MalformedSchema) -> str:
    """Return the message for a schema that is refused as malformed."""
    return _malformed_message(error) if isinstance(error, RefusedText) else str(error)


def _plain_message(error: Exception, asking: ErrorContext) -> str:
    return str(error)


def _malformed_message(error: RefusedText) -> str:
    references = ", ".join(error.references)
    text = _shorten_text(error.text)
    return f"Invalid schema {text} with refs [{references}] of type {error.schema_type}, details: {error}"


def _shorten_text(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _incompatible_message(error: err.Incompatible, asking: ErrorContext) -> str:
    details = ", ".join(error.messages) if isinstance(error, RefusedChange) else str(error)
    return (
        "Schema being registered is incompatible with an earlier schema "
        f'for subject "{asking.subject or error.subject}", details: [{details}]'
    )


def _soft_deleted_message(error: err.AlreadySoftDeleted, asking: ErrorContext) -> str:
    version = "" if error.version is None else f" Version {error.version}"
    return f"Subject '{asking.subject}'{version} was soft deleted.Set permanent=true to delete permanently"


def _not_soft_deleted_message(error: err.NotSoftDeleted, asking: ErrorContext) -> str:
    version = "" if error.version is None else f" Version {error.version}"
    return f"Subject '{asking.subject}'{version} was not deleted first before being permanently deleted"


def _in_use_message(error: err.InUse, asking: ErrorContext) -> str:
    schema = f"{{magic=1,keytype=SCHEMA,subject={asking.subject or error.subject},version={error.version}}}"
    return f"One or more references exist to the schema {schema}."


def _read_only_message(error: err.ReadOnly, asking: ErrorContext) -> str:
    subject = error.subject or asking.subject or "null"  # Confluent's registry has no name for this context.
    context = f" in context {context_name(error.space)}" if asking.options.differences.names_contexts else ""
    return f"Subject {subject}{context} is {error.how}"


def _id_taken_message(error: err.IdTaken, asking: ErrorContext) -> str:
    return f"Overwrite new schema with id {error.gid} in context {context_name(error.space)} is not permitted."


def _version_not_found_message(error: err.VersionNotFound, asking: ErrorContext) -> str:
    return f"Version {-1 if error.version == 'latest' else error.version} not found."


_LEVELS = "none, backward, forward, full, backward_transitive, forward_transitive, and full_transitive"

ERROR_TABLE: ErrorTable = {
    err.SubjectNotFound: (404, 40401, lambda e, a: f"Subject '{a.subject or e.subject}' not found."),
    err.NamespaceNotFound: (404, 40401, _plain_message),
    err.VersionNotFound: (404, 40402, _version_not_found_message),
    err.ContentNotFound: (404, 40403, _plain_message),
    err.SettingNotFound: (404, 40408, _plain_message),
    err.NotFound: (404, 404, _plain_message),
    NoSuchResource: (404, 404, _plain_message),
    err.AlreadySoftDeleted: (404, 40404, _soft_deleted_message),
    err.NotSoftDeleted: (404, 40405, _not_soft_deleted_message),
    err.Incompatible: (409, 409, _incompatible_message),
    err.Conflict: (409, 409, _plain_message),
    err.InUse: (422, 42206, _in_use_message),
    err.NotEmpty: (422, 42211, lambda e, a: f"The specified context '{context_name(e.space)}' is not empty."),
    NotJson: (400, 400, _plain_message),
    InvalidContext: (400, 400, _plain_message),
    UnknownConstant: (400, 400, _plain_message),
    WrongShape: (422, 422, _plain_message),
    err.Invalid: (422, 422, _plain_message),
    err.InvalidRequest: (422, 42201, _plain_message),
    err.MalformedSchema: (422, 42201, _plain_message),
    RefusedText: (422, 42201, lambda e, a: _malformed_message(e)),
    err.UnknownFormat: (422, 42201, _plain_message),
    err.FormatMismatch: (422, 42201, _plain_message),
    err.InvalidVersion: (
        422,
        42202,
        lambda e, a: (
            f"The specified version '{decode_segment(e.version)}' is not a valid version id. "
            'Allowed values are between [1, 2^31-1] and the string "latest"'
        ),
    ),
    err.UnknownPolicy: (422, 42203, lambda e, a: f"Invalid compatibility level. Valid values are {_LEVELS}"),
    err.UnknownMode: (
        422,
        42204,
        lambda e, a: "Invalid mode. Valid values are READWRITE, READONLY, IMPORT and FORWARD.",
    ),
    err.ReadOnly: (422, 42205, _read_only_message),
    err.ModeChangeRefused: (422, 42205, _plain_message),
    err.IdTaken: (422, 42205, _id_taken_message),
    err.InvalidName: (422, 42208, lambda e, a: f"The specified subject '{e.name}' is not a valid."),
    err.TooLarge: (422, 42209, lambda e, a: f"Register operation failed because schema is too large: {e}"),
    RegistryFull: (422, 42209, lambda e, a: f"Register operation failed because a limit is reached: {e}"),
    err.QuotaUsedUp: (422, 42209, lambda e, a: f"Register operation failed because a limit is reached: {e}"),
    err.InvalidRuleSet: (422, 42210, _plain_message),
    err.Refused: (403, 403, _plain_message),
    err.Forbidden: (403, 40301, _plain_message),
    err.ForeignSite: (403, 403, _plain_message),
    err.TooManyRequests: (429, 429, _plain_message),
    err.Unauthenticated: (401, 401, _plain_message),
    err.Unavailable: (500, 50001, _plain_message),
    err.StoreTimeout: (500, 50002, _plain_message),
    err.StoreUnreadable: (503, 503, _plain_message),
    err.NewerLog: (503, 503, _plain_message),
    err.Overloaded: (503, 503, _plain_message),
    err.NotInstalled: (501, 501, _plain_message),
    err.SteleError: (500, 500, _plain_message),
    KeyGenerationRefused: (403, 40370, _plain_message),
    KeyNotFound: (404, 40470, _plain_message),
    KeyNotSoftDeleted: (404, 40471, _plain_message),
    KekSoftDeleted: (404, 40472, _plain_message),
    KeyExists: (409, 40971, _plain_message),
    TooManyKeys: (409, 40972, _plain_message),
    InvalidKey: (422, 42271, _plain_message),
    KeyInUse: (422, 42272, _plain_message),
    KeyGenerationFailed: (500, 50070, _plain_message),
    AssociationNotFound: (404, 40410, _plain_message),
    TooManyAssociations: (409, 40902, _plain_message),
    ResourceTaken: (409, 40903, _plain_message),
    SubjectTaken: (409, 40904, _plain_message),
    SubjectOwned: (409, 40905, _plain_message),
    NoActiveVersion: (409, 40907, _plain_message),
    AssociationFrozen: (409, 40908, _plain_message),
    OwnedReference: (422, 42205, _plain_message),
    InvalidAssociation: (422, 42212, _plain_message),
    BatchTooLarge: (422, 42213, _plain_message),
    ExporterNotFound: (404, 40450, _plain_message),
    InvalidExporterName: (409, 40950, _plain_message),
    InvalidExporterConfig: (409, 40951, _plain_message),
    InvalidExporterSubjects: (409, 40952, _plain_message),
    ExporterExists: (409, 40960, _plain_message),
    TooManyExporters: (409, 40964, _plain_message),
}
"""Status, code and wording by error class, as in Confluent's releases."""


def _failed_lookup_message(error: FailedLookup, asking: ErrorContext) -> str:
    return f"Error while looking up schema under subject {asking.subject}"


_DIFFERENCES: Mapping[ProfileName, ErrorTable] = {
    "redpanda": {
        err.Forbidden: (403, 403, _plain_message),
        FailedLookup: (500, 500, _failed_lookup_message),
        err.UnknownMode: (422, 42204, lambda e, a: "Invalid mode. Valid values are READWRITE, READONLY"),
        err.ReadOnly: (422, 42205, lambda e, a: f"Subject {e.subject or 'null'} is {e.how}"),
    },
    "karapace": {
        err.Forbidden: (403, 403, _plain_message),
        FailedLookup: (422, 42201, _failed_lookup_message),
        RefusedText: (
            422,
            42201,
            lambda e, a: karapace.explain_refused_text(e, _shorten_text(e.text), e.references, e.schema_type),
        ),
        RefusedChange: (409, 409, lambda e, a: karapace.explain_refusal(e.level, e.messages)),
    },
}
"""Entries that differ from `ERROR_TABLE`, by profile."""
_TABLES = {name: {**ERROR_TABLE, **_DIFFERENCES.get(name, {})} for name in PROFILES}

ERROR_CODES = tuple(sorted({code for _, code, _ in ERROR_TABLE.values()} | {40406, 40407, 40409}))
"""All error codes of this API, except the HTTP statuses that the framework raises."""


def find_error_answer(error: Exception, asking: ErrorContext) -> ErrorAnswer:
    """Return the response to an error: that of its class or of its nearest ancestor in the table."""
    row = find_by_class(_TABLES[asking.options.profile], error)
    if row is not None:
        status, code, wording = row
        return ErrorAnswer(status, _refine_code(error, code, asking), wording(error, asking))
    if isinstance(error, HTTPException):
        return _http_error_answer(error)
    return ErrorAnswer(500, 500, "Internal Server Error")


def _refine_code(error: Exception, code: int, asking: ErrorContext) -> int:
    """Return the code of an error where it depends on more than its class."""
    match error:
        case err.Incompatible():
            return asking.options.refusal_code
        case err.AlreadySoftDeleted(version=int()) | err.NotSoftDeleted(version=int()):
            return code + 2
        case err.SettingNotFound(setting="mode"):
            return 40409
        case _:
            return code


def _http_error_answer(error: HTTPException) -> ErrorAnswer:
    status = error.status_code
    if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        return ErrorAnswer(422, 42209, "Register operation failed because schema is too large")
    return ErrorAnswer(status, status, f"HTTP {status} {STATUS_PHRASES[status]}")


def create_error_handler(
    options: ConfluentOptions,
) -> Callable[[Request[Any, Any, Any], Exception], Response[ErrorMessage | RefusedBodyMessage]]:
    """Return the exception handler of the application."""

    def handle(request: Request[Any, Any, Any], error: Exception) -> Response[ErrorMessage | RefusedBodyMessage]:
        error = classify_outage(request, error)
        fault = find_error_answer(error, _error_context(request, options))
        body = ErrorMessage(fault.code, fault.message)
        if fault.status >= 500 and not isinstance(error, err.Invalid):
            log_failure(_logger, request.scope["path"], error)
        return Response(
            RefusedBodyMessage(fault.code, error.findings) if isinstance(error, karapace.RefusedBody) else body,
            status_code=fault.status,
            media_type=MEDIA_TYPE,
            headers=error_headers(error),
        )

    return handle


def _error_context(request: Request[Any, Any, Any], options: ConfluentOptions) -> ErrorContext:
    try:
        parameters = request.path_params
        context = str(parameters.get("context", ""))
        subject = parameters.get("subject")
        if subject is not None:
            key = parse_subject_key(str(subject), context)
            return ErrorContext(qualify_subject(key), context_name(key.namespace), options)
        return ErrorContext("", context_name(parse_context(context)), options)
    except (err.SteleError, KeyError):
        # The path itself is invalid, or no route matched it.
        return ErrorContext("", context_name(SubjectKey("", "").namespace), options)
