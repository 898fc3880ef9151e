"""Pages of another origin that use the registry. They send the requests of lensesio/schema-registry-ui in a browser.

That application is in no package registry, and its licence keeps its files out of this repository. The requests come
from its sources (release 0.9, `src/factories/schema-registry-factory.js` and the controllers). The tests send them with
the unmodified `$http` of AngularJS, as it does. Each body ends in a superfluous quotation mark, as in that application.
"""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from playwright.sync_api import Browser, Page
from tests.support.server_process import free_port, serving
from tests.ui.conftest import install_packages
from tests.ui.test_stories import open_page

pytestmark = [pytest.mark.servers, pytest.mark.timeout(120)]
_PAGE = """<!doctype html><title>Foreign</title><body ng-app="foreign">
<script src="angular.min.js"></script><script>angular.module("foreign", [])</script>"""
_SEND = """([method, url, data]) => {
  const injector = angular.element(document.body).injector();
  const headers = {"Content-Type": "application/json", "Accept": "application/json"};
  return new Promise((done) => injector.get("$rootScope").$apply(() => {
    const sent = data === null && method === "GET" ? {method, url} : {method, url, data, dataType: "json", headers};
    const answer = (response) => done([response.status, response.data]);
    injector.get("$http")(sent).then(answer, answer);
  }));
}"""
FIRST = {"type": "record", "name": "evolution", "fields": [{"name": "name", "type": "string"}]}
SECOND = FIRST | {"fields": [*FIRST["fields"], {"name": "number1", "type": "int", "default": 0}]}  # type: ignore[misc]  # a list it is
BROKEN = FIRST | {"fields": [{"name": "other", "type": "int"}]}


class ForeignPage(NamedTuple):
    """A page of another origin, and the registry that it uses."""

    page: Page
    registry: str

    def send(self, method: str, path: str, data: str | None = None) -> Any:
        """Return the body of the response. Fails unless the page may read it and its status is 200."""
        status, body = self.try_to_send(method, path, data)
        assert status == 200, (method, path, status, body)
        return body

    def try_to_send(self, method: str, path: str, data: str | None = None) -> tuple[int, Any]:
        """Return status and body of the response; the status is -1 if the browser blocks the response."""
        status, body = self.page.evaluate(_SEND, [method, self.registry + path, data])
        return status, body


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The origin of a file server that has a page with AngularJS."""
    packages = install_packages(tmp_path_factory.mktemp("foreign"))
    folder = tmp_path_factory.mktemp("site")
    shutil.copy(packages / "angular" / "angular.min.js", folder)
    (folder / "index.html").write_text(_PAGE, encoding="utf-8")
    files = ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=str(folder)))
    threading.Thread(target=files.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{files.server_port}"
    files.shutdown()
    files.server_close()


@pytest.fixture
def foreign(browser: Browser, origin: str, tmp_path: Path) -> Iterator[ForeignPage]:
    """The page, and a registry that allows its origin to read."""
    settings = {"STELE_CORS_ORIGINS": origin}
    with serving("--store", "memory:", folder=tmp_path, environ=settings) as running, open_page(browser) as page:
        page.goto(origin)
        yield ForeignPage(page, running.url)


def write_body(schema: dict[str, Any]) -> str:
    """Return a body with a schema as that application writes it, with a superfluous quotation mark at its end."""
    return f"""{json.dumps({"schema": json.dumps(schema)})}'"""


def test_a_foreign_user_interface_works_from_another_origin(foreign: ForeignPage) -> None:
    """The page can create, list and evolve a subject, show its history, set policies, and delete it."""
    assert foreign.send("GET", "/subjects/") == []
    first = foreign.send("POST", "/subjects/orders-value/versions", write_body(FIRST))["id"]
    assert foreign.send("GET", "/subjects/") == ["orders-value"]
    latest = foreign.send("GET", "/subjects/orders-value/versions/latest")
    assert (latest["subject"], latest["version"], latest["id"]) == ("orders-value", 1, first)
    assert json.loads(latest["schema"]) == FIRST
    compatibility = "/compatibility/subjects/orders-value/versions/latest"
    assert foreign.send("POST", compatibility, write_body(BROKEN))["is_compatible"] is False
    assert foreign.send("POST", compatibility, write_body(SECOND))["is_compatible"] is True
    second = foreign.send("POST", "/subjects/orders-value/versions", write_body(SECOND))["id"]
    assert second != first
    known_version = foreign.send("POST", "/subjects/orders-value", write_body(SECOND))
    assert (known_version["id"], known_version["version"]) == (second, 2)
    assert foreign.send("GET", "/subjects/orders-value/versions/") == [1, 2]
    history = [foreign.send("GET", f"/subjects/orders-value/versions/{number}") for number in (1, 2)]
    assert [json.loads(version["schema"]) for version in history] == [FIRST, SECOND]
    assert foreign.send("GET", "/config") == {"compatibilityLevel": "BACKWARD"}
    status, error = foreign.try_to_send("GET", "/config/orders-value")
    assert (status, error["error_code"]) == (404, 40408)
    for path, level in (("/config", "FORWARD_TRANSITIVE"), ("/config/orders-value", "FULL")):
        assert foreign.send("PUT", path, f'{{"compatibility":"{level}"}}\'') == {"compatibility": level}
        assert foreign.send("GET", path) == {"compatibilityLevel": level}
    assert foreign.send("DELETE", "/subjects/orders-value/versions/2") == 2
    assert foreign.send("DELETE", "/subjects/orders-value") == [1]
    assert foreign.send("GET", "/subjects/") == []


def test_a_refusal_can_be_read_from_another_origin(foreign: ForeignPage) -> None:
    """The page can read the status and the code of an error, which that application needs."""
    foreign.send("POST", "/subjects/orders-value/versions", write_body(FIRST))
    status, error = foreign.try_to_send("POST", "/subjects/orders-value/versions", write_body(BROKEN))
    assert (status, error["error_code"]) in {(409, 409), (409, 40901)}
    unknown = foreign.try_to_send("POST", "/compatibility/subjects/nobody/versions/latest", write_body(FIRST))
    assert unknown[0] in {200, 404}
    assert unknown[1]


def test_an_origin_that_is_not_listed_sees_nothing(browser: Browser, origin: str, tmp_path: Path) -> None:
    """The browser blocks every response from an origin that is not allowed, and its changes are not made."""
    settings = {"STELE_CORS_ORIGINS": f"http://127.0.0.1:{free_port()}"}
    with serving("--store", "memory:", folder=tmp_path, environ=settings) as running, open_page(browser) as page:
        page.goto(origin)
        foreign = ForeignPage(page, running.url)
        assert foreign.try_to_send("GET", "/subjects/")[0] == -1
        assert foreign.try_to_send("POST", "/subjects/orders-value/versions", write_body(FIRST))[0] == -1
        page.goto(f"{running.url}/subjects")
        assert page.locator("body").inner_text() == "[]"
