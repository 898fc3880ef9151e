"""Imports a running registry into a store and kills itself after some steps: `kill_import.py URL STORE STEPS`."""

from __future__ import annotations

import os
import signal
import sys

from stele.cli.offline import open_offline
from stele.client import SchemaRegistryClient
from stele.migrate import registry_reader, registry_writer


def main() -> None:
    """Import until the step is reached."""
    url, store, steps = sys.argv[1:]
    registry_writer.CHUNK = 4

    def progress(verb: str, done: int, total: int | None) -> None:
        if verb == "import" and done >= int(steps):
            os.kill(os.getpid(), signal.SIGKILL)

    with SchemaRegistryClient(url) as there:
        dump = registry_reader.read_registry(there, levels=["nobody"])
    with open_offline(store) as transport, SchemaRegistryClient("http://store", transport=transport) as client:
        registry_writer.apply_import(dump, client, progress=progress)


if __name__ == "__main__":
    main()
