"""Memory and processor time of this process and its children, as Linux tells them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_TICKS: Final = os.sysconf("SC_CLK_TCK")


def resident_bytes(pid: int | None = None) -> int:
    """Bytes of memory in use by a process (this one by default) and all below it."""
    total = 0
    for each in list_processes(pid or os.getpid()):
        try:
            total += int(Path(f"/proc/{each}/statm").read_text().split()[1]) * _PAGE
        except OSError:
            continue  # it has just ended
    return total


def processor_seconds(pid: int | None = None) -> float:
    """Seconds of processor time used by a process and those below it, the ones that ended included."""
    ticks = 0
    for each in list_processes(pid or os.getpid()):
        try:
            fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += sum(map(int, fields[11:15]))
    return ticks / _TICKS


def list_processes(pid: int) -> Iterator[int]:
    """A process and those it started, and they."""
    yield pid
    for task in Path(f"/proc/{pid}/task").glob("*"):
        try:
            children = (task / "children").read_text().split()
        except OSError:
            continue
        for child in children:
            yield from list_processes(int(child))
