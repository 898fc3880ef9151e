"""Memory that a process has used."""

from __future__ import annotations

import resource
import sys
from pathlib import Path


def peak_memory() -> int:
    """Return the highest number of resident bytes of this process since its program started.

    `ru_maxrss` would also count the memory of the parent process. A test that a large pytest worker starts would then
    measure that worker.
    """
    if sys.platform != "linux":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


def reset_peak_memory() -> int:
    """Restart the count of `peak_memory`, where the system allows it, and return its new value in bytes."""
    if sys.platform == "linux":
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return peak_memory()
