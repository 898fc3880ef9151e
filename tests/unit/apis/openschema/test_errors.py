"""Errors of the OpenSchema dialect: every class of the tree has a code that begins with its status."""

from __future__ import annotations

import inspect

import pytest
from litestar.exceptions import HTTPException

from stele import errors
from stele.apis.http.errors import error_message
from stele.apis.http.requests import NotJson
from stele.apis.openschema.errors import code_of


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.Unauthenticated("who?"), 40101),
        (errors.ReadOnly("closed"), 40301),
        (errors.SubjectNotFound("s"), 40401),
        (errors.ContentNotFound(1), 40401),
        (errors.VersionNotFound(1), 40402),
        (errors.Incompatible("s", ()), 40901),
        (errors.InUse("s", 1), 40901),
        (errors.UnknownRuleset("none"), 40901),
        (errors.MalformedSchema("{"), 42201),
        (errors.FormatMismatch("avro"), 42201),
        (errors.UnknownPolicy("p"), 42201),
        (errors.TooLarge("much"), 42201),
        (NotJson("no"), 42201),
        (errors.InvalidVersion("x"), 42202),
        (errors.StoreError("disk"), 50001),
        (errors.StoreTimeout("slow"), 50002),
        (errors.NewerLog("newer"), 50301),
        (errors.NotInstalled("x", "y"), 50101),
        (HTTPException(status_code=415), 41500),
        (ValueError("defect"), 50001),
    ],
)
def test_codes(error: Exception, code: int) -> None:
    """The code is that of the specification where it has one."""
    assert code_of(error) == code


def test_every_error_has_an_answer() -> None:
    """Errors that the caller caused have codes below 500, whatever their class."""
    classes = [cls for _, cls in inspect.getmembers(errors, inspect.isclass) if issubclass(cls, errors.SteleError)]
    for cls in classes:
        error = cls.__new__(cls)
        code = code_of(error)
        assert 40000 <= code < 60000
        if issubclass(cls, errors.NotFound | errors.Conflict | errors.Invalid | errors.Refused):
            assert code < 50000, cls


def test_defects_tell_nothing() -> None:
    """The message of a defect has no details."""
    assert "secret" not in error_message(ValueError("secret"))
    assert error_message(HTTPException(status_code=405, detail="secret")) == "Method Not Allowed"
