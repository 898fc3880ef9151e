"""The phrases of HTTP statuses."""

from __future__ import annotations

from http import HTTPStatus

from stele.protocol.http_statuses import STATUS_PHRASES


def test_the_table_has_every_status() -> None:
    """Every status that Python knows has Python's phrase, except those that a newer RFC renamed."""
    assert set(STATUS_PHRASES) >= {*HTTPStatus}
    others = {status.value for status in HTTPStatus if status.phrase != STATUS_PHRASES[status]}
    assert others <= {413, 414, 416, 422}


def test_renamed_statuses_keep_their_phrase() -> None:
    """A server sends the same phrases on every Python release."""
    assert {status: STATUS_PHRASES[status] for status in (413, 414, 416, 422)} == {
        413: "Request Entity Too Large",
        414: "Request-URI Too Long",
        416: "Requested Range Not Satisfiable",
        422: "Unprocessable Entity",
    }
