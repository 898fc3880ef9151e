"""`stele status`: its output for a registry that is ready, for one that is not, and for none."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from typer.testing import CliRunner, Result

from stele import __version__
from stele.cli.app import app
from stele.cli.status import read_figures
from stele.testing import registry

PAGES = {
    "/health/live": (200, b'{"status": "live"}'),
    "/health/ready": (503, b'{"status": "cannot write", "reason": "The disk is full"}'),
    "/": (200, b'{"version": "0.1.0", "status": "cannot write", "store": "sqlite", "dialects": []}'),
}


def run(*words: str) -> Result:
    """Run the command with these words."""
    return CliRunner().invoke(app, ["status", *words])


@contextmanager
def pages_of(pages: dict[str, tuple[int, bytes]]) -> Iterator[str]:
    """Yield the address of a server that has only these pages."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = pages.get(self.path, (404, b"{}"))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_a_registry_that_is_ready() -> None:
    """Release, state, contents, dialects and request figures are printed, as text and as JSON."""
    with registry({"s": '"int"'}, port=0) as box:
        done = run("--registry", box.url)
        assert done.exit_code == 0, done.output
        rows = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
        status = json.loads(run(box.url, "--output", "json").stdout)
    assert rows["version"] == f"Stele {__version__}"
    assert (rows["state"], rows["store"]) == ("ready", "memory")
    assert rows["contents"] == "subjects 1, versions 1, schemas 1, schema ids 1"
    assert rows["dialects"].startswith("confluent, ")
    assert (status["isReady"], status["role"]) == (True, "read-write")
    assert status["counts"]["position"] >= 1
    assert status["requests"]["failed"] == 0


def test_a_registry_that_cannot_write() -> None:
    """The reason is printed, and the exit code is 1."""
    with pages_of(PAGES) as url:
        done = run("--registry", url)
        status = json.loads(run("--registry", url, "-o", "json").stdout)
    assert done.exit_code == 1
    assert "cannot write: The disk is full" in done.stdout
    assert (status["isLive"], status["isReady"], status["role"]) == (True, False, "read-only")
    assert status["requests"] is None


def test_a_registry_of_another_make() -> None:
    """A registry other than Stele has no probes: it is ready if it answers."""
    with pages_of({"/subjects": (200, b"[]"), "/": (200, b"{}")}) as url:
        done = run("--registry", url)
    assert done.exit_code == 0
    assert "not a Stele server" in done.stdout


def test_nobody_answers() -> None:
    """One line names every address that was tried, with exit code 2; an invalid address is named, too."""
    done = run("--registry", "http://127.0.0.1:1,http://127.0.0.1:2")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("error: no registry answers at http://127.0.0.1:1: ")
    assert "http://127.0.0.1:2: " in done.stderr
    assert "is not the address of a registry" in run("--registry", "127.0.0.1:8081").stderr


def test_figures_about_requests() -> None:
    """Durations of all routes count together."""
    text = """
# TYPE stele_requests counter
stele_requests_total{dialect="a",route="/x",method="GET",status="200"} 97
stele_requests_total{dialect="a",route="/x",method="GET",status="404"} 2
stele_requests_total{dialect="a",route="/y",method="GET",status="503"} 1
# TYPE stele_request_seconds histogram
stele_request_seconds_bucket{dialect="a",route="/x",le="0.005"} 90
stele_request_seconds_bucket{dialect="a",route="/x",le="0.1"} 98
stele_request_seconds_bucket{dialect="a",route="/x",le="+Inf"} 99
stele_request_seconds_bucket{dialect="a",route="/y",le="0.005"} 1
stele_request_seconds_bucket{dialect="a",route="/y",le="0.1"} 1
stele_request_seconds_bucket{dialect="a",route="/y",le="+Inf"} 1
stele_request_seconds_sum{dialect="a",route="/x"} 1.5
stele_request_seconds_count{dialect="a",route="/x"} 99
stele_request_seconds_sum{dialect="a",route="/y"} 0.5
stele_request_seconds_count{dialect="a",route="/y"} 1
"""
    figures = read_figures(text)
    assert figures is not None
    assert (figures.answered, figures.refused, figures.failed) == (100, 2, 1)
    assert (figures.mean_seconds, figures.p99_seconds) == (0.02, 0.1)
    assert read_figures("") is None
    assert read_figures("<html>") is None
