"""The list of subjects: search by name, id, field and text, facets, order and pages, all in the address."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from stele.apis.http.access import Place, access
from stele.core.access import Operation
from stele.core.model import MAX_INT32
from stele.core.traversal import list_versions_of_entry
from stele.errors import InvalidRequest
from stele.service.subject_index import SORT_KEYS, RowFilter, SubjectRow, select_rows
from stele.ui.links import subject_path
from stele.ui.pages import Control, Page, PageRequest
from stele.ui.paging import Slice, cut_page

_MOST_ID_HITS: Final = 20
_LONGEST_QUERY: Final = 1000


class ListedSubject(msgspec.Struct, frozen=True):
    """A subject in the list.

    state     `active`; `deleted`: all its versions are soft-deleted; `empty`: it never had one
    latest    number of its newest active version, else of its newest one; 0 for none
    versions  how many are active
    at        when it got the newest one (ms since 1970 UTC)
    path      of its page, below `/ui`
    """

    namespace: str
    name: str
    format: str
    policy: str
    state: str
    latest: int
    schema_id: int
    versions: int
    at: int
    path: str


class IdHit(msgspec.Struct, frozen=True):
    """A version that has the schema id that was searched for."""

    namespace: str
    subject: str
    version: int
    state: str
    path: str


class FacetValue(msgspec.Struct, frozen=True):
    """A value of a facet, and how many rows it would leave."""

    value: str
    count: int


class SubjectsPage(msgspec.Struct, frozen=True):
    """A page of the list.

    query       what was searched for
    by          where: in `name` (and id), `field` or `text`
    namespace   the one that is shown; None is all
    namespaces  those that can be chosen
    id_hits     versions that have the schema id, where the query is a number
    """

    query: str
    by: str
    sort: str
    namespace: str | None
    namespaces: Sequence[str]
    format: str
    policy: str
    state: str
    formats: Sequence[FacetValue]
    policies: Sequence[FacetValue]
    states: Sequence[FacetValue]
    rows: Sequence[ListedSubject]
    slice: Slice
    id_hits: Sequence[IdHit]
    register: Control


async def view_subjects(page: PageRequest) -> SubjectsPage:
    """List subjects: those whose name, id, field or text is searched for, filtered, sorted and cut into pages."""
    query = page.get_query("q").strip()
    if len(query) > _LONGEST_QUERY:
        raise InvalidRequest(f"q has {len(query)} characters: search with at most {_LONGEST_QUERY}")
    sort = page.get_query("sort", "name")
    if sort.removeprefix("-") not in SORT_KEYS:
        raise InvalidRequest(f"sort is one of {', '.join(SORT_KEYS)}, with a hyphen in front for the other order")
    chosen = page.request.query_params.get("ns")
    namespace = None if chosen in (None, "*") else "" if chosen == "." else chosen
    rows = await page.site.subjects.list_rows()
    wanted = RowFilter(query, namespace, page.get_query("format"), page.get_query("policy"), page.get_query("state"))
    selection = select_rows(rows, wanted, sort)
    part, cut = cut_page(page, selection.rows)
    return SubjectsPage(
        query=query,
        by="name",
        sort=sort,
        namespace=namespace,
        namespaces=_list_namespaces(rows),
        format=wanted.format,
        policy=wanted.policy,
        state=wanted.state,
        formats=_list_values(selection.formats),
        policies=_list_values(selection.policies),
        states=_list_values(selection.states),
        rows=[_describe_row(row) for row in part],
        slice=cut,
        id_hits=await _find_id(page, query),
        register=page.make_control("Register a schema", "/register", Operation.REGISTER),
    )


def _list_values(counts: dict[str, int]) -> list[FacetValue]:
    return [FacetValue(value, count) for value, count in counts.items() if value]


def _list_namespaces(rows: Sequence[SubjectRow]) -> list[str]:
    """Return the namespaces of some rows, which stand together, in order."""
    return sorted({row.namespace for row in rows})


def _describe_row(row: SubjectRow) -> ListedSubject:
    return ListedSubject(
        namespace=row.namespace,
        name=row.name,
        format=row.facets.format,
        policy=row.facets.policy,
        state=row.facets.state,
        latest=row.latest,
        schema_id=row.schema_id,
        versions=row.versions,
        at=row.at,
        path=subject_path(row.key),
    )


async def _find_id(page: PageRequest, query: str) -> list[IdHit]:
    """Return the versions whose schema id is searched for, of subjects that the caller may read."""
    if not (query.isascii() and query.isdigit() and len(query) <= len(str(MAX_INT32))):
        return []
    state = page.registry.state
    hits = []
    for namespace in state.namespaces.values():
        entry = namespace.schema_entries.get(int(query))
        for version in list_versions_of_entry(entry) if entry is not None else ():
            key = version.subject.key
            if not version.subject.closed and page.registry.access.can_read(key) and len(hits) < _MOST_ID_HITS:
                path = f"{subject_path(key)}?version={version.version_number}"
                hits.append(IdHit(key.namespace, key.name, version.version_number, version.state.name.lower(), path))
    return hits


def list_pages() -> list[Page]:
    """Return the pages of this module."""
    return [
        Page("/ui/subjects", view_subjects, "subjects.html.j2", access(Operation.LIST, Place.LIST), menu="/subjects")
    ]
