"""Our own archive: a whole registry in one file that says itself whether it is complete.

JSON lines inside gzip, or zstd where the name ends in `.zst`. First a header with the format's version, then contexts,
settings, modes, highest ids and versions, each after those it refers to; last a trailer with the number of lines and
the SHA-256 of all of them. Equal registries give equal bytes, so archives can be compared, signed and kept in Git.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

import msgspec
import zstandard

from stele.errors import InvalidRequest
from stele.migrate import files, model
from stele.migrate.lines import numbered
from stele.migrate.model import Config, Dump, Version
from stele.migrate.order import ordered
from stele.migrate.reading import decoded

VERSION = 1
"""Of the format. Readers refuse higher ones."""

_LEVEL = 9
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_GZIP_MAGIC = b"\x1f\x8b"
_encode = msgspec.json.Encoder(order="deterministic").encode


class _Header(msgspec.Struct, frozen=True):
    archive: str
    version: int


class _Trailer(msgspec.Struct, frozen=True):
    lines: int
    sha256: str


class _Line(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """One thing: a context, perhaps with its highest id; a level with its settings or mode; a version; or the end."""

    context: str | None = None
    max_id: int | None = None
    level: str | None = None
    config: Config | None = None
    mode: str | None = None
    schema: Version | None = None
    end: _Trailer | None = None


_HEADER = _Header("stele", VERSION)
_header = msgspec.json.Decoder(_Header)
_line = msgspec.json.Decoder(_Line)


# --- writing --------------------------------------------------------------------------------------------------------


def write(dump: Dump, path: Path) -> None:
    """Write the archive; a file of that name is replaced only by a complete one. Raises `InvalidRequest`."""
    data = b"".join(lines(dump))
    packed = _zstd(data) if path.suffix == ".zst" else gzip.compress(data, _LEVEL, mtime=0)
    files.write(path, [packed])


def lines(dump: Dump) -> Iterator[bytes]:
    """The lines before they are packed, each with its end."""
    count, digest = 0, hashlib.sha256()
    for line in _lines(dump):
        count += 1
        digest.update(line)
        yield line
    yield _encode(_Line(end=_Trailer(count, digest.hexdigest()))) + b"\n"


def _lines(dump: Dump) -> Iterator[bytes]:
    yield _encode(_HEADER) + b"\n"
    rows: list[_Line] = [_Line(context=name, max_id=dump.max_ids.get(name)) for name in sorted(dump.contexts)]
    rows += [_Line(level=level, config=own) for level, own in sorted(dump.configs.items())]
    rows += [_Line(level=level, mode=mode) for level, mode in sorted(dump.modes.items())]
    for row in (*rows, *(_Line(schema=version) for version in ordered(dump.versions))):
        yield _encode(row) + b"\n"


def _zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(_LEVEL, write_checksum=True).compress(data)


# --- reading --------------------------------------------------------------------------------------------------------


def read(path: Path) -> Dump:
    """The registry in an archive. Raises `InvalidRequest` naming the line that is wrong, or what is missing."""
    try:
        with _opened(path) as file:
            return _read(file, path)
    except (OSError, EOFError, zstandard.ZstdError, zlib.error) as error:
        raise InvalidRequest(f"{path}: the archive is damaged: {error}") from None


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    with files.reading(path) as file:
        # Standard input cannot be rewound, so the first bytes are looked at, not read.
        packed = file if isinstance(file, io.BufferedReader) else io.BufferedReader(cast("io.RawIOBase", file))
        head = packed.peek(4)[:4]
        if head == _ZSTD_MAGIC:
            reader = zstandard.ZstdDecompressor().stream_reader(packed)
            yield io.BufferedReader(cast("io.RawIOBase", reader))
        elif head.startswith(_GZIP_MAGIC):
            with gzip.open(packed) as unpacked:
                yield cast("BinaryIO", unpacked)
        else:
            raise InvalidRequest(f"{path}: neither gzip nor zstd, so no archive")


def _read(file: BinaryIO, path: Path) -> Dump:
    reading = _Reading()
    digest = hashlib.sha256()
    end: _Trailer | None = None
    for number, line in numbered(file):
        place = f"{path}, line {number}"
        if end is not None:
            raise InvalidRequest(f"{place}: nothing may follow the end")
        if number == 1:
            _check_header(decoded(_header.decode, line, place), place)
        else:
            end = reading.add(decoded(_line.decode, line, place), number)
        if end is None:
            digest.update(line + b"\n")
        elif end != _Trailer(number - 1, digest.hexdigest()):
            raise InvalidRequest(f"{path}: the digest at the end does not fit: the archive was changed or damaged")
    if end is None:
        raise InvalidRequest(f"{path}: the archive has no end: it is not complete")
    return reading.dump(str(path))


def _check_header(header: _Header, place: str) -> None:
    if header.archive != "stele":
        raise InvalidRequest(f"{place}: this is no archive of a registry")
    if header.version > VERSION:
        raise InvalidRequest(f"{place}: format {header.version} is newer than this program, which reads {VERSION}")


class _Reading:
    """What the lines so far have said."""

    def __init__(self) -> None:
        self._versions: list[Version] = []
        self._configs: dict[str, Config] = {}
        self._modes: dict[str, str] = {}
        self._contexts: list[str] = []
        self._max_ids: dict[str, int] = {}
        self._lines: dict[tuple[str, int], int] = {}

    def add(self, line: _Line, number: int) -> _Trailer | None:
        """Take in one line; what it says of the end."""
        if line.schema is not None:
            self._versions.append(_normal(line.schema))
            self._lines[line.schema.key] = number
        elif line.context is not None:
            self._contexts.append(line.context)
            if line.max_id is not None:
                self._max_ids[line.context] = line.max_id
        elif line.level is not None and line.config is not None:
            self._configs[line.level] = model.config(line.config)
        elif line.level is not None and line.mode is not None:
            self._modes[line.level] = line.mode
        return line.end

    def dump(self, path: str) -> Dump:
        """The registry."""
        versions = ordered(self._versions, lambda key: f"{path}, line {self._lines[key]}")
        return Dump(versions, self._configs, self._modes, tuple(self._contexts), self._max_ids)


def _normal(row: Version) -> Version:
    return model.version(
        row.subject,
        row.version,
        row.id,
        row.schema,
        schema_type=row.schema_type,
        references=row.references,
        metadata=row.metadata,
        rule_set=row.rule_set,
        deleted=row.deleted,
    )
