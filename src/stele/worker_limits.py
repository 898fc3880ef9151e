"""Limits that the scripts of `worker_process` set on their own process; POSIX only, no limits elsewhere.

Imports nothing, so that a script which needs nothing else of Stele starts quickly.
"""

from __future__ import annotations

import contextlib
import signal


def limit_time(seconds: float) -> None:
    """Make the system end this process after some seconds of processor time; 0 removes the limit."""
    with contextlib.suppress(AttributeError):
        signal.setitimer(signal.ITIMER_PROF, seconds)


def limit_memory(address_space: int) -> None:
    """Limit the address space of this process, in bytes, and turn off core dumps."""
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(ValueError, OSError):  # a lower limit may be in force already
        resource.setrlimit(resource.RLIMIT_AS, (address_space, address_space))
