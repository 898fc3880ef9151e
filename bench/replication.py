"""Speed at which a registry copies another one, and delay until it has a change.

    python -m bench.replication [--schemas 10000] [--changes 300]

Servers are processes with SQLite stores of their own. One has the given number of Avro schemas, five versions per
subject. An import (`stele import confluent`) and a pull replication copy them to empty servers in one run; the ratio is
between the two. Then schemas are registered one after the other, and the time until each is readable at the replica is
measured: from a Stele, which announces its changes, and from another server with as many schemas, which is polled like
any Confluent-compatible registry. In between, polls of the unchanged lists of the server are timed: of whole lists, of
their ends, and by entity tags.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
from bench.import_registry import dump_of
from bench.report import Row, report
from tests.support.server_process import Running, serving

from stele.client import SchemaRegistryClient
from stele.migrate import registry_reader, registry_writer
from stele.replicate.confluent_changes import ListWatcher
from stele.replicate.foreign_api import ForeignApi
from stele.replicate.registries import Changes
from stele.replicate.xregistry_source import XRegistrySource

_SECONDS = 300.0
_LOOKS = 10
"""Number of polls of each kind. The figure is their median."""


def start_server(stack: ExitStack, name: str, folder: Path) -> Running:
    """Start a registry with an authority of its own that may send requests to this machine."""
    environ = {"STELE_PUBLIC_URL": f"http://{name}.example", "STELE_OUTGOING_NETWORKS": "127.0.0.0/8"}
    return stack.enter_context(serving("--store", f"sqlite:///{folder}/{name}.db", folder=folder, environ=environ))


def wait_until(is_so: Callable[[], bool], pause: float = 0.05) -> float:
    """Wait until a condition holds and return the seconds."""
    started = time.perf_counter()
    while not is_so():
        assert time.perf_counter() - started < _SECONDS, "it never is"
        time.sleep(pause)
    return time.perf_counter() - started


def begin_pull(source: Running, target: Running, **members: Any) -> None:
    """Create a replication by which a server pulls another one."""
    kind = members.pop("kind", "stele")
    body = {"name": "pull", "direction": "pull", "registry": {"url": source.url, "kind": kind}, **members}
    httpx.post(f"{target.url}/api/replications", json=body).raise_for_status()


def count_registered(target: Running) -> int:
    """Return how many versions the replication of a server has registered."""
    status = httpx.get(f"{target.url}/api/replications/pull").json()["status"]
    return int(status.get("registered", 0))


def copy_all(count: int, source: Running, target: Running, imported: Running) -> list[Row]:
    """Time an import and a replication of the same schemas."""
    with (
        SchemaRegistryClient(source.url, timeout=60) as client,
        SchemaRegistryClient(imported.url, timeout=60) as other,
    ):
        started = time.perf_counter()
        registry_writer.apply_import(registry_reader.read_registry(client), other)
        by_import = time.perf_counter() - started
    begin_pull(source, target)
    last = f"{target.url}/subjects/subject-{(count - 1) // 5}-value/versions/{(count - 1) % 5 + 1}"

    seconds = wait_until(lambda: count_registered(target) == count)
    assert httpx.get(last).status_code == 200
    rows = (("import", by_import), ("replication", seconds))
    return [
        {
            "way": name,
            "schemas": count,
            "seconds": round(taken, 2),
            "schemas/s": round(count / taken),
            "ratio": round(by_import / taken, 2),
        }
        for name, taken in rows
    ]


def measure_lag(name: str, changes: int, source: Running, target: Running, pause: float = 0.002) -> Row:
    """Return the time from the answer to a registration until the replica has the version.

    The replica is polled with pauses of `pause` seconds.
    """
    lags = []
    with httpx.Client(base_url=source.url) as here, httpx.Client(base_url=target.url) as there:
        for number in range(changes):
            subject = f"/subjects/{name.replace(' ', '-')}-{number}/versions"
            here.post(subject, json={"schema": '{"type": "string"}'}).raise_for_status()
            lags.append(wait_until(lambda path=f"{subject}/1": there.get(path).status_code == 200, pause))  # type: ignore[misc]  # bound now
    ordered = sorted(lags)
    return {
        "way": name,
        "changes": changes,
        "median lag ms": round(statistics.median(ordered) * 1000, 1),
        "p99 lag ms": round(ordered[min(int(len(ordered) * 0.99), len(ordered) - 1)] * 1000, 1),
    }


class Untagged(httpx.HTTPTransport):
    """A transport that removes entity tags from answers, because Confluent's registry has none."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request and return the answer without its entity tag."""
        answer = super().handle_request(request)
        answer.headers.pop("etag", None)
        return answer


def measure_looks(count: int, source: Running) -> list[Row]:
    """Time polls of unchanged lists. The ratio is to polls of whole lists."""
    rows: list[Row] = []
    with httpx.Client(transport=Untagged(), timeout=60) as untagged, httpx.Client(timeout=60) as tagged:
        plain, known = ForeignApi(untagged, source.url), ForeignApi(tagged, source.url)
        watchers = {"look at the ends of lists": ListWatcher(plain), "look by entity tags": ListWatcher(known)}
        xregistry = XRegistrySource(tagged, f"{source.url}/xregistry")
        looks: dict[str, Callable[[str], Changes]] = {
            "look at whole lists": lambda position: ListWatcher(plain).look(position),
            **{name: watcher.look for name, watcher in watchers.items()},
            "look at xRegistry's lists": functools.partial(xregistry.wait_for_changes, seconds=0),
        }
        for name, look in looks.items():
            position = look("").position
            seconds = []
            for _ in range(_LOOKS):
                started = time.perf_counter()
                assert look(position).subjects == frozenset()
                seconds.append(time.perf_counter() - started)
            rows.append({"way": name, "schemas": count, "seconds": round(statistics.median(seconds), 4)})
    whole = rows[0]["seconds"]
    return [{**row, "ratio": round(whole / row["seconds"], 1)} for row in rows]


def run(count: int, changes: int, folder: Path) -> list[Row]:
    """Return the rows of the report."""
    with ExitStack() as stack:
        source, target, other = (start_server(stack, name, folder) for name in ("source", "target", "other"))
        with SchemaRegistryClient(source.url, timeout=60) as client:
            assert registry_writer.apply_import(dump_of(count), client) == []
        rows = copy_all(count, source, target, other)
        rows += measure_looks(count, source)
        rows.append(measure_lag("lag behind a Stele", changes, source, target))
    with ExitStack() as stack:
        source, target = (start_server(stack, name, folder) for name in ("polled", "poller"))
        with SchemaRegistryClient(source.url, timeout=60) as client:
            assert registry_writer.apply_import(dump_of(count), client) == []
        begin_pull(source, target, kind="confluent", poll_seconds=0.5)
        wait_until(lambda: count_registered(target) == count)
        row = measure_lag("lag behind a polled registry", max(changes // 5, 1), source, target, pause=0.02)
        rows.append({**row, "schemas": count})
    return rows


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schemas", type=int, default=10_000)
    parser.add_argument("--changes", type=int, default=300, help="registrations whose lag is measured")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = run(arguments.schemas, arguments.changes, Path(folder))
    notes = [
        "SQLite FULL; servers and bench share one machine; both ways begin with empty servers",
        "look: median of ten at lists that did not change; the ratio is to reading them whole",
        "lag: from the answer to a registration until the replica answers for it; polled every 0.5 s",
    ]
    report("replication", rows, notes)


if __name__ == "__main__":
    main()
