"""Error responses of a registry as exceptions.

A server reports an error by a status, an `error_code` and a message. `response_error` makes one exception of them. It
is both a `ResponseError`, with all that the server reported, and the domain error of the code. So `except
SubjectNotFound` works the same with the library, a Stele server, or another vendor's.

Source: docs/protocols/confluent.md#error-codes, docs/protocols/karapace.md, docs/protocols/redpanda.md.
"""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Any, cast

import msgspec

from stele import errors
from stele.errors import SteleError
from stele.protocol.http_statuses import STATUS_PHRASES

_LONGEST = 20_000  # characters of a server's sentence
_EXCERPT = 300  # characters of a body that is not JSON


class RequestFailure(msgspec.Struct, frozen=True):
    """What is known about a refused request.

    error_code   the server's own code; the status where the body has none
    message      the server's message, or the beginning of its body
    url          without user and password
    body         as received
    subject      the subject, or context, of the request
    version      the version of the request, '' for none
    retry_after  seconds the server asks to wait, or None
    """

    method: str
    url: str
    status: int
    error_code: int
    message: str
    body: bytes = b""
    subject: str = ""
    version: str = ""
    retry_after: float | None = None


class ResponseError(SteleError):
    """An error response of the server. `response_error` makes its subclasses; catch the domain error or this class."""

    def __init__(self, failure: RequestFailure) -> None:
        code = "" if failure.error_code == failure.status else f", code {failure.error_code}"
        # Not super(): the domain error would come next, and `response_error` has run its constructor already.
        SteleError.__init__(self, f"{failure.message} ({failure.method} {failure.url}: {failure.status}{code})")
        self.failure = failure

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.failure.status

    @property
    def error_code(self) -> int:
        """The server's own code, or the status."""
        return self.failure.error_code

    @property
    def message(self) -> str:
        """The server's message."""
        return self.failure.message

    @property
    def method(self) -> str:
        """Method of the request."""
        return self.failure.method

    @property
    def url(self) -> str:
        """Address of the request."""
        return self.failure.url

    @property
    def body(self) -> bytes:
        """Body of the response as received."""
        return self.failure.body

    def __reduce__(self) -> tuple[Callable[[RequestFailure], ResponseError], tuple[RequestFailure]]:
        return response_error, (self.failure,)


def read_failure(
    body: bytes, *, method: str, url: str, status: int, subject: str, version: str, retry_after: float | None
) -> RequestFailure:
    """Parse the body of an error response. A body in another format, such as a proxy's page, is quoted in part."""
    error_code: object = None
    message: object = None
    try:
        answer = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        message = body.decode(errors="replace").strip()[:_EXCERPT]
    else:
        if isinstance(answer, dict):
            own = answer.get("error")  # Stele's own API wraps its problem
            members = own if isinstance(own, dict) else answer
            error_code, message = members.get("error_code"), members.get("message")
        elif isinstance(answer, str):
            message = answer
    return RequestFailure(
        method=method,
        url=url,
        status=status,
        error_code=error_code if isinstance(error_code, int) else status,
        message=_as_sentence(message) or STATUS_PHRASES.get(status, "the server gave no reason"),
        body=body,
        subject=subject,
        version=version,
        retry_after=retry_after,
    )


def response_error(failure: RequestFailure) -> ResponseError:
    """Return the exception for a refused request.

    Its class is that of the `error_code`, else that of the HTTP status, else a plain `ResponseError`.
    """
    domain, arguments = _CODES.get(failure.error_code) or _STATUSES.get(failure.status) or _fallback(failure.status)
    kind = _make_error_class(domain)
    error = kind.__new__(kind)
    cast("Any", domain).__init__(error, *arguments(failure))
    ResponseError.__init__(error, failure)
    return error


_KINDS: dict[type[SteleError], type[ResponseError]] = {SteleError: ResponseError}


def _make_error_class(domain: type[SteleError]) -> type[ResponseError]:
    """Return the class that is both a `ResponseError` and this domain error. Each class is created once."""
    if domain not in _KINDS:
        namespace = {"__module__": __name__, "__doc__": domain.__doc__}
        _KINDS.setdefault(domain, type(domain.__name__, (ResponseError, domain), namespace))
    return _KINDS[domain]


def _as_sentence(message: object) -> str:
    """Return the message as text.

    Most servers send a string. Karapace sends a list of objects when fields are missing.
    """
    if message is None:
        return ""
    return (message if isinstance(message, str) else msgspec.json.encode(message).decode())[:_LONGEST]


_Arguments = Callable[[RequestFailure], tuple[Any, ...]]
_Entry = tuple[type[SteleError], _Arguments]


def _number(failure: RequestFailure) -> int | None:
    return int(failure.version) if failure.version.isdecimal() else None


def _message(failure: RequestFailure) -> tuple[Any, ...]:
    return (failure.message,)


def _subject(failure: RequestFailure) -> tuple[Any, ...]:
    return (failure.subject,)


def _place(failure: RequestFailure) -> tuple[Any, ...]:
    return failure.subject, _number(failure)


_CODES: dict[int, _Entry] = {
    409: (errors.Incompatible, lambda failure: (failure.subject, ())),  # registration: Karapace, Redpanda, before 8.2
    40401: (errors.SubjectNotFound, _subject),
    40402: (errors.VersionNotFound, lambda failure: (_number(failure) or failure.version,)),
    40403: (errors.ContentNotFound, lambda _: ()),
    40404: (errors.AlreadySoftDeleted, _subject),
    40405: (errors.NotSoftDeleted, _subject),
    40406: (errors.AlreadySoftDeleted, _place),
    40407: (errors.NotSoftDeleted, _place),
    40408: (errors.SettingNotFound, lambda failure: (failure.subject, "compatibility")),
    40409: (errors.SettingNotFound, lambda failure: (failure.subject, "mode")),
    40410: (errors.BindingNotFound, _message),
    40901: (errors.Incompatible, lambda failure: (failure.subject, ())),
    42201: (errors.MalformedSchema, _message),
    42202: (errors.InvalidVersion, lambda failure: (failure.version,)),
    42203: (errors.UnknownPolicy, _message),
    42204: (errors.UnknownMode, _message),
    42205: (errors.ReadOnly, _message),
    42206: (errors.InUse, lambda failure: (failure.subject, _number(failure) or 0)),
    42207: (errors.IdMismatch, _message),
    42208: (errors.InvalidName, _subject),
    42209: (errors.TooLarge, _message),
    42210: (errors.InvalidRuleSet, _message),
    42211: (errors.NotEmpty, _subject),
    50001: (errors.StoreError, _message),
    50002: (errors.StoreTimeout, _message),
}

_STATUSES: dict[int, _Entry] = {
    401: (errors.Unauthenticated, _message),
    403: (errors.Forbidden, _message),
    404: (errors.NotFound, _message),
    409: (errors.Conflict, _message),
    412: (errors.PreconditionFailed, _message),
    413: (errors.TooLarge, _message),
    429: (errors.Unavailable, _message),
}


def _fallback(status: int) -> _Entry:
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return errors.Unavailable, _message
    if status >= HTTPStatus.BAD_REQUEST:
        return errors.InvalidRequest, _message
    return SteleError, _message
