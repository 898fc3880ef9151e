"""How the ids of schemas are derived: strategies by name, those here and those that packages bring.

More come in by the entry point group `stele.ids`: the entry point's name is the strategy's, its value a callable
`(text, rabin) -> id`, where text is the schema as registered and rabin its CRC-64-AVRO fingerprint, 8 bytes, None for
what is no Avro. It must be a pure function: ids are derived anew whenever they are asked for. An id is one segment of
a URL and no number, for numbers are the sequential ids, which are always understood.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Final

from stele.errors import InvalidRequest

GROUP: Final = "stele.ids"
"""Name of the entry point group."""

SEQUENTIAL: Final = "sequential"
"""The strategy without a function: the version's number in its subject, from 1 in AVRO-1124, from 0 in schema-repo."""

IdStrategy = Callable[[bytes, bytes | None], str]

_SPACES = re.compile(rb"[ \t\r\n]+")
_SEGMENT = re.compile(r"[A-Za-z0-9._~-]{1,128}")


def md5(text: bytes, rabin: bytes | None) -> str:
    """MD5 of the text without white space, 32 hexadecimal digits: what LinkedIn used."""
    return hashlib.md5(_SPACES.sub(b"", text), usedforsecurity=False).hexdigest()


def crc_64_avro(text: bytes, rabin: bytes | None) -> str:
    """The 64-bit fingerprint of the Avro specification, 16 hexadecimal digits; of other languages, the MD5."""
    return rabin.hex() if rabin is not None else md5(text, rabin)


def strategy(name: str) -> IdStrategy | None:
    """The strategy of that name; None is the sequential one.

    Raises `InvalidRequest` for a name nobody installed, and for one that cannot be loaded.
    """
    return None if name == SEQUENTIAL else _derived(name)


def installed() -> tuple[str, ...]:
    """The names there are, the sequential one first."""
    return (SEQUENTIAL, *sorted(_points()))


@cache
def _derived(name: str) -> IdStrategy:
    point = _points().get(name)
    if point is None:
        raise InvalidRequest(f"ids: nobody installed a strategy {name!r}; there are {', '.join(installed())}")
    try:
        made: IdStrategy = point.load()
    except (ImportError, AttributeError) as error:
        raise InvalidRequest(f"ids: the strategy {name!r} cannot be loaded: {error}") from None

    def derived(text: bytes, rabin: bytes | None) -> str:
        told = made(text, rabin)
        if not _SEGMENT.fullmatch(told) or told.isdigit() or not told.strip("."):
            raise InvalidRequest(f"ids: the strategy {name!r} says {told!r}, which is no segment of a URL or a number")
        return told

    return derived


@cache
def _points() -> dict[str, EntryPoint]:
    """The first distribution to claim a name has it."""
    points: dict[str, EntryPoint] = {}
    for point in entry_points(group=GROUP):
        points.setdefault(point.name, point)
    return points
