"""The fields of a schema: path, type, default, doc, and since which version each is there."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import msgspec

from stele.core.model import Version
from stele.core.ports import Field
from stele.errors import SteleError
from stele.protocol.history import FieldLifeline, FieldSpan
from stele.service.lifelines import get_lifelines
from stele.ui.pages import Page, PageRequest
from stele.ui.subject import SubjectHead, find_subject, make_tab

_MOST_FIELDS = 2000


class FieldRow(msgspec.Struct, frozen=True):
    """A field of the version that is shown.

    since         number of the version from which on the field exists without a gap; None: not known
    changed       number of the last version up to the shown one that changed its type, default or doc; None: never
    renamed_from  path that it had before its first version; '' for none
    optional      whether data may lack it or have null for it; None if unknown
    """

    path: str
    type: str
    default: str | None
    doc: str
    since: int | None
    changed: int | None
    renamed_from: str
    optional: bool | None


class GoneField(msgspec.Struct, frozen=True):
    """A field that earlier versions had and the shown one has not."""

    path: str
    type: str
    first: int
    last: int


class FieldsPage(msgspec.Struct, frozen=True):
    """The fields of a version.

    query     text that the paths must contain
    rows      fields whose path, type or doc contains it
    total     number of fields of the version
    gone      fields of earlier versions only, whose path contains it
    problem   why there are no fields; '' if there is no problem
    complete  whether all earlier versions were read, so that `since` is certain
    """

    head: SubjectHead
    query: str
    rows: Sequence[FieldRow]
    total: int
    gone: Sequence[GoneField]
    problem: str
    complete: bool


async def view_fields(page: PageRequest) -> FieldsPage:
    """Show the fields of a version, and the version since which each one exists."""
    subject_view = await find_subject(page)
    query = page.get_query("field").strip()
    if subject_view.version is None:
        return FieldsPage(subject_view.head, query, (), 0, (), "There is no version yet.", complete=True)
    try:
        fields = await _list_fields(page, subject_view.version)
    except SteleError as error:
        return FieldsPage(subject_view.head, query, (), 0, (), f"The fields cannot be read: {error}", complete=True)
    lifelines = await get_lifelines(page.registry, subject_view.key)
    lines = {line.path: line for line in lifelines.fields}
    number = subject_view.version.version_number
    unique = {field.path: field for field in fields}
    rows = [_describe_field(field, lines.get(field.path), number, lifelines.versions) for field in unique.values()]
    folded = query.casefold()
    matches = [row for row in rows if folded in f"{row.path}\n{row.type}\n{row.doc}".casefold()]
    removed_fields = [
        GoneField(line.path, span.type, span.first, span.last)
        for line in lifelines.fields
        if line.path not in unique and (span := line.spans[-1]).last < number and folded in line.path.casefold()
    ]
    complete = lifelines.complete and not lifelines.earlier
    return FieldsPage(subject_view.head, query, matches[:_MOST_FIELDS], len(rows), removed_fields, "", complete)


async def _list_fields(page: PageRequest, version: Version) -> list[Field]:
    """Return the fields of a version. Raises `SteleError` where its text cannot be read."""
    fmt, parsed = await page.registry.parser.parse_registered(
        page.registry.state, version.kind.format, version.content.sha, version.schema.attachments.references
    )
    fields: list[Field] = await page.registry.run_stateless(fmt.fields, parsed)
    return fields


def _describe_field(field: Field, line: FieldLifeline | None, number: int, versions: Sequence[int]) -> FieldRow:
    spans = [span for span in line.spans if span.first <= number] if line is not None else []
    since = changed = None
    if spans:
        since = _find_begin(spans, versions)
        changed = spans[-1].first if spans[-1].first != since else None
    return FieldRow(
        path=field.path,
        type=field.type,
        default=field.default,
        doc=field.doc,
        since=since,
        changed=changed,
        renamed_from=(line.renamed_from or "") if line is not None else "",
        optional=spans[-1].optional if spans else None,
    )


def _find_begin(spans: Sequence[FieldSpan], versions: Sequence[int]) -> int:
    """Return the first version of the last run of spans without a gap. `versions` lists the versions that were read."""
    following = dict(pairwise(versions))
    first = spans[-1].first
    for span in reversed(spans[:-1]):
        if following.get(span.last) != first:
            break
        first = span.first
    return first


def list_pages() -> list[Page]:
    """Return the pages of this module."""
    return [make_tab("fields", view_fields, in_thread=True)]
