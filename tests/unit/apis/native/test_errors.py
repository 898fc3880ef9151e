"""Errors of the native API have one shape."""

import msgspec
import pytest
from litestar.exceptions import HTTPException

from stele import errors as err
from stele.apis.http.requests import NotJson, WrongShape
from stele.apis.native.errors import SchemaProblem, describe_error, http_status


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        (err.SubjectNotFound("s"), 404, "subject_not_found"),
        (err.Incompatible("s", []), 409, "incompatible"),
        (err.PreconditionFailed("x"), 412, "precondition_failed"),
        (err.UnknownFormat("x"), 422, "unknown_format"),
        (err.UnresolvedReference("x"), 422, "unresolved_reference"),
        (err.TooLarge("x"), 413, "too_large"),
        (err.Forbidden("x"), 403, "forbidden"),
        (err.Unauthenticated("x"), 401, "unauthenticated"),
        (err.StoreTimeout("x"), 503, "store_timeout"),
        (err.NotInstalled("x", "y"), 501, "not_installed"),
        (NotJson("x"), 400, "invalid_request"),
        (WrongShape("x"), 422, "invalid_request"),
        (HTTPException(status_code=404), 404, "not_found"),
        (HTTPException(status_code=413), 413, "request_entity_too_large"),
        (KeyError("secret"), 500, "internal_error"),
    ],
)
def test_statuses_and_kinds(error: Exception, status: int, kind: str) -> None:
    """Status and kind are those of the error's class, or of its ancestor in the error tree."""
    assert http_status(error) == status
    assert describe_error(error).kind == kind
    assert "secret" not in describe_error(error).message


def test_malformed_schemas_say_where() -> None:
    """Line, column, path and expectation are separate members."""
    error = err.MalformedSchema("bad", line=2, column=3, path="/a", expected="good")
    assert msgspec.to_builtins(describe_error(error)) == {
        "kind": "malformed_schema",
        "message": "bad",
        "line": 2,
        "column": 3,
        "path": "/a",
        "expected": "good",
    }
    assert describe_error(err.UnknownPolicy("x")) == SchemaProblem("unknown_policy", "x", None, None, None, None)
