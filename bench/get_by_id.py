"""GET /schemas/ids/{id}: Stele's whole server against a bare ASGI app and a FastAPI app, per server CPU-second.

Stele is started as `stele serve` starts it. All three run uvicorn with uvloop and httptools in one process and answer
the same bytes. The FastAPI app has 200 routes, Stele has all of its own, and the bare app has none. Rounds alternate,
so that other load affects all alike. The figure is requests divided by the CPU seconds of the server process, which
does not depend on the speed of the load generator.

    python -m bench.get_by_id
"""

from __future__ import annotations

import itertools
import json
import statistics
import sys
import urllib.request
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import uvloop
from bench.http_load import Client, cpu_seconds, get, run_clients
from bench.report import report
from bench.server_process import run_server

ROUNDS, SECONDS, CONNECTIONS, SCHEMAS, ROUTES = 5, 3.0, 32, 1000, 200
KINDS = ("bare", "fastapi", "stele")
CONTENT_TYPE = b"application/vnd.schemaregistry.v1+json"


def schema(number: int) -> str:
    """Return an Avro schema text of about 1 KiB."""
    fields = [{"name": f"field_{i}", "type": "string", "doc": f"attribute {i} of thing {number}"} for i in range(14)]
    return json.dumps({"type": "record", "name": f"Thing{number}", "namespace": "bench", "fields": fields})


# --- the three servers ----------------------------------------------------------------------------------------------


def bare_app(bodies: dict[str, bytes]) -> Any:
    """Return an ASGI application that does the least possible work for this answer."""

    async def app(scope: Any, receive: Any, send: Callable[[Any], Awaitable[None]]) -> None:
        if scope["type"] != "http":
            return
        body = bodies.get(scope["path"], b"")  # empty for the readiness check
        headers = [(b"content-type", CONTENT_TYPE), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    return app


def fastapi_app(bodies: dict[str, bytes]) -> Any:
    """Return a FastAPI application with 200 routes that also answers prebuilt bytes."""
    from fastapi import FastAPI, Response

    app = FastAPI()

    def other(name: str) -> str:
        return name

    for number in range(ROUTES - 1):
        app.get(f"/other/{number}/{{name}}")(other)

    @app.get("/schemas/ids/{schema_id}")
    async def by_id(schema_id: int) -> Response:
        return Response(bodies[f"/schemas/ids/{schema_id}"], media_type=CONTENT_TYPE.decode())

    return app


def serve(kind: str, port: int) -> None:
    """Run one of the servers until killed."""
    if kind == "stele":
        from stele.server.run import run_server as serve_stele
        from stele.server.settings import ServerSettings

        serve_stele(ServerSettings(store="sqlite:///bench.db", port=port, log_level="error"))
        return
    import uvicorn

    bodies = {f"/schemas/ids/{n}": body for n, body in enumerate(_bodies(), 1)}
    app = bare_app(bodies) if kind == "bare" else fastapi_app(bodies)
    uvicorn.run(app, port=port, loop="uvloop", http="httptools", access_log=False, log_level="error", lifespan="off")


def _bodies() -> list[bytes]:
    return [line.encode() for line in Path("bodies.jsonl").read_text(encoding="utf-8").splitlines()]


# --- the load -------------------------------------------------------------------------------------------------------


def make_clients(port: int) -> list[Client]:
    """Return connections that request all schemas, each starting at another one."""
    requests = [get(f"/schemas/ids/{number}") for number in range(1, SCHEMAS + 1)]
    starts = [number * 31 % SCHEMAS for number in range(CONNECTIONS)]
    return [Client(port, itertools.cycle(requests[start:] + requests[:start])) for start in starts]


def serve_kind(kind: str, folder: Path) -> AbstractContextManager[tuple[int, int]]:
    """Run a server of a kind and yield (port, pid)."""
    environ = {"PYTHONPATH": str(Path(__file__).resolve().parent.parent)}
    return run_server(lambda port: [sys.executable, "-m", "bench.get_by_id", "serve", kind, str(port)], folder, environ)


def fill(port: int, folder: Path) -> None:
    """Register the schemas and save the bodies that the other servers answer."""
    lines = []
    for number in range(1, SCHEMAS + 1):
        body = json.dumps({"schema": schema(number)}).encode()
        url = f"http://127.0.0.1:{port}/subjects/thing-{number}/versions"
        headers = {"Content-Type": "application/json"}
        urllib.request.urlopen(urllib.request.Request(url, body, headers)).read()
        lines.append(urllib.request.urlopen(f"http://127.0.0.1:{port}/schemas/ids/{number}").read().decode())
    (folder / "bodies.jsonl").write_text("\n".join(lines), encoding="utf-8")


def main() -> None:
    """Fill, then measure in interleaved rounds."""
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with serve_kind("stele", folder) as (port, _):
            fill(port, folder)
        with (
            serve_kind("bare", folder) as bare,
            serve_kind("fastapi", folder) as fast,
            serve_kind("stele", folder) as stele,
        ):
            servers = dict(zip(KINDS, (bare, fast, stele), strict=True))
            figures: dict[str, list[float]] = {kind: [] for kind in KINDS}
            for turn in range(ROUNDS + 1):
                for kind, (port, pid) in servers.items():
                    before = cpu_seconds(pid)
                    answered = uvloop.run(run_clients(make_clients(port), SECONDS if turn else 0.5))
                    if turn:
                        figures[kind].append(answered / (cpu_seconds(pid) - before))
    rows = []
    for kind in KINDS:
        ratios = [figure / base for figure, base in zip(figures[kind], figures["bare"], strict=True)]
        rate, ratio = round(statistics.median(figures[kind])), round(statistics.median(ratios), 2)
        rows.append({"server": kind, "requests per CPU-second": rate, "ratio": ratio})
    report("get_by_id", rows, [f"{CONNECTIONS} connections, {ROUNDS} interleaved rounds"])


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve(sys.argv[2], int(sys.argv[3]))
    else:
        main()
