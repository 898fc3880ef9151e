"""Ids of schemas: version numbers, or what a strategy derives from the text; opaque to clients, unique in a subject.

Ids are derived, not stored, so a registry can change its strategy and still accept the ids of the previous one. Two
versions with one digest, which another dialect may have registered, share an id. It means the first active one.

Packages add strategies by the entry point group `stele.ids`: the entry point's name is the strategy's, its value a
callable `(text, rabin) -> id`. text is the schema as registered, rabin its CRC-64-AVRO fingerprint, 8 bytes, or None if
the schema is not Avro. The callable must be a pure function, since ids are derived again whenever they are needed. An
id must be one segment of a URL and no number: numbers are the sequential ids, which are always accepted.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Final

from stele.core.digests import KINDS, digest_keys
from stele.core.model import SchemaDocument, Subject, Version, VersionState
from stele.core.state import State
from stele.core.traversal import find_version
from stele.errors import InvalidRequest

GROUP: Final = "stele.ids"
"""Name of the entry point group."""

SEQUENTIAL: Final = "sequential"
"""Strategy without a function: the version number in its subject, from 1 in AVRO-1124, from 0 in schema-repo."""

IdStrategy = Callable[[bytes, bytes | None], str]

_BLANKS = re.compile(rb"[ \t\r\n]+")
_SEGMENT = re.compile(r"[A-Za-z0-9._~-]{1,128}")


def md5(text: bytes, rabin: bytes | None) -> str:
    """Return the MD5 of the text without white space, 32 hexadecimal digits: LinkedIn's ids."""
    return hashlib.md5(_BLANKS.sub(b"", text), usedforsecurity=False).hexdigest()


def crc_64_avro(text: bytes, rabin: bytes | None) -> str:
    """Return Avro's 64-bit fingerprint, 16 hexadecimal digits; the MD5 for other formats."""
    return rabin.hex() if rabin is not None else md5(text, rabin)


def get_strategy(name: str) -> IdStrategy | None:
    """Return the strategy with a name, None for the sequential one.

    Raises `InvalidRequest` for a name that is not installed, and for one that cannot be loaded.
    """
    return None if name == SEQUENTIAL else _load_strategy(name)


def list_strategies() -> tuple[str, ...]:
    """Return the names of all strategies, the sequential one first."""
    return (SEQUENTIAL, *sorted(_entry_points()))


@cache
def _load_strategy(name: str) -> IdStrategy:
    point = _entry_points().get(name)
    if point is None:
        raise InvalidRequest(f"ids: the strategy {name!r} is not installed; there are {', '.join(list_strategies())}")
    try:
        derive: IdStrategy = point.load()
    except (ImportError, AttributeError) as error:
        raise InvalidRequest(f"ids: the strategy {name!r} cannot be loaded: {error}") from None

    def derive_checked(text: bytes, rabin: bytes | None) -> str:
        schema_id = derive(text, rabin)
        if not _SEGMENT.fullmatch(schema_id) or schema_id.isdigit() or not schema_id.strip("."):
            raise InvalidRequest(
                f"ids: the strategy {name!r} says {schema_id!r}, which is neither a segment of a URL nor a number"
            )
        return schema_id

    return derive_checked


@cache
def _entry_points() -> dict[str, EntryPoint]:
    """Return the entry points by name. If several distributions have the same name, the first one is used."""
    points: dict[str, EntryPoint] = {}
    for point in entry_points(group=GROUP):
        points.setdefault(point.name, point)
    return points


# --- ids of versions -------------------------------------------------------------------------------------------------

_NUMBER = re.compile(r"0|[1-9][0-9]{0,9}")
_ALWAYS = ("md5", "crc-64-avro")
"""Strategies whose ids are always accepted."""


def id_of_document(kind: str, document: SchemaDocument) -> str | None:
    """Return the id a document would get; None if ids are numbers, which depend on the subject.

    Raises as `get_strategy`.
    """
    strategy = get_strategy(kind)
    return None if strategy is None else strategy(document.text, document.digests.get("rabin"))


def id_of(kind: str, first: int, state: State, version: Version) -> str:
    """Return the id of a version; first is the number of a subject's first version."""
    strategy = get_strategy(kind)
    if strategy is None:
        return str(version.version_number - 1 + first)
    return strategy(state.get_text(version.content), _rabin_digest(state, version))


def _rabin_digest(state: State, version: Version) -> bytes | None:
    keys = digest_keys(state.get_digests(version.content))
    return next((key[2:] for key in keys if key[0] == KINDS["rabin"]), None)


class _DigestIds:
    """Ids of the versions of one subject by digest."""

    def __init__(self) -> None:
        self.counted = 0
        self.last = 0
        self.ordinals: dict[str, list[int]] = {}


class IdIndex:
    """Finds versions by id.

    The ids of a subject are derived at the first look-up in it; later look-ups derive those of new versions only.
    `kind` is the strategy in use; ids of the built-in strategies are accepted, too.
    """

    def __init__(self, kind: str = SEQUENTIAL) -> None:
        self._kinds = [name for name in dict.fromkeys((*_ALWAYS, kind)) if name != SEQUENTIAL]
        self._state: State | None = None
        self._known: dict[int, _DigestIds] = {}

    def find_version(self, state: State, subject: Subject, schema_id: str, first: int) -> Version | None:
        """Return the first active version with an id of any strategy, None if there is none."""
        if _NUMBER.fullmatch(schema_id):
            return _first_active(subject, [int(schema_id) + 1 - first])
        return _first_active(subject, self._catch_up(state, subject).ordinals.get(schema_id, ()))

    def _catch_up(self, state: State, subject: Subject) -> _DigestIds:
        if state is not self._state:
            self._state, self._known = state, {}
        known = self._known.get(subject.uid)
        rows = subject.versions
        if known is None or known.counted > len(rows) or (known.counted and rows[known.counted - 1].uid != known.last):
            # Not indexed yet, or versions were purged, which moves the others.
            known = self._known[subject.uid] = _DigestIds()
        for row in rows[known.counted :]:
            for name in {id_of(kind, 0, state, row) for kind in self._kinds}:
                known.ordinals.setdefault(name, []).append(row.version_number)
            known.counted, known.last = known.counted + 1, row.uid
        return known


def _first_active(subject: Subject, version_numbers: Iterable[int]) -> Version | None:
    versions = (find_version(subject, version_number) for version_number in version_numbers if version_number > 0)
    return next((row for row in versions if row is not None and row.state is VersionState.ACTIVE), None)
