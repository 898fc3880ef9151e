"""Fuzzes the parsers: `python fuzz/run.py --target avro --seconds 600 [--seed N]`, or `--all`. See README.md."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Final

if __name__ == "__main__":  # run as a script: the package `fuzz` is in the parent folder
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from fuzz.engines import available_engines
from fuzz.judge import HANG, Failure, run_input, write_failure
from fuzz.memory import processor_seconds
from fuzz.targets import TARGETS, get_target
from fuzz.worker import CURRENT, HEADER, STATS, Worker

STUCK: Final = 60.0
"""Seconds after which a process that works on one input is killed and the input is kept."""
GROWTH: Final = 128 << 20
"""Bytes a run may grow by between a quarter of its time and its end; the caches of Stele are bounded by less."""

_GRACE: Final = 20.0


def main(arguments: list[str] | None = None) -> int:
    """Run the command line. Returns 0 if no failure was found, otherwise 1."""
    asked = _parse_arguments(arguments)
    if asked.reproduce:
        return reproduce_failure(asked.target, Path(asked.reproduce), quiet=asked.quiet)
    if asked.worker:
        Worker(asked.target, asked.engine, asked.seconds, asked.seed, Path(asked.worker)).run()
        return 0
    results = [supervise_target(name, asked.engine, asked.seconds, asked.seed) for name in _select_names(asked)]
    return 1 if any(result["failures"] for result in results) else 0


def _parse_arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="fuzz/run.py", description="Fuzz everything that reads what strangers send.")
    parser.add_argument("--target", choices=TARGETS)
    parser.add_argument("--all", action="store_true", help="every target, one after the other")
    parser.add_argument("--seconds", type=float, default=600.0, help="time for each target")
    parser.add_argument("--seed", type=int, default=1, help="the same seed gives the same inputs (engine own)")
    parser.add_argument("--engine", choices=available_engines(), default=available_engines()[0])
    parser.add_argument("--reproduce", metavar="FILE", help="run one input and show what happens")
    parser.add_argument("--quiet", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    if not asked.target and not asked.all:
        parser.error("one of --target and --all is needed")
    return asked


def _select_names(asked: argparse.Namespace) -> tuple[str, ...]:
    return TARGETS if asked.all else (asked.target,)


# --- one input ------------------------------------------------------------------------------------------------------


def reproduce_failure(name: str, path: Path, *, quiet: bool) -> int:
    """Run one input, after a seed that loads all modules. Returns 1 if it fails or takes more than `HANG`."""
    chosen, data = get_target(name), path.read_bytes()
    run_input(chosen, chosen.seeds[0])  # loads modules that are imported on first use
    before = processor_seconds()
    steps, failure = run_input(chosen, data)
    spent = processor_seconds() - before
    if not quiet:
        sys.stdout.write(f"{len(data)} bytes, {spent:.2f} s of processor time; longest step {steps.longest[1]!r}\n")
        sys.stdout.write("".join(f"  {note}\n" for note in sorted(steps.notes)))
        sys.stdout.write(f"{failure.kind}\n{failure.detail}\n" if failure else "no failure\n")
    return 1 if failure or min(spent, steps.longest[0]) > HANG else 0


# --- a run ----------------------------------------------------------------------------------------------------------


def supervise_target(name: str, engine: str, seconds: float, seed: int) -> dict[str, Any]:
    """Fuzz one target in processes that may crash, and print the figures as one line of JSON."""
    end = time.monotonic() + seconds
    total: dict[str, Any] = {"target": name, "engine": engine, "seed": seed}
    total |= {"seconds": 0.0, "executions": 0, "accepted": 0, "slowest": [0.0, ""], "failures": {}, "memory_growth": 0}
    turn = 0
    while turn == 0 or end - time.monotonic() > 1:
        with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
            left = max(end - time.monotonic(), 1.0)
            death = _run_worker(name, engine, left, seed + turn, Path(folder))
            _add_figures(total, Path(folder) / STATS)
            if death:
                total["failures"][death] = total["failures"].get(death, 0) + 1
        turn += 1
        if death and not total["executions"]:
            break  # the worker cannot start
    if total["memory_growth"] > GROWTH:
        total["failures"]["memory growth"] = 1
    sys.stdout.write(json.dumps(total) + "\n")
    sys.stdout.flush()
    return total


def _run_worker(name: str, engine: str, seconds: float, seed: int, folder: Path) -> str:
    """Run a worker to its end. Returns '' or how it died, and keeps its last input."""
    script = [sys.executable, str(Path(__file__).resolve()), "--target", name, "--engine", engine]
    process = subprocess.Popen(
        [*script, "--seconds", str(seconds), "--seed", str(seed), "--worker", str(folder)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    ended = threading.Event()
    stuck = threading.Thread(target=_end_when_stuck, args=(process, folder / CURRENT, ended), daemon=True)
    stuck.start()
    code = process.wait()
    ended.set()
    stuck.join()
    _end_worker(process)
    if code == 0:
        return ""
    how = "stuck" if code == -signal.SIGKILL else f"died with {code}"
    serial, _, data = _current_input(folder / CURRENT)
    if not serial:
        return f"fuzzer {how} between two inputs"
    write_failure(name, Failure(how, f"the process ended with {code}"), data)
    return how


def _end_when_stuck(process: subprocess.Popen[bytes], path: Path, ended: threading.Event) -> None:
    while not ended.wait(1.0):
        began = _current_input(path)[1]
        if began and time.time() - began > STUCK + _GRACE:
            _end_worker(process)


def _end_worker(process: subprocess.Popen[bytes]) -> None:
    """Kill the worker and its children, which share its session."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _current_input(path: Path) -> tuple[int, float, bytes]:
    try:
        held = path.read_bytes()
    except OSError:
        return 0, 0.0, b""
    if len(held) < HEADER.size:
        return 0, 0.0, b""
    serial, began, length = HEADER.unpack_from(held)
    return serial, began, held[HEADER.size : HEADER.size + length]


def _add_figures(total: dict[str, Any], path: Path) -> None:
    """Add the figures of one process to those of the run."""
    if not path.exists():
        return
    figures = json.loads(path.read_text())
    for key in ("seconds", "executions", "accepted"):
        total[key] = round(total[key] + figures[key], 1)
    total["slowest"] = max(total["slowest"], figures["slowest"])
    total["memory_growth"] = max(total["memory_growth"], figures["memory_peak"] - figures["memory_warm"])
    for kind, count in figures["failures"].items():
        total["failures"][kind] = total["failures"].get(kind, 0) + count


if __name__ == "__main__":
    sys.exit(main())
