"""Media types: which one is chosen of those that the client accepts and the server offers."""

import pytest

from stele.apis.http.media_types import bare_media_type, choose_media_type, is_preferred

OFFERED = {"application/x.v1+json": 1.0, "application/x+json": 0.9, "application/json": 0.5}


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        ("", "application/x.v1+json"),
        ("*/*", "application/x.v1+json"),
        ("text/html, *; q=.2, */*; q=.2", "application/x.v1+json"),
        ("*", "application/x.v1+json"),
        ("application/*", "application/x.v1+json"),
        ("application/json", "application/json"),
        ("APPLICATION/JSON", "application/json"),
        ("application/json, application/x+json", "application/x+json"),
        ("application/json;q=0.9, application/x+json;q=0.1", "application/json"),
        ("application/json; q=0.2, */*; q=0.1", "application/json"),
        ("application/x.v1+json;q=0, */*", "application/x+json"),
        ("text/html, application/json;q=0.1", "application/json"),
        ("text/html", None),
        ("*/*;q=0", None),
        ("application/json;q=nonsense", None),
        (",,,", "application/x.v1+json"),
        ("application/json;charset=utf-8", "application/json"),
    ],
)
def test_negotiation(accept: str, chosen: str | None) -> None:
    """The client's weights decide, then the server's preference; the most specific range of the client applies."""
    assert choose_media_type(accept, OFFERED) == chosen


def test_bare_media_type() -> None:
    """Parameters and case are removed."""
    assert bare_media_type("Application/JSON; charset=utf-8") == "application/json"
    assert bare_media_type("") == ""


@pytest.mark.parametrize(
    ("accept", "first"),
    [
        ("", False),
        ("*/*", False),
        ("application/*", False),
        ("a/x", True),
        ("A/X;q=0.2", True),
        ("a/x, a/y", True),
        ("a/y;q=0.9, a/x;q=0.8", False),
        ("a/y;q=0.8, a/x;q=0.9, */*;q=0.1", True),
        ("a/x;q=0", False),
        ("a/x;q=nan", False),
        ("a/x;q=nonsense", False),
        ("a/x;q=0, a/x", True),
        (", ,", False),
    ],
)
def test_what_a_client_would_like_best(accept: str, first: bool) -> None:
    """A media type is preferred if the header names it literally and nothing else has a greater weight."""
    assert is_preferred(accept, "a/x") is first
