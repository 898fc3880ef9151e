"""Every error has a response in the Confluent dialect."""

import inspect

import pytest
from litestar.exceptions import HTTPException

from stele import errors as err
from stele.apis.confluent.errors import ERROR_CODES, ERROR_TABLE, ErrorContext, find_error_answer
from stele.apis.confluent.options import ConfluentOptions
from stele.core.findings import Finding
from stele.service.limits import RegistryFull

ASKING = ErrorContext("s", ".", ConfluentOptions())

ERRORS = [
    (err.SubjectNotFound("s"), 404, 40401, "Subject 's' not found."),
    (err.VersionNotFound(3), 404, 40402, "Version 3 not found."),
    (err.VersionNotFound("latest"), 404, 40402, "Version -1 not found."),
    (err.ContentNotFound(), 404, 40403, "Schema not found"),
    (err.ContentNotFound(7), 404, 40403, "Schema 7 not found"),
    (
        err.AlreadySoftDeleted("s"),
        404,
        40404,
        "Subject 's' was soft deleted.Set permanent=true to delete permanently",
    ),
    (err.NotSoftDeleted("s"), 404, 40405, "Subject 's' was not deleted first before being permanently deleted"),
    (
        err.AlreadySoftDeleted("s", 2),
        404,
        40406,
        "Subject 's' Version 2 was soft deleted.Set permanent=true to delete permanently",
    ),
    (
        err.NotSoftDeleted("s", 2),
        404,
        40407,
        "Subject 's' Version 2 was not deleted first before being permanently deleted",
    ),
    (
        err.SettingNotFound("s", "compatibility"),
        404,
        40408,
        "Subject 's' does not have subject-level compatibility configured",
    ),
    (err.SettingNotFound("s", "mode"), 404, 40409, "Subject 's' does not have subject-level mode configured"),
    (err.StoreError("disk"), 500, 50001, "disk"),
    (err.StoreTimeout("late"), 500, 50002, "late"),
    (err.NewerLog("newer"), 503, 503, "newer"),
    (err.Forbidden("no"), 403, 40301, "no"),
    (err.ForeignSite("no"), 403, 403, "no"),
    (err.Unauthenticated("who"), 401, 401, "who"),
    (err.NotInstalled("x", "y"), 501, 501, "x is not installed: pip install 'stele-registry[y]'"),
    (HTTPException(status_code=404), 404, 404, "HTTP 404 Not Found"),
    (HTTPException(status_code=413), 422, 42209, "Register operation failed because schema is too large"),
    (err.TooLarge("2 MB"), 422, 42209, "Register operation failed because schema is too large: 2 MB"),
    (RegistryFull("9 schemas"), 422, 42209, "Register operation failed because a limit is reached: 9 schemas"),
    (KeyError("internal"), 500, 500, "Internal Server Error"),
]


@pytest.mark.parametrize(("error", "status", "code", "message"), ERRORS, ids=lambda value: str(value)[:40])
def test_answers(error: Exception, status: int, code: int, message: str) -> None:
    """Status, code and message are those of Confluent's registry."""
    assert find_error_answer(error, ASKING) == (status, code, message)


def test_every_error_has_an_answer_of_its_family() -> None:
    """Every error has an entry; only errors of the store, of data and of missing packages are server errors."""
    below = (err.Unavailable, err.NotInstalled, err.DataError)
    for _, cls in inspect.getmembers(err, inspect.isclass):
        if issubclass(cls, err.SteleError) and cls is not err.SteleError:
            status, _, _ = next(ERROR_TABLE[base] for base in cls.__mro__ if base in ERROR_TABLE)
            assert (status >= 500) == issubclass(cls, below), cls


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (ConfluentOptions(), 409),
        (ConfluentOptions(profile="7.9"), 409),
        (ConfluentOptions(profile="8.2"), 40901),
        (ConfluentOptions(incompatible_code=40901), 40901),
        (ConfluentOptions(profile="8.2", incompatible_code=409), 409),
    ],
)
def test_the_code_of_a_refusal_is_that_of_the_release(options: ConfluentOptions, code: int) -> None:
    """Later releases answer 40901 with the same status; a setting overrides the code."""
    error = err.Incompatible("s", [Finding("RULE", "/a")])
    assert find_error_answer(error, ErrorContext("s", ".", options))[:2] == (409, code)


def test_a_new_error_is_answered_like_its_ancestor() -> None:
    """An error class without an entry gets the response of its ancestor."""

    class Newer(err.VersionNotFound):
        pass

    assert find_error_answer(Newer(1), ASKING)[:2] == (404, 40402)


def test_codes_follow_their_status() -> None:
    """A code is a status, or begins with one."""
    assert all(code < 600 or 400 <= code // 100 < 600 for code in ERROR_CODES)
