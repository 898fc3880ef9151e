"""The command `stele` with a wall clock that a test can set: `python shifted_clock.py FILE serve …`, or as a module.

FILE holds the nanoseconds to add. The monotonic clock is unchanged, as when an administrator or NTP sets the time.
"""

from __future__ import annotations

import mmap
import struct
import sys
import time
from pathlib import Path

_OFFSET = struct.Struct("<q")


def set_clock_offset(file: Path, seconds: float) -> None:
    """Set the offset in seconds of the clock of the process that reads this file. It may be negative."""
    with file.open("r+b" if file.exists() else "wb") as target:
        target.write(_OFFSET.pack(int(seconds * 1e9)))


def _shift_clock(file: str) -> None:
    with open(file, "rb") as source:
        view = mmap.mmap(source.fileno(), _OFFSET.size, prot=mmap.PROT_READ)
    read_clock = time.time_ns

    def read_shifted_clock() -> int:
        return read_clock() + int(_OFFSET.unpack(view)[0])

    time.time_ns = read_shifted_clock
    time.time = lambda: read_shifted_clock() / 1e9


def main() -> None:
    """Shift the clock, then run the command with the remaining arguments."""
    _shift_clock(sys.argv.pop(1))
    from stele.cli import main as run_command

    sys.argv[0] = "stele"
    run_command()


if __name__ == "__main__":
    main()
