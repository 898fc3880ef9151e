"""Memory and processor time of this process and its children, as Linux reports them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_TICKS: Final = os.sysconf("SC_CLK_TCK")


def resident_bytes(pid: int | None = None) -> int:
    """Return the resident bytes of a process (by default this one) and all its descendants."""
    total = 0
    for each in list_processes(pid or os.getpid()):
        try:
            total += int(Path(f"/proc/{each}/statm").read_text().split()[1]) * _PAGE
        except OSError:
            continue  # the process has ended
    return total


def processor_seconds(pid: int | None = None) -> float:
    """Return the processor seconds of a process and its descendants, including those that have ended."""
    ticks = 0
    for each in list_processes(pid or os.getpid()):
        try:
            fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += sum(map(int, fields[11:15]))
    return ticks / _TICKS


def list_processes(pid: int) -> Iterator[int]:
    """Yield a process id and those of all its descendants."""
    yield pid
    for task in Path(f"/proc/{pid}/task").glob("*"):
        try:
            children = (task / "children").read_text().split()
        except OSError:
            continue
        for child in children:
            yield from list_processes(int(child))
