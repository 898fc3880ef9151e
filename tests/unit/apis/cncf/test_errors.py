"""Every error has a response in both flavours."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from litestar.exceptions import MethodNotAllowedException, NotFoundException

from stele import errors as err
from stele.apis.cncf.errors import AZURE_CODES, STATUSES, azure_reply_to, status_of
from stele.core.findings import Finding


def _below(cls: type[err.SteleError]) -> Iterator[type[err.SteleError]]:
    yield cls
    for child in cls.__subclasses__():
        if child.__module__ == err.__name__:
            yield from _below(child)


@pytest.mark.parametrize("cls", list(_below(err.SteleError)), ids=lambda cls: cls.__name__)
def test_every_error_has_an_answer(cls: type[err.SteleError]) -> None:
    """Both flavours have the same status, except for a document of another format: Azure answers it with 415."""
    error = cls.__new__(cls)
    Exception.__init__(error, "why")
    error.__dict__.update(findings=(), subject="s", space="", against=None, version=1, how="closed")
    fault = azure_reply_to(error)
    wanted = 415 if cls is err.FormatMismatch else status_of(error)
    assert fault.status == wanted
    assert fault.code.isalpha()
    assert fault.message
    assert (
        status_of(error) < 500
        or issubclass(cls, err.Unavailable | err.NotInstalled | err.DataError)
        or cls is err.SteleError
    )


def test_both_tables_know_the_same_statuses() -> None:
    """Both tables contain the same statuses, except for Azure's 415."""
    assert {status for status, _ in AZURE_CODES.values()} - {415} == set(STATUSES.values())


@pytest.mark.parametrize(
    ("error", "status"), [(NotFoundException(), 404), (MethodNotAllowedException(), 405), (KeyError(), 500)]
)
def test_errors_of_the_framework(error: Exception, status: int) -> None:
    """Errors of Litestar keep their status; the message of a defect has no details."""
    fault = azure_reply_to(error)
    assert (fault.status, status_of(error)) == (status, status)
    assert "KeyError" not in fault.message


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (err.SubjectNotFound("s"), "The schema 's' does not exist."),
        (err.InUse("s", 2), "Other schemas refer to version 2 of the schema 's'."),
        (err.ReadOnly("", subject="s"), "The schema 's' is in read-only mode."),
        (err.ReadOnly("", namespace="default"), "The group 'default~' is in read-only mode."),
        (err.ReadOnly("everything is closed"), "everything is closed"),
        (err.Incompatible("s", ()), "The policy in force refuses the document for the schema 's'."),
        (
            err.Incompatible("s", [Finding("R", "/a", why="why")], against=3),
            "The document is not compatible with version 3 of the schema 's'. /a: why",
        ),
    ],
)
def test_words_are_those_of_the_api(error: err.SteleError, sentence: str) -> None:
    """Messages name groups and schemas, not namespaces and subjects; Azure's message has the reasons."""
    assert azure_reply_to(error).message == sentence
