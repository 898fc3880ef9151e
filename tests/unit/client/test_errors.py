"""Error responses become the exception of their code, and keep all that the server reported."""

from __future__ import annotations

import pickle
from typing import Any

import msgspec
import pytest

from stele import errors
from stele.client import RequestFailure, ResponseError
from stele.client.errors import read_failure, response_error


def failure(status: int, code: int, **more: Any) -> RequestFailure:
    """Return a refused request with a short message."""
    return RequestFailure("GET", "http://one/x", status, code, "the server's sentence", **more)


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (404, 40401, errors.SubjectNotFound),
        (404, 40402, errors.VersionNotFound),
        (404, 40403, errors.ContentNotFound),
        (404, 40404, errors.AlreadySoftDeleted),
        (404, 40405, errors.NotSoftDeleted),
        (404, 40406, errors.AlreadySoftDeleted),
        (404, 40407, errors.NotSoftDeleted),
        (404, 40408, errors.SettingNotFound),
        (404, 40409, errors.SettingNotFound),
        (404, 40410, errors.BindingNotFound),
        (409, 40901, errors.Incompatible),
        (409, 409, errors.Incompatible),
        (409, 40904, errors.Conflict),
        (422, 42201, errors.MalformedSchema),
        (422, 42202, errors.InvalidVersion),
        (422, 42203, errors.UnknownPolicy),
        (422, 42204, errors.UnknownMode),
        (422, 42205, errors.ReadOnly),
        (422, 42206, errors.InUse),
        (422, 42207, errors.IdMismatch),
        (422, 42208, errors.InvalidName),
        (422, 42209, errors.TooLarge),
        (422, 42210, errors.InvalidRuleSet),
        (422, 42211, errors.NotEmpty),
        (500, 50001, errors.StoreError),
        (500, 50002, errors.StoreTimeout),
        (500, 50003, errors.Unavailable),
        (404, 404, errors.NotFound),
        (401, 401, errors.Unauthenticated),
        (403, 40301, errors.Forbidden),
        (400, 400, errors.InvalidRequest),
        (413, 413, errors.TooLarge),
        (429, 42901, errors.Unavailable),
        (503, 50301, errors.Unavailable),
    ],
)
def test_code_chooses_the_class(status: int, code: int, kind: type[errors.SteleError]) -> None:
    """Every error is both its domain error and a `ResponseError`."""
    error = response_error(failure(status, code))
    assert isinstance(error, kind)
    assert isinstance(error, ResponseError)
    assert (error.status, error.error_code, error.message) == (status, code, "the server's sentence")


def test_domain_attributes_come_from_the_request() -> None:
    """The client's errors have the attributes of the library's own errors."""
    error = response_error(failure(404, 40407, subject="s", version="3"))
    assert isinstance(error, errors.NotSoftDeleted)
    assert (error.subject, error.version) == ("s", 3)


def test_latest_stays_a_word() -> None:
    """An error about `latest` has no version number."""
    error = response_error(failure(404, 40402, version="latest"))
    assert isinstance(error, errors.VersionNotFound)
    assert error.version == "latest"


def test_message_tells_where() -> None:
    """The message contains the server's reason, the request, and the code."""
    assert str(response_error(failure(404, 40401))) == "the server's sentence (GET http://one/x: 404, code 40401)"


def test_errors_travel_between_processes() -> None:
    """A pickled error keeps its class and content."""
    error = response_error(failure(404, 40401, subject="s"))
    copy: Any = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert isinstance(copy, errors.SubjectNotFound)
    assert (copy.subject, str(copy)) == ("s", str(error))


@pytest.mark.parametrize(
    ("status", "body", "code", "message"),
    [
        (404, {"error_code": 40401, "message": "gone"}, 40401, "gone"),
        (404, "Not Found", 404, "Not Found"),
        (422, {"error_code": 422, "message": [{"loc": "schema"}]}, 422, '[{"loc":"schema"}]'),
        (502, b"<html>Bad gateway</html>", 502, "<html>Bad gateway</html>"),
        (503, b"", 503, "Service Unavailable"),
        (500, [], 500, "Internal Server Error"),
        (599, b"", 599, "the server gave no reason"),
        (500, {"error_code": "x", "message": None}, 500, "Internal Server Error"),
        (500, b"\xff\xfe", 500, "\ufffd\ufffd"),
    ],
)
def test_bodies_of_all_makes_are_understood(status: int, body: Any, code: int, message: str) -> None:
    """Error bodies of other vendors and proxies result in a code and a message too."""
    raw = body if isinstance(body, bytes) else msgspec.json.encode(body)
    error = read_failure(raw, method="GET", url="u", status=status, subject="", version="", retry_after=None)
    assert (error.error_code, error.message, error.body) == (code, message, raw)
