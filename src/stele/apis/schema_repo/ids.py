"""Ids of schemas: numbers, or what a strategy makes of the text; opaque to clients, unambiguous within a subject.

Ids are derived, not stored, so a registry can change its kind of ids and still understands those it gave before. Two
versions with the same digest (another dialect may have registered them) share an id: it means the first live one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from stele.apis.schema_repo.strategies import SEQUENTIAL, strategy
from stele.core.digests import KINDS, digest_keys
from stele.core.model import SchemaDocument, Subject, Version, VersionState
from stele.core.state import State
from stele.core.traversal import find_version

_NUMBER = re.compile(r"0|[1-9][0-9]{0,9}")
_ALWAYS = ("md5", "crc-64-avro")
"""Strategies whose ids are understood whatever is configured."""


def new_id(kind: str, document: SchemaDocument) -> str | None:
    """The id a document would have; None for numbers, which depend on the subject. Raises as `strategy` does."""
    derived = strategy(kind)
    return None if derived is None else derived(document.text, document.digests.get("rabin"))


def id_of(kind: str, first: int, state: State, version: Version) -> str:
    """The id of a version; first is the number of a subject's first one."""
    derived = strategy(kind)
    if derived is None:
        return str(version.version_number - 1 + first)
    return derived(state.get_text(version.content), _rabin(state, version))


def _rabin(state: State, version: Version) -> bytes | None:
    keys = digest_keys(state.get_digests(version.content))
    return next((key[2:] for key in keys if key[0] == KINDS["rabin"]), None)


class _Digested:
    """The digest ids of one subject's versions."""

    def __init__(self) -> None:
        self.counted = 0
        self.last = 0
        self.ordinals: dict[str, list[int]] = {}


class IdIndex:
    """Finds versions by id. A subject's digests are taken when one is first asked for, then kept up with it.

    kind is the strategy in use; ids of the built-in ones are understood beside its own.
    """

    def __init__(self, kind: str = SEQUENTIAL) -> None:
        self._kinds = [name for name in dict.fromkeys((*_ALWAYS, kind)) if name != SEQUENTIAL]
        self._state: State | None = None
        self._known: dict[int, _Digested] = {}

    def find(self, state: State, subject: Subject, asked: str, first: int) -> Version | None:
        """The first live version of that id, of whichever kind the id is; None when there is none."""
        if _NUMBER.fullmatch(asked):
            return _live(subject, [int(asked) + 1 - first])
        return _live(subject, self._followed(state, subject).ordinals.get(asked, ()))

    def _followed(self, state: State, subject: Subject) -> _Digested:
        if state is not self._state:
            self._state, self._known = state, {}
        known = self._known.get(subject.uid)
        rows = subject.versions
        if known is None or known.counted > len(rows) or (known.counted and rows[known.counted - 1].uid != known.last):
            # Never seen, or versions were purged: what is left has moved.
            known = self._known[subject.uid] = _Digested()
        for row in rows[known.counted :]:
            for name in {id_of(kind, 0, state, row) for kind in self._kinds}:
                known.ordinals.setdefault(name, []).append(row.version_number)
            known.counted, known.last = known.counted + 1, row.uid
        return known


def _live(subject: Subject, ordinals: Iterable[int]) -> Version | None:
    found = (find_version(subject, ordinal) for ordinal in ordinals if ordinal > 0)
    return next((row for row in found if row is not None and row.state is VersionState.ACTIVE), None)


def named_once(kind: str, first: int, state: State, rows: Iterable[Version]) -> Iterator[tuple[str, Version]]:
    """(id, version) of every version that its id means, in the order given: oldest first."""
    seen: set[str] = set()
    for row in rows:
        name = id_of(kind, first, state, row)
        if name not in seen:
            seen.add(name)
            yield name, row
