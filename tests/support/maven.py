"""Jars from Maven Central for tests that run programs in them."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

_KEPT = Path(sys.prefix) / "maven"
_SECONDS = 580


def jars(pom: Path) -> Path:
    """Return the folder with all dependencies of a POM. They are fetched once per content of the POM.

    Raises AssertionError with Maven's output when Maven is missing or does not find an artifact.
    """
    folder = _KEPT / f"{pom.stem}-{hashlib.sha256(pom.read_bytes()).hexdigest()[:12]}"
    make_once(folder, lambda path: _fetch(pom, path))
    return folder


def make_once(target: Path, make: Callable[[Path], None]) -> None:
    """Create a file or folder of the environment unless it exists. It appears complete or not at all.

    `make` gets the temporary path to write to.
    """
    target.parent.mkdir(exist_ok=True)
    with target.with_name(f"{target.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # only one of the parallel test processes makes it
        if not target.exists():
            with tempfile.TemporaryDirectory(dir=target.parent) as work:
                make(Path(work, "made"))
                Path(work, "made").rename(target)


def _fetch(pom: Path, folder: Path) -> None:
    assert shutil.which("mvn"), "Maven is missing: these tests need `mvn`"
    command = ["mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={folder}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False, cwd=folder.parent)
    assert done.returncode == 0, f"{command}:\n{done.stdout[-6000:]}\n{done.stderr[-2000:]}"
