"""Errors of the AVRO-1124 and schema-repo dialects: every class of the tree has a status and a text."""

from __future__ import annotations

import inspect

import pytest
from litestar.exceptions import HTTPException

from stele import errors
from stele.apis.schema_repo.errors import describe_error
from stele.core.findings import Finding


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        (errors.SubjectNotFound("s"), 404, "ERROR: This subject does not exist.\n"),
        (errors.ContentNotFound("1"), 404, "ERROR: This schema does not exist.\n"),
        (errors.VersionNotFound(1), 404, "ERROR: This schema does not exist.\n"),
        (errors.PreconditionFailed("late"), 409, "ERROR: late\n"),
        (errors.UnknownPolicy("what"), 400, "ERROR: what\n"),
        (errors.UnknownRuleset("what"), 400, "ERROR: what\n"),
        (errors.TooLarge("much"), 413, "ERROR: much\n"),
        (errors.ReadOnly("closed"), 403, "ERROR: closed\n"),
        (errors.StoreTimeout("slow"), 503, "ERROR: slow\n"),
        (HTTPException(status_code=405, detail="secret"), 405, "ERROR: HTTP 405 Method Not Allowed\n"),
        (ValueError("secret"), 500, "ERROR: internal error; the log of the server has the details\n"),
    ],
)
def test_statuses(error: Exception, status: int, text: str) -> None:
    """The class of an error decides status and text; the text of a defect has no details."""
    assert describe_error(error) == (status, text)


def test_refusals_tell_every_reason() -> None:
    """A refusal is 403 with a message and a line for each finding: its rule, and path and fix if it has them."""
    findings = [Finding("A", "/x", why="Because.", fix="Do not."), Finding("B", "", why="So.")]
    status, text = describe_error(errors.Incompatible("s", findings, against=3))
    assert status == 403
    assert text.splitlines()[1:] == ["- A at /x: Because. (Do not.)", "- B: So."]


def test_no_error_of_the_tree_is_a_defect() -> None:
    """Every error class has a response, its own or that of an ancestor."""
    for _, cls in inspect.getmembers(errors, inspect.isclass):
        if issubclass(cls, errors.SteleError) and cls is not errors.SteleError and cls is not errors.DataError:
            error = cls.__new__(cls)
            if not issubclass(cls, errors.Incompatible | errors.DataError):
                assert describe_error(error)[0] in {400, 401, 403, 404, 409, 413, 429, 501, 503}, cls
