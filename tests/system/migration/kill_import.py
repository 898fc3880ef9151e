"""Import an archive into a store, and be killed after so many steps: `python kill_import.py ARCHIVE STORE STEPS`."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from stele.cli.offline import offline
from stele.client import SchemaRegistryClient
from stele.migrate import archive, target


def main() -> None:
    """Run until the step."""
    file, store, steps = sys.argv[1:]

    def progress(verb: str, done: int, total: int | None) -> None:
        if verb == "import" and done == int(steps):
            os.kill(os.getpid(), signal.SIGKILL)

    with offline(store) as transport, SchemaRegistryClient("http://store", transport=transport) as client:
        target.apply(archive.read(Path(file)), client, progress=progress)


if __name__ == "__main__":
    main()
