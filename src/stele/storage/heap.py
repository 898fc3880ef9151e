"""Returns unused memory of the allocator of this process to the system."""

from __future__ import annotations

import ctypes
import sys

__all__ = ["return_memory"]


def return_memory() -> None:
    """Give memory that was freed after loading back to the operating system, where the C library supports it."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)
