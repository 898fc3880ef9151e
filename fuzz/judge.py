"""Detects failures, saves them, and minimizes their inputs."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from fuzz.parts import split_parts
from fuzz.steps import Broken, Steps
from fuzz.targets import Target

HANG: Final = 2.0
"""Longest time of one step in processor seconds. If the wall clock shows less, the step is not examined."""
FOUND: Final = Path(__file__).parent / "found"
"""Folder of failures, each with the command that reproduces it."""
SHRINKING: Final = 20.0
"""Longest time to minimize one failure, in seconds."""

_KEPT_OF_A_KIND: Final = 2


class Failure(NamedTuple):
    """A failure with its kind, such as `crash RecursionError parse.py:type` or `slow check containment`."""

    kind: str
    detail: str


class Judge:
    """Runs inputs of one target and counts outcomes.

    suspect_slow     called with an input whose step took longer than `HANG` on the wall clock; returns whether the
                     input is slow
    """

    def __init__(self, name: str, target: Target, suspect_slow: Callable[[bytes], bool]) -> None:
        self.name = name
        self.target = target
        self.executions = 0
        self.accepted = 0
        self.slowest: tuple[float, str] = (0.0, "")
        self.failures: dict[str, int] = {}
        self._suspect_slow = suspect_slow

    def __call__(self, data: bytes) -> frozenset[str]:
        """Run one input and return its outcomes, for engines that look for new ones."""
        self.executions += 1
        steps, failure = run_input(self.target, data)
        self.accepted += bool(steps.accepted)
        if steps.longest > self.slowest:
            self.slowest = steps.longest
            _write_file(FOUND / f"slowest-{self.name}", data)
        if failure is None and steps.longest[0] > HANG and self._suspect_slow(data):
            failure = Failure(f"slow {steps.longest[1]}", f"{steps.longest[0]:.1f} s on the wall clock")
        if failure is not None:
            self._keep(failure, data)
        return frozenset(steps.notes)

    def _keep(self, failure: Failure, data: bytes) -> None:
        count = self.failures[failure.kind] = self.failures.get(failure.kind, 0) + 1
        if count > _KEPT_OF_A_KIND:
            return
        if not failure.kind.startswith("slow"):
            data = shrink_input(data, lambda smaller: _failure_kind(self.target, smaller) == failure.kind)
        write_failure(self.name, failure, data)


def write_failure(name: str, failure: Failure, data: bytes) -> Path:
    """Write the input of a failure, and next to it the kind and the command that reproduces it."""
    path = FOUND / f"{name}-{hashlib.sha256(data).hexdigest()[:12]}"
    _write_file(path, data)
    command = f"python fuzz/run.py --target {name} --reproduce fuzz/found/{path.name}"
    _write_file(path.with_suffix(".txt"), f"{failure.kind}\n{command}\n\n{failure.detail}\n".encode("utf-8", "replace"))
    sys.stderr.write(f"{name}: {failure.kind}; {command}\n")
    return path


def run_input(target: Target, data: bytes) -> tuple[Steps, Failure | None]:
    """Run one input and catch exceptions that it should not raise."""
    steps = Steps()
    try:
        target.run(split_parts(data), steps)
    except Exception as error:
        return steps, _describe_failure(steps, error)
    return steps, None


def _describe_failure(steps: Steps, error: BaseException) -> Failure:
    stack = traceback.extract_tb(error.__traceback__)
    frames = [frame for frame in stack if f"{os.sep}stele{os.sep}" in frame.filename]
    place = f"{Path(frames[-1].filename).name}:{frames[-1].name}" if frames else "outside"
    word = str(error).split(":", maxsplit=1)[0][:60] if isinstance(error, Broken) else place
    detail = "".join(traceback.format_exception(error))[-6000:]
    return Failure(f"crash {type(error).__name__} {steps.current}: {word}", detail)


def _failure_kind(target: Target, data: bytes) -> str:
    failure = run_input(target, data)[1]
    return failure.kind if failure else ""


def shrink_input(data: bytes, still: Callable[[bytes], bool], seconds: float = SHRINKING) -> bytes:
    """Return a shorter input for which `still` is true, by removing smaller and smaller pieces."""
    end = time.monotonic() + seconds
    piece = max(1, len(data) // 2)
    while piece:
        at = 0
        while at < len(data):
            if time.monotonic() > end:
                return data
            smaller = data[:at] + data[at + piece :]
            if still(smaller):
                data = smaller
            else:
                at += piece
        piece = min(piece // 2, len(data))
    return data


def _write_file(path: Path, data: bytes) -> None:
    with contextlib.suppress(FileExistsError):
        path.parent.mkdir(parents=True)
    path.write_bytes(data)
