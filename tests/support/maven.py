"""Jars from Maven Central, for tests that run what is in them."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

_KEPT = Path(sys.prefix) / "maven"
_SECONDS = 580


def jars(pom: Path) -> Path:
    """The folder with everything a project file depends on; fetched once per content of the file.

    Fails, with what Maven said, when Maven is missing or does not find an artifact.
    """
    folder = _KEPT / f"{pom.stem}-{hashlib.sha256(pom.read_bytes()).hexdigest()[:12]}"
    _KEPT.mkdir(exist_ok=True)
    with Path(_KEPT, f"{pom.stem}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # of the processes that run tests side by side one fetches
        if not folder.exists():
            _fetch(pom, folder)
    return folder


def _fetch(pom: Path, folder: Path) -> None:
    assert shutil.which("mvn"), "Maven is missing: these tests need `mvn`"
    with tempfile.TemporaryDirectory(dir=_KEPT) as work:
        command = ["mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={work}/jars"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False, cwd=work)
        assert done.returncode == 0, f"{command}:\n{done.stdout[-6000:]}\n{done.stderr[-2000:]}"
        # Whole or not at all: the next run looks for the folder only.
        Path(work, "jars").rename(folder)
