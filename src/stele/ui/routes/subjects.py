"""The list of subjects: search by name, id, field and text, facets, order and pages, all in the address."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from stele.apis.http.access import Place, access
from stele.apis.http.requests import parse_whole_number
from stele.core.access import Operation
from stele.core.model import MAX_INT32
from stele.core.traversal import list_versions_of_entry
from stele.errors import InvalidRequest
from stele.service.subject_index import SORT_KEYS, RowFilter, SubjectRow, select_rows
from stele.service.text_search import search_texts
from stele.ui.links import add_query, qualify_name, subject_path
from stele.ui.pages import Control, Page, PageRequest
from stele.ui.paging import Slice, cut_page

_MOST_ID_HITS: Final = 20
_LONGEST_QUERY: Final = 1000
_PLACES: Final = ("name", "field", "text")
_FIELDS: Final = {"name": 5, "field": 200}
"""Maximum number of fields that are shown, by the kind of search."""
_MOST_TEXTS: Final = 10_000_000


class ListedSubject(msgspec.Struct, frozen=True):
    """A subject in the list.

    state     `active`; `deleted`: all its versions are soft-deleted; `empty`: it never had one
    latest    number of its newest active version, else of its newest one; 0 for none
    versions  number of active versions
    at        time of its newest version (ms since 1970 UTC)
    path      path of its page, below `/ui`
    qualified its name, with the namespace
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
    qualified: str


class IdHit(msgspec.Struct, frozen=True):
    """A version that has the schema id that was searched for."""

    namespace: str
    subject: str
    version: int
    state: str
    path: str


class FoundField(msgspec.Struct, frozen=True):
    """A field whose path contains the searched text.

    first, last  oldest and newest version that has it, of those that were read
    is_current   whether the newest version of the subject has it
    path         path of the page of the subject's fields, below `/ui`
    """

    namespace: str
    subject: str
    field: str
    type: str
    first: int
    last: int
    is_current: bool
    path: str


class FieldResults(msgspec.Struct, frozen=True):
    """Result of a search for fields.

    is_cut   whether there are more matches
    done     number of subjects whose fields are known
    total    number of subjects; the result is complete if it equals `done`
    is_full  whether there are more fields than the index keeps
    """

    hits: Sequence[FoundField]
    is_cut: bool
    done: int
    total: int
    is_full: bool


class FoundText(msgspec.Struct, frozen=True):
    """A version whose text contains the searched text."""

    namespace: str
    subject: str
    version: int
    format: str
    path: str


class TextResults(msgspec.Struct, frozen=True):
    """Result of a search in texts.

    done   number of texts that were searched, from the first one on
    total  number of texts
    next   position at which to continue; None: all were searched
    """

    hits: Sequence[FoundText]
    done: int
    total: int
    next: int | None


class FacetValue(msgspec.Struct, frozen=True):
    """A value of a facet, and the number of rows with it."""

    value: str
    count: int


class SubjectsPage(msgspec.Struct, frozen=True):
    """A page of the list.

    query       text that is searched for
    by          where it is searched: in `name` (and id, and some fields), `field` or `text`
    namespace   namespace that is shown; None is all
    namespaces  namespaces to choose from
    rows        subjects by name; none in a search by field or text
    id_hits     versions with the schema id, if the query is a number
    fields      None without a search, or in a search by text
    texts       None except in a search by text
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
    fields: FieldResults | None
    texts: TextResults | None
    register: Control


async def view_subjects(page: PageRequest) -> SubjectsPage:
    """List subjects: found by name, id, field or text, filtered, sorted and split into pages."""
    query = page.get_query("q").strip()
    if len(query) > _LONGEST_QUERY:
        raise InvalidRequest(f"q has {len(query)} characters: search with at most {_LONGEST_QUERY}")
    sort = page.get_query("sort", "name")
    if sort.removeprefix("-") not in SORT_KEYS:
        raise InvalidRequest(f"sort must be one of {', '.join(SORT_KEYS)}, with a hyphen in front for the other order")
    chosen = page.request.query_params.get("ns")
    namespace = None if chosen in (None, "*") else "" if chosen == "." else chosen
    by = page.get_query("by", "name")
    if by not in _PLACES:
        raise InvalidRequest(f"by must be one of {', '.join(_PLACES)}")
    rows = await page.site.subjects.list_rows()
    await page.site.fields.follow_log()
    wanted = RowFilter(
        query if by == "name" else "",
        namespace,
        page.get_query("format"),
        page.get_query("policy"),
        page.get_query("state"),
    )
    selection = select_rows(rows, wanted, sort)
    part, cut = cut_page(page, selection.rows if by == "name" or not query else ())
    return SubjectsPage(
        query=query,
        by=by,
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
        id_hits=await _find_id(page, query) if by == "name" else [],
        fields=await _find_fields(page, query, rows, _FIELDS[by]) if query and by != "text" else None,
        texts=await _find_texts(page, query) if query and by == "text" else None,
        register=page.make_control("Register a schema", "/register", Operation.REGISTER),
    )


def _list_values(counts: dict[str, int]) -> list[FacetValue]:
    return [FacetValue(value, count) for value, count in counts.items() if value]


def _list_namespaces(rows: Sequence[SubjectRow]) -> list[str]:
    """Return the namespaces of some rows, each once, in order."""
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
        qualified=qualify_name(row.key),
    )


async def _find_id(page: PageRequest, query: str) -> list[IdHit]:
    """Return the versions with the schema id in the query, of subjects that the caller may read."""
    if not (query.isascii() and query.isdigit() and len(query) <= len(str(MAX_INT32))):
        return []
    state = page.registry.state
    hits: list[IdHit] = []
    for namespace in state.namespaces.values():
        entry = namespace.schema_entries.get(int(query))
        for version in list_versions_of_entry(entry) if entry is not None else ():
            key = version.subject.key
            if not version.subject.is_closed and page.registry.access.can_read(key) and len(hits) < _MOST_ID_HITS:
                path = f"{subject_path(key)}?version={version.version_number}"
                hits.append(IdHit(key.namespace, key.name, version.version_number, version.state.name.lower(), path))
    return hits


async def _find_fields(page: PageRequest, query: str, rows: Sequence[SubjectRow], most: int) -> FieldResults:
    """Return fields whose path contains the query, of subjects that the caller may read."""
    if page.registry.access.is_open:
        matches = await page.site.fields.find_fields(query, most, lambda key: True)
    else:
        readable = {row.key for row in rows if row.is_readable}
        matches = await page.site.fields.find_fields(query, most, readable.__contains__)
    hits = [
        FoundField(
            hit.key.namespace,
            hit.key.name,
            hit.path,
            hit.type,
            hit.first,
            hit.last,
            hit.is_current,
            add_query(
                subject_path(hit.key, "fields"),
                {"version": None if hit.is_current else hit.last, "field": hit.path},
            ),
        )
        for hit in matches.hits
    ]
    return FieldResults(hits, matches.is_cut, matches.done, matches.total, matches.is_full)


async def _find_texts(page: PageRequest, query: str) -> TextResults:
    """Return texts that contain the query. One request searches only a part of all texts."""
    start = parse_whole_number("after", page.get_query("after", "0"), 0, _MOST_TEXTS)
    matches = await search_texts(page.registry, query, start)
    hits = [
        FoundText(
            version.subject.key.namespace,
            version.subject.key.name,
            version.version_number,
            version.kind.custom_format or version.kind.format,
            f"{subject_path(version.subject.key)}?version={version.version_number}",
        )
        for version in matches.versions
    ]
    return TextResults(
        hits, matches.position, matches.total, matches.position if matches.position < matches.total else None
    )


def list_pages() -> list[Page]:
    """Return the pages of this module."""
    return [
        Page("/ui/subjects", view_subjects, "subjects.html.j2", access(Operation.LIST, Place.LIST), menu="/subjects")
    ]
