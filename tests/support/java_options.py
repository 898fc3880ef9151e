"""Options that let Java machines of tests start in half the time.

A test's Java machine runs for seconds on little data, so the second compilation of hot code and parallel garbage
collection cost more than they save. With an archive of the classes that it loads (Java's class data sharing), it starts
in half of that time again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

LIGHT: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Xlog:cds=off", "-Xlog:cds+dynamic=off")
"""Options for light compilation. An archive that is missing, or was made for other jars or another Java, is ignored."""


def get_archive_option(archive: Path) -> str:
    """Return the option that makes a machine load its classes from an archive."""
    return f"-XX:SharedArchiveFile={archive}"


def get_recording_option(archive: Path) -> str:
    """Return the option of a machine that writes the classes it loaded when it ends."""
    return f"-XX:ArchiveClassesAtExit={archive}"
