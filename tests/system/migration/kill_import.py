"""Import a running registry into a store, and be killed after so many steps: `kill_import.py URL STORE STEPS`."""

from __future__ import annotations

import os
import signal
import sys

from stele.cli.offline import offline
from stele.client import SchemaRegistryClient
from stele.migrate import source, target


def main() -> None:
    """Run until the step."""
    url, store, steps = sys.argv[1:]
    target.CHUNK = 4

    def progress(verb: str, done: int, total: int | None) -> None:
        if verb == "import" and done >= int(steps):
            os.kill(os.getpid(), signal.SIGKILL)

    with SchemaRegistryClient(url) as there:
        dump = source.read(there, levels=["nobody"])
    with offline(store) as transport, SchemaRegistryClient("http://store", transport=transport) as client:
        target.apply(dump, client, progress=progress)


if __name__ == "__main__":
    main()
