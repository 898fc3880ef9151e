"""Endpoints that are called without Litestar give the same answers as through Litestar."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from stele.apis.http.plain_endpoints import PLAIN
from stele.server.in_process import InProcessServer, InProcessTransport
from stele.server.settings import ServerSettings

INT, LONG = (
    {"schema": f'{{"type":"record","name":"R","fields":[{{"name":"a","type":"{kind}"}}]}}'} for kind in ("int", "long")
)
WORSE = {"schema": '{"type":"record","name":"R","fields":[{"name":"b","type":"int"}]}'}
OF_EACH_REQUEST = {"x-request-id", "content-length"}


@pytest.fixture(scope="module")
def server() -> Iterator[httpx.Client]:
    """A client of a server with one schema in two contexts. It limits requests to 2,000 bytes."""
    running = InProcessServer(ServerSettings(store="memory:", max_request_bytes=2000, answer_cache_bytes=0))
    with httpx.Client(transport=InProcessTransport(running), base_url="http://stele") as client:
        for name in ("s", ":.other:s"):
            assert client.post(f"/subjects/{name}/versions", json=INT).status_code == 200
        yield client
    running.stop()


@pytest.mark.parametrize(
    "path", ["/subjects/s", "/subjects/none", "/subjects/s/versions", "/compatibility/subjects/s/versions/latest"]
)
@pytest.mark.parametrize("prefix", ["", "/contexts/.other"])
@pytest.mark.parametrize(
    "sent",
    [
        {"json": INT},
        {"json": WORSE},
        {"json": {"schema": "{"}},
        {"content": b"[]"},
        {"content": b"\xff"},
        {"content": b""},
        {"json": {"schema": " " * 3000}},
        {"json": INT, "headers": {"content-type": "text/plain"}},
        {"json": INT, "headers": {"accept": "image/png"}},
        {"json": INT, "headers": {"accept": "application/json"}},
    ],
)
def test_a_query_changes_nothing(server: httpx.Client, path: str, prefix: str, sent: dict[str, Any]) -> None:
    """A request without a query, which bypasses Litestar, gets the same response as with an unknown query parameter."""
    answers = [server.post(f"{prefix}{path}{query}", **sent) for query in ("", "?x=1")]
    plain, framed = answers
    assert plain.status_code == framed.status_code
    assert plain.json() == framed.json()
    assert set(plain.headers) == set(framed.headers)
    assert [plain.headers[name] for name in plain.headers if name not in OF_EACH_REQUEST] == [
        framed.headers[name] for name in framed.headers if name not in OF_EACH_REQUEST
    ]


def test_names_are_decoded_alike(server: httpx.Client) -> None:
    """An encoded slash is part of the name, with and without a query."""
    for query in ("", "?x=1"):
        answer = server.post(f"/subjects/a%2Fb%20{'c' if query else 'd'}/versions{query}", json=LONG)
        assert answer.status_code == 200
    assert {"a/b c", "a/b d"} < set(server.get("/subjects").json())


def test_what_the_endpoints_need_is_all_they_take() -> None:
    """Endpoints with the option `PLAIN` have defaults for all parameters that they would not get."""
    import inspect

    from stele.apis.confluent.routes import subjects

    marked = [route for route in subjects.ROUTES if PLAIN in (route.opt or {})]
    assert len(marked) == 4
    for route in marked:
        needed = {name for name, each in inspect.signature(route.fn).parameters.items() if each.default is each.empty}
        assert needed <= {"operations", "request", "subject", "version"}
