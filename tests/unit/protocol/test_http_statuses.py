"""The phrases of HTTP statuses."""

from __future__ import annotations

from http import HTTPStatus

from stele.protocol.http_statuses import STATUS_PHRASES


def test_the_table_has_every_status() -> None:
    """A status that Python knows has a phrase; it is Python's but for those that a newer RFC has renamed."""
    assert set(STATUS_PHRASES) >= {*HTTPStatus}
    others = {status.value for status in HTTPStatus if status.phrase != STATUS_PHRASES[status]}
    assert others <= {413, 414, 416, 422}


def test_renamed_statuses_keep_their_phrase() -> None:
    """Clients read the same words from a server on every Python."""
    assert {status: STATUS_PHRASES[status] for status in (413, 414, 416, 422)} == {
        413: "Request Entity Too Large",
        414: "Request-URI Too Long",
        416: "Requested Range Not Satisfiable",
        422: "Unprocessable Entity",
    }
