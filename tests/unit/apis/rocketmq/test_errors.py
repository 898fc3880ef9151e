"""Errors of the RocketMQ dialect: every class of the tree has an HTTP status and a five-digit number."""

from __future__ import annotations

import inspect

import pytest
from litestar.exceptions import HTTPException

from stele import errors
from stele.apis.http.errors import error_message
from stele.apis.http.requests import NotJson
from stele.apis.rocketmq.errors import NUMBERS, SameSchema, numbers_of
from stele.core.findings import Finding


@pytest.mark.parametrize(
    ("error", "http_status", "status"),
    [
        (errors.Unauthenticated("who?"), 401, 40101),
        (errors.Forbidden("no"), 403, 40301),
        (errors.ReadOnly("closed"), 403, 40301),
        (errors.AlreadyExists("there"), 409, 40401),
        (errors.SubjectNotFound("s"), 404, 40402),
        (errors.VersionNotFound(1), 404, 40402),
        (errors.ContentNotFound(1), 404, 40402),
        (errors.BindingNotFound("t"), 404, 40402),
        (errors.Incompatible("s", ()), 409, 40901),
        (SameSchema("same"), 409, 40901),
        (errors.FormatMismatch("avro"), 409, 40901),
        (errors.UnknownRuleset("none"), 409, 40901),
        (errors.InUse("s", 1), 409, 40901),
        (errors.MalformedSchema("{"), 422, 42201),
        (errors.UnresolvedReference("r"), 422, 42201),
        (errors.UnknownPolicy("p"), 400, 40001),
        (errors.UnknownFormat("f"), 400, 40001),
        (errors.TooLarge("much"), 400, 40001),
        (NotJson("no"), 400, 40001),
        (errors.StoreTimeout("slow"), 500, 50001),
        (errors.NewerLog("newer"), 503, 50301),
        (errors.NotInstalled("x", "y"), 501, 50101),
        (HTTPException(status_code=405), 405, 40500),
        (ValueError("defect"), 500, 50001),
    ],
)
def test_numbers(error: Exception, http_status: int, status: int) -> None:
    """Errors have a valid HTTP status, and the API's own number if it has one."""
    assert numbers_of(error) == (http_status, status)


def test_numbers_begin_with_the_status() -> None:
    """All numbers begin with their HTTP status, except 40401, which the original uses for a conflict."""
    assert {fault.status for fault in NUMBERS.values() if fault.status // 100 != fault.http_status} == {40401}


def test_every_error_has_an_answer() -> None:
    """Errors that the caller caused have a status below 500, whatever their class."""
    classes = [cls for _, cls in inspect.getmembers(errors, inspect.isclass) if issubclass(cls, errors.SteleError)]
    for cls in classes:
        error = cls.__new__(cls)
        assert numbers_of(error).http_status < 600
        if issubclass(cls, errors.NotFound | errors.Conflict | errors.Invalid | errors.Refused):
            assert numbers_of(error).http_status < 500, cls


def test_messages() -> None:
    """A refusal lists its reasons, at most twenty; the message of a defect has no details."""
    findings = [Finding("A", f"/{number}", why="Because.") for number in range(30)]
    message = error_message(errors.Incompatible("s", findings, against=3))
    assert message.endswith("; /0: Because." + "".join(f"; /{number}: Because." for number in range(1, 20)))
    assert "secret" not in error_message(ValueError("secret"))
    assert error_message(HTTPException(status_code=405, detail="secret")) == "Method Not Allowed"
