"""A model of growth: coefficients measured here, and its predictions compared with measurements.

    python -m bench.scale [--parts memory distance nodes] [--folder DIR] [--page]

    memory    bytes and seconds of a node by schemas and subjects, from registries of 100,000 schemas; checked with
              others, one of them of a million. Registries that are in the folder are not created again.
    distance  seconds of a request by its round trips to the store, from a node next to the store and from one 20 ms
              away; checked with other distances. A relay delays all data for half of that time in each direction.
    nodes     processor seconds of a node for each record that another one wrote

`bench/results/scale_model.json` has the coefficients, `scale.json` the checks. The tables of docs/explanation/scale.md
are computed from the coefficients: `--page` writes them again, and a test compares them.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import itertools
import json
import queue
import re
import socket
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple, Self

import numpy as np
import uvloop
from bench.hot_paths import never_seen, post, schema_text
from bench.http_load import cpu_seconds, run_clients
from bench.load import Shape, Way, fill, load_in_child
from bench.report import RESULTS, Row, report
from bench.stores import running_nodes, spread
from tests.support.database_process import data_folder
from tests.support.kafka import KafkaBroker
from tests.support.mariadb import MariadbServer, mariadb
from tests.support.postgres import PostgresServer, postgres

FITTED: Final = (Shape(10_000, 10), Shape(100_000, 1))
CHECKED: Final = (Shape(4_000, 10), Shape(40_000, 1))
LARGE: Final = (Shape(1_000_000, 1),)
"""Shapes that are checked only with a snapshot."""
FITTED_WAYS: Final = (0.0, 20.0)
CHECKED_WAYS: Final = (10.0, 40.0)
"""Round-trip times between node and store, in milliseconds."""
_REPEATS: Final = 15
PAGE: Final = Path(__file__).parent.parent / "docs" / "explanation" / "scale.md"

Model = Mapping[str, float]
"""Coefficients by name."""


# --- a store that is far away ---------------------------------------------------------------------------------------


class SlowRelay:
    """Passes data between clients and a server with a delay.

    Attributes:
        port: Port that clients connect to.
        target: Port of the server.
        seconds: Delay in each direction.
    """

    def __init__(self) -> None:
        self.target = 0
        self.seconds = 0.0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(("127.0.0.1", self.target))
                for one, other in ((near, far), (far, near)):
                    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    pieces: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()
                    threading.Thread(target=self._take, args=(one, pieces), daemon=True).start()
                    threading.Thread(target=self._give, args=(other, pieces), daemon=True).start()

    def _take(self, end: socket.socket, pieces: queue.SimpleQueue[tuple[float, bytes]]) -> None:
        data = b"begin"
        while data:
            try:
                data = end.recv(1 << 16)
            except OSError:
                data = b""
            pieces.put((time.monotonic() + self.seconds, data))

    def _give(self, end: socket.socket, pieces: queue.SimpleQueue[tuple[float, bytes]]) -> None:
        with suppress(OSError):
            while (piece := pieces.get())[1]:
                time.sleep(max(piece[0] - time.monotonic(), 0.0))
                end.sendall(piece[1])
            end.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()


@contextmanager
def open_far_store(kind: str, relay: SlowRelay) -> Iterator[str]:
    """Run a new store behind a relay and yield its URL."""
    with ExitStack() as stack:
        if kind == "kafka":
            folder = Path(stack.enter_context(data_folder("kafka")))
            listeners = {"advertised.listeners": f"PLAINTEXT://127.0.0.1:{relay.port}"}
            broker = KafkaBroker(folder, listeners)
            relay.target = int(broker.address.rpartition(":")[2])
            stack.enter_context(broker)
            yield f"kafka://127.0.0.1:{relay.port}/stele"
            return
        server: PostgresServer | MariadbServer = (
            stack.enter_context(postgres("packaged")) if kind == "postgres" else stack.enter_context(mariadb())
        )
        relay.target = server.port
        yield server.url(server.create_database()).replace(f":{server.port}/", f":{relay.port}/")


class TimedRequest(NamedTuple):
    """A kind of request, and a function that sends one and reads its answer."""

    name: str
    ask: Callable[[http.client.HTTPConnection, int], None]


def _exchange(connection: http.client.HTTPConnection, method: str, path: str, body: str | None = None) -> None:
    connection.request(method, path, body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    answer.read()
    assert answer.status == 200, (path, answer.status)


_ASKED: Final = (
    TimedRequest(
        "register",
        lambda connection, n: _exchange(
            connection, "POST", "/subjects/far/versions", json.dumps({"schema": schema_text(0, f"number {n}")})
        ),
    ),
    TimedRequest("latest", lambda connection, n: _exchange(connection, "GET", "/subjects/far/versions/latest")),
    TimedRequest("by id", lambda connection, n: _exchange(connection, "GET", f"/schemas/ids/{n % 5 + 1}")),
)


def measure_distances(kind: str) -> dict[tuple[str, float], float]:
    """Return the median milliseconds by (name of the request, round-trip time to the store in ms)."""
    figures: dict[tuple[str, float], float] = {}
    numbers = itertools.count()
    with ExitStack() as stack:
        relay = stack.enter_context(SlowRelay())
        url = stack.enter_context(open_far_store(kind, relay))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        with running_nodes(1, url, folder) as (node,):
            connection = http.client.HTTPConnection("127.0.0.1", node.port, timeout=60)
            for _ in range(20):
                _ASKED[0].ask(connection, next(numbers))
            for way in sorted({*FITTED_WAYS, *CHECKED_WAYS}):
                relay.seconds = way / 2000
                for request in _ASKED:
                    taken = []
                    for _ in range(_REPEATS):
                        started = time.perf_counter()
                        request.ask(connection, next(numbers))
                        taken.append(time.perf_counter() - started)
                    figures[request.name, way] = statistics.median(taken) * 1000
            relay.seconds = 0.0
            connection.close()
    return figures


# --- fitting --------------------------------------------------------------------------------------------------------


def fit(rows: Sequence[Sequence[float]], values: Sequence[float]) -> list[float]:
    """Return the coefficients c for which rows · c is closest to values, by least relative squares."""
    weights = 1 / np.array(values, dtype=float)
    coefficients, *_ = np.linalg.lstsq(np.array(rows, dtype=float) * weights[:, None], np.ones(len(values)), rcond=None)
    return [float(coefficient) for coefficient in coefficients]


def predict_bytes(model: Model, versions: float, subjects: float) -> float:
    """Return the bytes of memory of a state."""
    return model["bytes a version"] * versions + model["bytes a subject"] * subjects


def predict_seconds(model: Model, source: str, versions: float, subjects: float) -> float:
    """Return the processor seconds to load a state from a `snapshot` or the `log`."""
    each = model[f"us a version, from {source}"] * versions + model[f"us a subject, from {source}"] * subjects
    return each / 1e6


def predict_milliseconds(model: Model, kind: str, name: str, way: float) -> float:
    """Return the milliseconds of a request to a node with a round-trip time of `way` ms to its store."""
    return model[f"ms of {name}, {kind}"] + model[f"round trips of {name}, {kind}"] * way


def predict_reads(model: Model, nodes: int, cores: int, name: str, writes: float) -> float:
    """Return the reads per second that nodes answer while the registry accepts `writes` writes per second."""
    busy = writes * model["us of a follower a record"] / 1e6
    return nodes * max(cores * model[f"{name} a CPU second"] - busy * model[f"{name} a CPU second"], 0)


def _check(what: str, at: str, predicted: float, measured: float, unit: str) -> Row:
    return {
        "what": what,
        "at": at,
        "unit": unit,
        "predicted": round(predicted, 3),
        "measured": round(measured, 3),
        "predicted / measured": round(predicted / measured, 2),
    }


# --- the parts ------------------------------------------------------------------------------------------------------


def study_memory(folder: Path) -> tuple[dict[str, float], list[Row]]:
    """Return coefficients and checks of memory and of loading."""
    loads: dict[tuple[Shape, bool], tuple[float, float]] = {}
    for shape in (*FITTED, *CHECKED, *LARGE):
        file = folder / f"{shape.subjects}-{shape.versions}.db"
        if not file.exists():
            asyncio.run(fill(f"sqlite:///{file}", shape))
        for from_snapshot in (True,) if shape in LARGE else (True, False):
            loaded = load_in_child(f"sqlite:///{file}", Way(from_snapshot, checked=True))
            loads[shape, from_snapshot] = loaded.bytes_each * shape.subjects * shape.versions, loaded.processor
    rows = [(shape.subjects * shape.versions, shape.subjects) for shape in FITTED]
    model = dict(
        zip(
            ("bytes a version", "bytes a subject"),
            fit(rows, [loads[shape, True][0] for shape in FITTED]),
            strict=True,
        )
    )
    for source, from_snapshot in (("snapshot", True), ("log", False)):
        names = (f"us a version, from {source}", f"us a subject, from {source}")
        coefficients = fit(rows, [loads[shape, from_snapshot][1] * 1e6 for shape in FITTED])
        model |= dict(zip(names, coefficients, strict=True))
    checks = []
    for (shape, from_snapshot), (size, seconds) in loads.items():
        if shape in FITTED:
            continue
        counts = (shape.subjects * shape.versions, shape.subjects)
        at = f"{shape.subjects:,} subjects of {shape.versions}"
        if from_snapshot:
            checks.append(_check("memory", at, predict_bytes(model, *counts) / 1e6, size / 1e6, "MB"))
        source = "snapshot" if from_snapshot else "log"
        checks.append(_check(f"loading the {source}", at, predict_seconds(model, source, *counts), seconds, "CPU s"))
    return model, checks


def study_distance(_: Path) -> tuple[dict[str, float], list[Row]]:
    """Return coefficients and checks of requests by the distance of the store."""
    model: dict[str, float] = {}
    checks = []
    for kind in ("postgres", "mysql", "kafka"):
        figures = measure_distances(kind)
        for request in _ASKED:
            local, trips = fit([(1, way) for way in FITTED_WAYS], [figures[request.name, way] for way in FITTED_WAYS])
            model[f"round trips of {request.name}, {kind}"] = max(trips, 0)
            model[f"ms of {request.name}, {kind}"] = local
            for way in CHECKED_WAYS:
                predicted = predict_milliseconds(model, kind, request.name, way)
                measured = figures[request.name, way]
                checks.append(_check(f"{request.name}, {kind}", f"{way:g} ms away", predicted, measured, "ms"))
    return model, checks


def study_nodes(_: Path) -> tuple[dict[str, float], list[Row]]:
    """Return the cost of records from other nodes, and a check of reads with the figures of `bench.stores`."""
    stores = {(row["store"], row["nodes"]): row for row in json.loads((RESULTS / "stores.json").read_text())["rows"]}
    model = {
        "latest a CPU second": float(stores["postgres", 1]["latest per CPU s"]),
        "by id a CPU second": float(stores["postgres", 1]["by id per CPU s"]),
    }
    with ExitStack() as stack:
        server = stack.enter_context(postgres("packaged"))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        with running_nodes(2, server.url(server.create_database()), folder) as (writer, follower):
            first = (post(f"/subjects/thing-{n}/versions", schema_text(n, 1)) for n in itertools.count(1))
            uvloop.run(run_clients(spread([writer], 1, first), 0.5))
            before = cpu_seconds(follower.pid)
            requests = never_seen("/subjects/thing-{}/versions")()
            answered = uvloop.run(run_clients(spread([writer], 8, requests), 5.0, 0.5))
            model["us of a follower a record"] = (cpu_seconds(follower.pid) - before) / answered * 1e6
    checks = []
    for (kind, nodes), row in stores.items():
        if nodes == 3:
            checks.append(_check(f"reads, {kind}", "3 nodes / 1", 3.0, float(row["reads of 3 / 1"]), "ratio"))
    return model, checks


STUDIES: Final = {"memory": study_memory, "distance": study_distance, "nodes": study_nodes}


# --- the page -------------------------------------------------------------------------------------------------------


def read_model() -> dict[str, float]:
    """Return the coefficients of the last measurement."""
    rows = json.loads((RESULTS / "scale_model.json").read_text(encoding="utf-8"))["rows"]
    return {row["coefficient"]: row["value"] for row in rows}


def _table(*rows: Sequence[str]) -> str:
    head, *others = [f"| {' | '.join(row)} |\n" for row in rows]
    return head + "|" + "---|" * len(rows[0]) + "\n" + "".join(others)


def _amount(value: float, unit: str) -> str:
    return f"{float(f'{value:.2g}'):,.10g} {unit}"


def _seconds(value: float) -> str:
    return _amount(value, "s") if value < 120 else _amount(value / 60, "min")


def render_tables(model: Model) -> dict[str, str]:
    """Return the tables of docs/explanation/scale.md, by name."""
    sizes = [("schemas", "memory of a node", "start from a snapshot", "replay of the log")]
    for count in (10**5, 10**6, 10**7, 10**8):
        for text, subjects in (("in subjects of ten versions", count // 10), ("one in each subject", count)):
            sizes.append(
                (
                    f"{count:,} {text}",
                    _amount(predict_bytes(model, count, subjects) / 1e9, "GB"),
                    _seconds(predict_seconds(model, "snapshot", count, subjects)),
                    _seconds(predict_seconds(model, "log", count, subjects)),
                )
            )
    nodes = [("nodes of 2 cores", "reads of ids", "reads of `latest`", "`latest` beside 500 registrations/s")]
    for count in (1, 3, 10):
        figures = [("by id", 0.0), ("latest", 0.0), ("latest", 500.0)]
        reads = [_amount(predict_reads(model, count, 2, name, writes), "/s") for name, writes in figures]
        nodes.append((str(count), *reads))
    ways = [("the store is away", "request", "PostgreSQL", "MariaDB", "Kafka")]
    for way, place in ((0.5, "0.5 ms: the same zone"), (10, "10 ms: a near region"), (80, "80 ms: another continent")):
        for request in _ASKED:
            kinds = ("postgres", "mysql", "kafka")
            times = [_amount(predict_milliseconds(model, kind, request.name, way), "ms") for kind in kinds]
            ways.append((place, request.name, *times))
    return {"sizes": _table(*sizes), "nodes": _table(*nodes), "distances": _table(*ways)}


def write_page() -> None:
    """Write the tables into the page."""
    text = PAGE.read_text(encoding="utf-8")
    for name, table in render_tables(read_model()).items():
        text = re.sub(rf"(<!-- {name} -->\n).*?(<!-- end -->)", rf"\g<1>{table}\g<2>", text, flags=re.DOTALL)
    PAGE.write_text(text, encoding="utf-8")


def main() -> None:
    """Measure, fit, check and keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="*", default=list(STUDIES), choices=list(STUDIES))
    parser.add_argument("--folder", type=Path, help="where registries are, and stay")
    parser.add_argument("--page", action="store_true", help="write the tables into the page again, and measure nothing")
    options = parser.parse_args()
    if options.page:
        write_page()
        return
    parts = options.parts
    with tempfile.TemporaryDirectory() as name:
        studies = [STUDIES[part](options.folder or Path(name)) for part in parts]
    model: dict[str, float] = {}
    checks: list[Row] = []
    with suppress(FileNotFoundError):
        model = read_model()
        checks = json.loads((RESULTS / "scale.json").read_text(encoding="utf-8"))["rows"]
    for coefficients, rows in studies:
        model |= coefficients
        new = {row["what"] for row in rows}
        checks = [row for row in checks if row["what"] not in new] + rows
    report("scale", checks, ["The model was fitted to other points than those it is checked with."])
    report("scale_model", [{"coefficient": name, "value": float(f"{value:.4g}")} for name, value in model.items()])


if __name__ == "__main__":
    main()
