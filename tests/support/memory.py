"""How much memory a process has taken."""

from __future__ import annotations

import resource
import sys
from pathlib import Path


def peak_memory() -> int:
    """Return the most resident bytes this process has had since its program started.

    `ru_maxrss` would also count what the process that started this one had: a test in a large worker of pytest then
    measures that worker.
    """
    if sys.platform != "linux":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


def reset_peak_memory() -> int:
    """Have `peak_memory` count from here, where the system can; return what the process has now."""
    if sys.platform == "linux":
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return peak_memory()
