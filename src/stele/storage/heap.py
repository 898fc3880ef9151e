"""What the allocator of this process holds that nobody uses."""

from __future__ import annotations

import ctypes
import sys

__all__ = ["return_memory"]


def return_memory() -> None:
    """Give what loading has freed back to the system, where the C library can."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)
