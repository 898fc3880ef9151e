r"""Dump files of a topic: one record per line, as JSON or as printed by `kafka-console-consumer`.

    {"offset": 7, "ts": …, "key": {"keytype": "SCHEMA", …}, "value": {…}}   what `stele export topic` writes
    {"offset": 7, "ts": …, "key": "{\"keytype\": …}", "payload": "{…}"}        with JSON in strings, as in `kcat -J`
    {"keytype": "SCHEMA", …}<TAB>{…}                                  `null` is a tombstone
    Offset:7<TAB>{"keytype": "SCHEMA", …}<TAB>{…}                     with print.offset=true, print.partition=true …
    CreateTime:…<TAB>{"keytype": "SCHEMA", …}<TAB>{…}                 with print.timestamp=true

Times are in milliseconds since 1970 UTC. A file may contain both kinds of lines; empty lines are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import BinaryIO

import msgspec

from stele.core.model import LATEST_TIME
from stele.errors import InvalidRequest
from stele.migrate.reading import decode_json
from stele.migrate.topic_records import Record

MAX_LINE = 64 * 1024 * 1024
"""Highest length of a line in bytes."""

_COLUMN = re.compile(rb"(?:(CreateTime|LogAppendTime|Partition|Offset):(-?[0-9]{1,19})|NO_TIMESTAMP)\t")


_NONE = msgspec.Raw(b"null")


class _Line(msgspec.Struct):
    """A line in JSON."""

    key: msgspec.Raw
    value: msgspec.Raw = _NONE
    payload: msgspec.Raw = _NONE
    offset: int | None = None
    ts: int | None = None


_line = msgspec.json.Decoder(_Line)
_string = msgspec.json.Decoder(str)


def read_records(file: BinaryIO) -> Iterator[Record]:
    """Yield the records of a dump file, in its order. Raises `InvalidRequest` with the number of the line."""
    for number, line in number_lines(file):
        if line.strip():
            yield _parse_line(line, f"line {number}")


def number_lines(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yield lines without their ends, numbered from 1. Raises `InvalidRequest` for one that is too long."""
    number = 0
    while line := file.readline(MAX_LINE + 1):
        number += 1
        if len(line) > MAX_LINE:
            raise InvalidRequest(f"line {number} is longer than {MAX_LINE // 2**20} MiB")
        yield number, line.rstrip(b"\r\n")


def write_records(records: Iterable[Record]) -> Iterator[bytes]:
    """Yield the lines of a dump file, each with its end."""
    for record in records:
        offset = b"" if record.offset is None else b'"offset":%d,' % record.offset
        ts = b"" if record.ts is None else b'"ts":%d,' % record.ts
        yield b'{%b%b"key":%b,"value":%b}\n' % (offset, ts, record.key or b"null", record.value or b"null")


def _parse_line(line: bytes, place: str) -> Record:
    if not line.startswith(b"{") or b"\t" in line:
        columns = _parse_columns(line, place)
        if columns is not None:
            return columns
    row = decode_json(_line.decode, line, f"{place}: neither JSON with key and value nor key, tab, value")
    value = _json_bytes(row.value, place) or _json_bytes(row.payload, place)
    return Record(_json_bytes(row.key, place), value, row.offset, place, _valid_time(row.ts))


def _parse_columns(line: bytes, place: str) -> Record | None:
    """Return the record of a line with tab-separated columns; None when the line has another form."""
    numbers: dict[bytes, int] = {}
    while (column := _COLUMN.match(line)) is not None:
        if column[1]:
            numbers[column[1]] = int(column[2])
        line = line[column.end() :]
    key, tab, value = line.partition(b"\t")
    if not tab or b'"keytype"' not in key:
        return None
    ts = numbers.get(b"CreateTime", numbers.get(b"LogAppendTime"))
    return Record(
        key, None if value.strip() in {b"null", b""} else value, numbers.get(b"Offset"), place, _valid_time(ts)
    )


def _valid_time(ts: int | None) -> int | None:
    """Return the time, None if it is missing or invalid. Kafka uses -1 for a missing time."""
    return ts if ts is not None and 0 <= ts < LATEST_TIME else None


def _json_bytes(raw: msgspec.Raw, place: str) -> bytes | None:
    """Return the JSON itself, or the JSON inside a string; None for null."""
    data = bytes(raw).strip()
    if data == b"null":
        return None
    return decode_json(_string.decode, data, place).encode() if data.startswith(b'"') else data
