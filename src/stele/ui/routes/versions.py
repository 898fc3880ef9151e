"""The versions of a subject: numbers, ids, times, authors, states."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import msgspec

from stele.core.access import Operation, subject_resource
from stele.core.model import Version, VersionState
from stele.ui.links import subject_path
from stele.ui.pages import Control, Page, PageRequest
from stele.ui.paging import Slice, cut_page
from stele.ui.subject import SubjectHead, find_subject, make_tab


class VersionRow(msgspec.Struct, frozen=True):
    """A version.

    number      number in the subject
    content_id  SHA-256 of the text, hexadecimal
    state       `active` or `deleted`
    uid         128-bit name, hexadecimal
    policy      policy in force at the registration; '' if unknown
    before      number of the version before; None for the first one
    """

    number: int
    kind_version: int
    schema_id: int
    content_id: str
    uid: str
    state: str
    at: int
    created_by: str
    description: str
    policy: str
    references: int
    before: int | None


class VersionsPage(msgspec.Struct, frozen=True):
    """Versions, newest first; `recover` links to the recovery of soft-deleted ones."""

    head: SubjectHead
    rows: Sequence[VersionRow]
    slice: Slice
    recover: Control | None


async def view_versions(page: PageRequest) -> VersionsPage:
    """List the versions of a subject, newest first."""
    subject_view = await find_subject(page)
    versions = subject_view.subject.versions[::-1]
    part, cut = cut_page(page, versions)
    before = {each.version_number: older.version_number for each, older in pairwise(versions)}
    has_deleted = any(each.state is VersionState.SOFT_DELETED for each in versions)
    resource = subject_resource(subject_view.key)
    recover = page.make_control("Recover", subject_path(subject_view.key, "recover"), Operation.REGISTER, resource)
    rows = [_describe_version(version, before.get(version.version_number)) for version in part]
    return VersionsPage(subject_view.head, rows, cut, recover if has_deleted else None)


def _describe_version(version: Version, before: int | None) -> VersionRow:
    attributes = version.attributes
    return VersionRow(
        number=version.version_number,
        kind_version=version.kind_version,
        schema_id=version.schema.schema_id,
        content_id=version.content.sha.hex(),
        uid=f"{version.uid:032x}",
        state="active" if version.state is VersionState.ACTIVE else "deleted",
        at=version.at,
        created_by=attributes.created_by if attributes is not None else "",
        description=attributes.description if attributes is not None else "",
        policy=version.policy.nearest_name if version.policy is not None else "",
        references=len(version.schema.attachments.references),
        before=before,
    )


def list_pages() -> list[Page]:
    """Return the pages of this module."""
    return [make_tab("versions", view_versions)]
