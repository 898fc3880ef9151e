"""Options that let Java machines of tests start in half the time.

A test's Java machine lives for seconds and its data are few, so compiling hot code twice and collecting garbage on
several threads cost more than they bring. With an archive of the classes it loads (Java's class data sharing) it
starts in half of that again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

LIGHT: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Xlog:cds=off", "-Xlog:cds+dynamic=off")
"""Light compilation; a missing archive, or one of another Java or other jars, is left out without a word."""


def get_archive_option(archive: Path) -> str:
    """Return the option of a machine that takes its classes from an archive."""
    return f"-XX:SharedArchiveFile={archive}"


def get_recording_option(archive: Path) -> str:
    """Return the option of a machine that writes the classes it loaded when it ends."""
    return f"-XX:ArchiveClassesAtExit={archive}"
