"""Upgrades a file of layout 1, whose records had no checksums, to the newest layout.

It is one transaction: when the process ends in it, the old layout stays and the next process begins again. Records of
the old layout have no checksum, so the only available check is used: every text is compared with its own SHA-256.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Final

import msgspec

from stele.core.events import decode_record, has_intact_texts
from stele.errors import DamagedLog, StoreError
from stele.storage.chained_log import REPAIR_HINT, seal_snapshot
from stele.storage.high_water_mark import HighWaterMark, LogPosition
from stele.storage.record_chain import FIRST_LINK, chain_record, read_link
from stele.storage.sqlite.file import mark_path, transaction

__all__ = ["UNCHECKED_LAYOUT", "upgrade_layout"]

UNCHECKED_LAYOUT: Final = 1

_LOGGER = logging.getLogger(__name__)


def upgrade_layout(path: Path, connection: sqlite3.Connection, layout: Sequence[str]) -> None:
    """Copy records and snapshot into the tables of the new layout, chained, and drop the old tables.

    Raises `DamagedLog` when a record is missing or a text does not match its SHA-256; nothing is changed then.
    """
    with transaction(connection):
        for statement in layout:
            connection.execute(statement)
        mark = LogPosition(0, FIRST_LINK)
        links = {row[0]: FIRST_LINK for row in connection.execute("SELECT seq FROM snapshot").fetchall()}
        insert = "INSERT INTO record (seq, stored) VALUES (?, ?)"
        for seq, stored in _chain_records(path, connection):
            connection.execute(insert, (seq, stored))
            mark = LogPosition(seq, read_link(stored))
            if seq in links:
                links[seq] = mark.link
        for seq, digest, data in connection.execute("SELECT seq, digest, data FROM snapshot").fetchall():
            if seq <= mark.seq and digest == blake2b(data, digest_size=16, salt=seq.to_bytes(8, "big")).digest():
                sealed = seal_snapshot(seq, links[seq], data)
                connection.execute("INSERT INTO state (seq, sealed) VALUES (?, ?)", (seq, sealed))
        connection.execute("DROP TABLE log")
        connection.execute("DROP TABLE snapshot")
    try:
        HighWaterMark(mark_path(path)).replace(mark)
    except OSError as error:
        raise StoreError(f"The high-water mark of the log {path} cannot be written: {error.strerror}") from error
    _LOGGER.warning("%s has checksums now: %d records; older releases cannot open it any more", path, mark.seq)


def _chain_records(path: Path, connection: sqlite3.Connection) -> Iterator[tuple[int, bytes]]:
    link, expected = FIRST_LINK, 1
    for seq, record in connection.execute("SELECT seq, record FROM log ORDER BY seq"):
        if seq != expected or not _is_intact(record):
            raise DamagedLog(f"Record {expected} of the log {path} is damaged. {REPAIR_HINT}")
        link, stored = chain_record(link, seq, record)
        expected = seq + 1
        yield seq, stored


def _is_intact(record: bytes) -> bool:
    try:
        return has_intact_texts(decode_record(record))
    except msgspec.MsgspecError:
        return False
