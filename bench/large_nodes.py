"""Start time and memory of a node that has a million schemas, on each store.

    python -m bench.large_nodes [--subjects 1000000] [--versions 1] [--stores sqlite files postgres mysql kafka]
                                [--filled FILE] [--add]

The schemas are those of `bench.load`. They are written once into SQLite, with a snapshot, and `stele log copy` copies
both to the other stores. Then a server starts on each store. Measured are the wall-clock and processor seconds until it
is ready, its resident memory then and at its peak, and after it has listed all names. `--filled` names a JSON file with
the URLs of stores that hold the registry already, by kind; then nothing is written. `--add` keeps rows of other shapes
in the results.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from bench.http_load import cpu_seconds
from bench.load import Shape, fill
from bench.report import RESULTS, Row, report
from tests.support.server_process import free_port
from tests.system.linearizability.stores import STORES

BYTES: Final = 900_000_000
"""Largest memory of a node with a million schemas, in bytes."""
SECONDS: Final = 15.0
"""Longest time until it is ready, in seconds; on SQLite two thirds of that."""
_PATIENCE: Final = 1800.0
_SETTLED_SECONDS: Final = 1.0


def read_memory(pid: int) -> tuple[int, int]:
    """Return (current, peak) resident memory of a process in bytes."""
    rows = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    now, most = (int(rows[name].split()[0]) * 1024 for name in ("VmRSS", "VmHWM"))
    return now, most


def is_ready(port: int) -> bool:
    """Return whether a node reports that it is ready."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health/ready", timeout=60) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def measure_start(kind: str, url: str, shape: Shape, folder: Path) -> Row:
    """Start a node on a store and return the row for it."""
    port = free_port()
    command = [sys.executable, "-m", "stele.cli", "serve", "--store", url, "--port", str(port)]
    command += ["--log-level", "error", "--state-dir", str(folder / f"state-{kind}")]
    started = time.perf_counter()
    # On a busy machine the list of all names may take longer than the default limit.
    environ = {**os.environ, "STELE_REQUEST_SECONDS": str(_PATIENCE)}
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environ)
    try:
        while not is_ready(port):
            assert process.poll() is None, kind
            assert time.perf_counter() - started < _PATIENCE, kind
            time.sleep(0.05)
        seconds, processor = time.perf_counter() - started, cpu_seconds(process.pid)
        time.sleep(_SETTLED_SECONDS)
        loaded, most = read_memory(process.pid)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/subjects", timeout=_PATIENCE) as answer:
            names = json.load(answer)
        assert len(names) == shape.subjects, len(names)
        listed, _ = read_memory(process.pid)
    finally:
        process.terminate()
        process.wait(_PATIENCE)
    return {
        "store": kind,
        "subjects": shape.subjects,
        "versions": shape.versions,
        "ready s": round(seconds, 1),
        "CPU s": round(processor, 1),
        "MB": round(loaded / 1e6),
        "MB at the peak": round(most / 1e6),
        "MB after all names": round(listed / 1e6),
    }


def fill_stores(kinds: list[str], shape: Shape, folder: Path, stack: ExitStack) -> dict[str, str]:
    """Write the registry into stores and return their URLs by kind."""
    source = f"sqlite:///{folder}/source.db"
    asyncio.run(fill(source, shape))
    urls = {}
    for kind in kinds:
        place = folder / kind
        place.mkdir()
        urls[kind] = source if kind == "sqlite" else stack.enter_context(STORES[kind](place)).url
        if kind != "sqlite":
            subprocess.run([sys.executable, "-m", "stele.cli", "log", "copy", source, urls[kind]], check=True)
    return urls


def main() -> None:
    """Measure the chosen stores."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--subjects", type=int, default=1_000_000)
    parser.add_argument("--versions", type=int, default=1)
    parser.add_argument("--stores", nargs="*", default=list(STORES), choices=list(STORES))
    parser.add_argument("--filled", type=Path)
    parser.add_argument("--add", action="store_true")
    options = parser.parse_args()
    shape = Shape(options.subjects, options.versions)
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        if options.filled is not None:
            filled: Mapping[str, str] = json.loads(options.filled.read_text(encoding="utf-8"))
        else:
            filled = fill_stores(options.stores, shape, Path(name), stack)
        rows = [measure_start(kind, filled[kind], shape, Path(name)) for kind in options.stores]
    if options.add:
        new = {(row["store"], row["subjects"], row["versions"]) for row in rows}
        before = json.loads((RESULTS / "large_nodes.json").read_text(encoding="utf-8"))["rows"]
        rows = [row for row in before if (row["store"], row["subjects"], row["versions"]) not in new] + rows
    bars = f"Bars: {BYTES // 10**6} MB; ready within {SECONDS:g} s, on SQLite within {SECONDS * 2 / 3:g} s."
    report("large_nodes", rows, [bars, "MB are millions of bytes of resident memory, as the system counts them."])


if __name__ == "__main__":
    main()
