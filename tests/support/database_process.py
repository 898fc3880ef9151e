"""Programs of databases, run as a user who may run them: they refuse root."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["data_folder", "run_program", "start_program"]


def _identity() -> dict[str, Any]:
    if os.geteuid():
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


@contextmanager
def data_folder(name: str) -> Iterator[Path]:
    """A folder of the user of databases, removed at the end; pytest's own folders are closed to others."""
    with tempfile.TemporaryDirectory(prefix=f"stele-{name}-", ignore_cleanup_errors=True) as folder:
        if os.geteuid() == 0:
            shutil.chown(folder, "nobody")
        yield Path(folder)


def run_program(*command: str | Path) -> None:
    """Run a program to its end. Raises AssertionError with what it printed when it fails."""
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd="/",
        **_identity(),
    )
    assert done.returncode == 0, done.stdout + done.stderr


def start_program(*command: str | Path, output: Path) -> subprocess.Popen[bytes]:
    """Start a server; what it prints goes to a file."""
    with output.open("ab") as file:
        return subprocess.Popen(
            [str(part) for part in command], stdout=file, stderr=subprocess.STDOUT, cwd="/", **_identity()
        )
