"""Restores an archive into a store and kills itself after a number of records: `kill_restore.py FILE STORE RECORDS`."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from stele.migrate import archive
from stele.storage import open_log


async def main() -> None:
    """Restore in batches of seven records until the record is reached."""
    file, store, records = sys.argv[1:]
    archive._PAGE = 7

    def progress(verb: str, done: int, total: int | None) -> None:
        if done >= int(records):
            os.kill(os.getpid(), signal.SIGKILL)

    with archive.open_archive(Path(file)) as archive_file:
        await archive_file.restore(await open_log(store), progress)


if __name__ == "__main__":
    asyncio.run(main())
