"""All subjects as rows, for lists with search, filters, counts and sorting. One pass over the rows gives a page.

The index is built on first use and follows the log. A record about a subject updates the row of that subject. A record
about settings of a namespace or of the registry updates all rows.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Hashable, Iterable, Sequence
from operator import attrgetter
from typing import Final, Literal, NamedTuple

import msgspec

from stele.core import queries
from stele.core.access import Operation
from stele.core.model import Namespace, Subject, SubjectKey, VersionState
from stele.core.state import State
from stele.service.log_changes import find_changed_subjects
from stele.service.registry import Registry

_VIEWS: Final = 8
"""Maximum number of callers whose rows are cached: callers that may not see everything."""
_CHANGES: Final = 64
"""Number of changes of rows that are kept, so that the rows of a caller are not all made again after each."""
_ORDER: Final = attrgetter("namespace", "name")

RowState = Literal["active", "deleted", "empty"]
SORT_KEYS: Final = ("name", "changed", "versions", "id", "format", "policy")
"""Keys by which rows can be sorted; a hyphen in front reverses the order."""


class Facets(NamedTuple):
    """Properties by which rows are counted.

    format  format of the newest version; '' of an empty subject
    policy  common name of the policy in force, or of the nearest stricter one
    state   `active`; `deleted`: all versions are soft-deleted; `empty`: there is none
    """

    format: str
    policy: str
    state: RowState


class SubjectRow(msgspec.Struct, frozen=True, gc=False):
    """A subject in a list.

    namespace  '' is the default one
    name       name of the subject
    facets     see `Facets`
    latest     number of the newest active version, else of the newest one; 0 where there is none
    schema_id  schema id of that version
    versions   number of active versions
    at         when that version was registered, else when the subject was created (ms since 1970 UTC)
    folded     case-folded name for searches
    """

    namespace: str
    name: str
    facets: Facets
    latest: int
    schema_id: int
    versions: int
    at: int
    folded: str

    @property
    def key(self) -> SubjectKey:
        """The subject's full name."""
        return SubjectKey(self.namespace, self.name)

    @property
    def is_readable(self) -> bool:
        """Whether the row says more than that the subject is there."""
        return bool(self.facets.policy)


class RowFilter(NamedTuple):
    """Selects rows; '' selects any.

    words      words that the name must all contain, in any case
    namespace  namespace of the rows; None: all namespaces
    """

    words: str = ""
    namespace: str | None = None
    format: str = ""
    policy: str = ""
    state: str = ""


class RowSelection(NamedTuple):
    """Rows that pass a filter.

    rows     in the requested order
    formats  number of rows of each format, with all other parts of the filter
    policies, states  the same by policy and state
    """

    rows: Sequence[SubjectRow]
    formats: dict[str, int]
    policies: dict[str, int]
    states: dict[str, int]


class _View(NamedTuple):
    """The rows that a caller may see, as they were at a record of the log."""

    seq: int
    rows: dict[SubjectKey, SubjectRow]
    ordered: list[SubjectRow]


class _RowChange(NamedTuple):
    """The subjects whose rows were updated because of the records after `after`, up to `seq`."""

    after: int
    seq: int
    keys: set[SubjectKey]


class SubjectIndex:
    """The rows of a registry.

    Args:
        registry: Registry of the subjects.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._rows: dict[SubjectKey, SubjectRow] = {}
        self._ordered: list[SubjectRow] = []
        self._views: dict[Hashable, _View] = {}
        self._changes: deque[_RowChange] = deque(maxlen=_CHANGES)
        self._state: State | None = None
        self._seq = 0
        self._facets: dict[Facets, Facets] = {}
        self._refreshing = asyncio.Lock()

    async def list_rows(self) -> Sequence[SubjectRow]:
        """Return the rows of all subjects that the caller may see in lists, by namespace and name.

        Rows of subjects that the caller may not read show only that the subject exists.
        """
        await self._refresh()
        key = self._registry.access.view_key
        if key is None:
            return self._ordered
        view = self._views.get(key)
        if view is None or view.seq != self._seq:
            view = await self._make_view(view)
            if len(self._views) >= _VIEWS:
                self._views.pop(next(iter(self._views)))
            self._views[key] = view
        return view.ordered

    async def _make_view(self, before: _View | None) -> _View:
        """Return the rows that the caller may see. Reuses the rows of the view before if little has changed since."""
        access = self._registry.access
        may_list, may_read = access.make_filter(), access.make_filter(Operation.READ)
        seq = self._seq
        changed = self._find_changed_keys(before.seq) if before is not None else None
        rows = {} if before is None or changed is None else before.rows
        keys = list(self._rows) if changed is None else changed
        async for key in self._registry.time_slices.iterate(keys):
            row = self._rows.get(key)
            if row is None or not may_list(key):
                rows.pop(key, None)
            else:
                rows[key] = row if may_read(key) else _hide_row(row)
        return _View(seq, rows, sorted(rows.values(), key=_ORDER))

    def _find_changed_keys(self, seq: int) -> set[SubjectKey] | None:
        """Return the subjects whose rows were updated after a record; None if that is no longer known."""
        if not self._changes or self._changes[0].after > seq:
            return None
        return {key for change in self._changes if change.seq > seq for key in change.keys}

    async def _refresh(self) -> None:
        state = await self._registry.fresh_state()
        if state is self._state and state.seq == self._seq:
            return
        async with self._refreshing:
            state = self._registry.state
            seq = state.seq
            if state is self._state and seq == self._seq:
                return
            is_known = state is self._state
            changed = await find_changed_subjects(self._registry, self._seq, seq) if is_known else None
            if not is_known:
                self._views.clear()
            if changed is None:
                self._changes.clear()
                rows: dict[SubjectKey, SubjectRow] = {}
                subjects = [each for namespace in _listed_namespaces(state) for each in namespace.subjects.values()]
                async for subject in self._registry.time_slices.iterate(subjects):
                    rows[subject.key] = self._make_row(state, subject)
                self._rows = rows
            else:
                for key in changed:
                    self._replace_row(state, key)
                self._changes.append(_RowChange(self._seq, seq, changed))
            self._state, self._seq = state, seq
            self._ordered = sorted(self._rows.values(), key=_ORDER)

    def _replace_row(self, state: State, key: SubjectKey) -> None:
        subject = state.find_subject(key)
        if subject is None:
            self._rows.pop(key, None)
        else:
            self._rows[key] = self._make_row(state, subject)

    def _make_row(self, state: State, subject: Subject) -> SubjectRow:
        active = [version for version in subject.versions if version.state is VersionState.ACTIVE]
        newest = active[-1] if active else subject.versions[-1] if subject.versions else None
        row_state: RowState = "active" if active else "deleted" if newest is not None else "empty"
        kind = newest.kind if newest is not None else None
        facets = Facets(
            (kind.custom_format or kind.format) if kind is not None else "",
            queries.policy_for(state, subject.key).nearest_name,
            row_state,
        )
        return SubjectRow(
            namespace=subject.key.namespace,
            name=subject.key.name,
            facets=self._facets.setdefault(facets, facets),
            latest=newest.version_number if newest is not None else 0,
            schema_id=newest.schema.schema_id if newest is not None else 0,
            versions=len(active),
            at=newest.at if newest is not None else subject.at,
            folded=subject.key.name.casefold(),
        )


def _listed_namespaces(state: State) -> Iterable[Namespace]:
    return (namespace for namespace in state.namespaces.values() if not namespace.hidden)


def _hide_row(row: SubjectRow) -> SubjectRow:
    """Return a row for callers that may see that a subject exists, but may not read it."""
    return SubjectRow(row.namespace, row.name, Facets("", "", row.facets.state), 0, 0, 0, 0, row.folded)


def select_rows(rows: Sequence[SubjectRow], wanted: RowFilter, sort: str = "name") -> RowSelection:
    """Return the rows that pass a filter, sorted, and the counts for other values of the filter.

    Args:
        rows: Rows by namespace and name.
        wanted: The filter.
        sort: One of `SORT_KEYS`, with a hyphen in front for the reverse order.
    """
    selection: Sequence[SubjectRow] = rows
    if wanted.namespace is not None:
        selection = [row for row in selection if row.namespace == wanted.namespace]
    for word in wanted.words.casefold().split():
        selection = [row for row in selection if word in row.folded]
    counts = Counter([row.facets for row in selection])
    facets = Facets(wanted.format, wanted.policy, wanted.state)  # type: ignore[arg-type]  # any text a caller sends
    passing = {each for each in counts if all(not want or want == has for want, has in zip(facets, each, strict=True))}
    if len(passing) != len(counts):
        selection = [row for row in selection if row.facets in passing]
    key, descending = sort.removeprefix("-"), sort.startswith("-")
    if key != "name":
        selection = sorted(selection, key=_SORTERS[key], reverse=descending)
    elif descending:
        selection = selection[::-1]
    return RowSelection(selection, *(_count_facet(counts, facets, place) for place in range(3)))


_SORTERS: Final = {
    "changed": attrgetter("at"),
    "versions": attrgetter("versions"),
    "id": attrgetter("schema_id"),
    "format": attrgetter("facets.format"),
    "policy": attrgetter("facets.policy"),
}


def _count_facet(counts: Counter[Facets], wanted: Facets, place: int) -> dict[str, int]:
    """Return how many rows each value of a facet would leave, with the wanted values of the other two."""
    totals: dict[str, int] = {}
    for facets, count in counts.items():
        others = ((want, has) for i, (want, has) in enumerate(zip(wanted, facets, strict=True)) if i != place)
        if all(not want or want == has for want, has in others):
            totals[facets[place]] = totals.get(facets[place], 0) + count
    return dict(sorted(totals.items(), key=lambda item: (-item[1], item[0])))
