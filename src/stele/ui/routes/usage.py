"""Versions in stored data: of one subject, and of all places whose records were counted."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from stele.apis.http.access import Place, access
from stele.core.access import Operation
from stele.service.usage import DeletionWarning, LocationUsage
from stele.ui.pages import Page, PageRequest
from stele.ui.subject import SubjectHead, find_subject, make_tab


class UsageCell(msgspec.Struct, frozen=True):
    """Records of one version at one place; records is 0 if none were seen."""

    version: int
    records: int
    share: float
    last_seen: int | None


class UsageRow(msgspec.Struct, frozen=True):
    """The result of a census for a subject at one place; newest is the highest version that was seen."""

    place: str
    counted_at: int
    whole: bool
    cells: Sequence[UsageCell]
    newest: int


class SubjectUsagePage(msgspec.Struct, frozen=True):
    """Places where records of a subject were seen.

    versions  versions that were seen anywhere, ascending
    unseen    active versions without any seen record
    warnings  warnings about deleting the subject
    """

    head: SubjectHead
    versions: Sequence[int]
    rows: Sequence[UsageRow]
    unseen: Sequence[int]
    warnings: Sequence[DeletionWarning]


class UsagePlacesPage(msgspec.Struct, frozen=True):
    """Places whose records were counted, by name; next is the place after which the next page begins."""

    places: Sequence[LocationUsage]
    next: str | None


async def view_usage(page: PageRequest) -> SubjectUsagePage:
    """Show at which places records of a subject were seen, version by version."""
    subject_view = await find_subject(page)
    if subject_view.version is None:
        return SubjectUsagePage(subject_view.head, (), (), (), ())
    usage_page = await page.site.usage.list_places(namespace=subject_view.key.namespace, subject=subject_view.key.name)
    preview = await page.site.usage.preview_deletion(subject_view.key)
    versions = sorted({row.version for place in usage_page.places for row in place.seen})
    rows = [_describe_place(place, versions) for place in usage_page.places]
    unseen = [
        choice.number
        for choice in subject_view.head.choices
        if choice.number not in versions and choice.state == "active"
    ]
    return SubjectUsagePage(subject_view.head, versions, rows, sorted(unseen), preview.warnings)


def _describe_place(place: LocationUsage, versions: Sequence[int]) -> UsageRow:
    usages = {row.version: row for row in place.seen}
    total = sum(row.records for row in place.seen) or 1
    cells = [
        UsageCell(
            number,
            usages[number].records if number in usages else 0,
            usages[number].records / total if number in usages else 0.0,
            usages[number].last_seen if number in usages else None,
        )
        for number in versions
    ]
    return UsageRow(place.place, place.counted_at, place.whole, cells, max(usages, default=0))


async def view_usage_places(page: PageRequest) -> UsagePlacesPage:
    """Show the places whose records were counted."""
    usage_page = await page.site.usage.list_places(page.get_query("after"), 100)
    return UsagePlacesPage(usage_page.places, usage_page.next)


def list_pages() -> list[Page]:
    """Return the pages of this module."""
    return [
        make_tab("usage", view_usage),
        Page("/ui/usage", view_usage_places, "usage_places.html.j2", access(Operation.READ, Place.LIST), menu="/usage"),
    ]
