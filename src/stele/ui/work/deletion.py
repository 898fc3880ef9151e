"""Deletion of a subject or a version, first softly, then for good, and the obstacles to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from stele.apis.http.access import access
from stele.apis.http.requests import parse_whole_number
from stele.core import queries
from stele.core.access import Operation, subject_resource
from stele.core.commands import DeleteMode, DeleteSubject, DeleteVersion
from stele.core.model import MAX_INT32, Binding, SubjectKey, Version, VersionState
from stele.core.state import State
from stele.errors import AlreadySoftDeleted, InUse, NotSoftDeleted, PreconditionFailed, SubjectNotFound
from stele.service.usage import DeletionWarning
from stele.ui.forms import Destination, FieldProblem, Form, FormPage
from stele.ui.links import add_query, qualify_name, subject_path
from stele.ui.pages import Page, PageRequest
from stele.ui.work.register import VIA

_MOST_REFERRERS: Final = 200


class Referrer(msgspec.Struct, frozen=True):
    """A version that refers to one that would be deleted."""

    namespace: str
    subject: str
    version: int
    to_version: int


class DeletionPage(msgspec.Struct, frozen=True):
    """What a deletion would delete, and what prevents it.

    version    number of the version to delete; 0: the whole subject
    versions   active versions that would be soft-deleted; if there are none, versions that would be deleted for good
    for_good   whether the next step deletes for good
    referrers  versions that refer to those; they prevent the deletion
    hidden     number of more referrers: the caller may not read them, or the list is full
    bindings   topics, tables and streams that are bound to the subject; they prevent the deletion, too
    warnings   where records of the versions were seen; they do not prevent the deletion
    typed      text that was typed to confirm
    refusal    why the caller may not delete; '' if the caller may
    """

    namespace: str
    subject: str
    qualified: str
    version: int
    versions: Sequence[int]
    for_good: bool
    referrers: Sequence[Referrer]
    hidden: int
    bindings: Sequence[str]
    warnings: Sequence[DeletionWarning]
    refusal: str
    typed: str = ""
    problems: Sequence[FieldProblem] = ()

    @property
    def is_possible(self) -> bool:
        """Whether no reference and no binding prevents the deletion."""
        return not (self.referrers or self.hidden or self.bindings)


async def view_deletion(page: PageRequest) -> DeletionPage:
    """Show what a deletion would delete, and what prevents it."""
    version_text = page.get_query("version")
    return await _show(page, parse_whole_number("version", version_text, 1, MAX_INT32) if version_text else None)


async def submit_deletion(page: PageRequest, form: Form) -> msgspec.Struct:
    """Delete a subject or a version: softly if it is active, for good if it is soft-deleted."""
    version_text = form.get("version")
    number = parse_whole_number("version", version_text, 0, MAX_INT32) if version_text else 0
    content = await _show(page, number or None)
    key = page.subject
    if content.for_good:
        page.registry.access.require(Operation.PURGE, subject_resource(key))
        typed = form.get("typed").strip()
        if typed != content.qualified:
            problem = FieldProblem("typed", f"Type the name of the subject to confirm: {content.qualified}")
            return msgspec.structs.replace(content, typed=typed, problems=[problem])
    if form.get("for_good") not in {"", "true" if content.for_good else "false"}:
        return _refuse(content, "Somebody else deleted or recovered something meanwhile. Look at what would go now.")
    if content.bindings:
        return _refuse(content, "A topic, table or stream is bound to it: end that first.")
    bindings = queries.bindings_of(page.registry.state, [key])
    mode = DeleteMode.HARD if content.for_good else DeleteMode.SOFT
    command = DeleteVersion(key, number, mode, bindings) if number else DeleteSubject(key, mode, bindings)
    try:
        await page.registry.execute(command, via=VIA)
    except InUse as error:
        return _refuse(content, f"Other schemas refer to version {error.version}: they are listed below.")
    except (AlreadySoftDeleted, NotSoftDeleted, PreconditionFailed):
        return _refuse(content, "Somebody else deleted or recovered something meanwhile. Look at what would go now.")
    done = "purged" if content.for_good else "deleted"
    is_left = page.registry.state.find_subject(key) is not None and bool(_list_versions(page.registry.state, key))
    return Destination(add_query(subject_path(key, "versions") if is_left else "/subjects", {"done": done}))


def _refuse(content: DeletionPage, message: str) -> DeletionPage:
    return msgspec.structs.replace(content, problems=[FieldProblem("", message)])


def _list_versions(state: State, key: SubjectKey) -> list[Version]:
    return queries.list_versions(state.find_subject(key), queries.ACTIVE_OR_SOFT_DELETED)


async def _show(page: PageRequest, number: int | None) -> DeletionPage:
    key = page.subject
    state = await page.registry.fresh_state()
    if not _list_versions(state, key):
        raise SubjectNotFound(key.name)
    preview = await page.site.usage.preview_deletion(key, number)
    versions = [queries.get_version(state, key, each, queries.ACTIVE_OR_SOFT_DELETED) for each in preview.versions]
    for_good = all(version.state is VersionState.SOFT_DELETED for version in versions)
    referrers, hidden = _list_referrers(page, state, versions)
    right = Operation.PURGE if for_good else Operation.DELETE
    return DeletionPage(
        namespace=key.namespace,
        subject=key.name,
        qualified=qualify_name(key),
        version=number or 0,
        versions=[version.version_number for version in versions],
        for_good=for_good,
        referrers=referrers,
        hidden=hidden,
        bindings=list_bindings(state, key, versions),
        warnings=preview.warnings,
        refusal=page.find_refusal(right, subject_resource(key)),
    )


def _list_referrers(page: PageRequest, state: State, versions: Sequence[Version]) -> tuple[list[Referrer], int]:
    """Return other versions that refer to some of these, and the number of referrers that are not listed."""
    referrers: list[Referrer] = []
    hidden = 0
    uids = {version.uid for version in versions}
    for version in versions:
        for user in queries.list_referrers(state, version.subject.key, version.version_number):
            if user.uid in uids:
                continue
            if len(referrers) < _MOST_REFERRERS and page.registry.access.can_read(user.subject.key):
                referrers.append(Referrer(*user.subject.key, user.version_number, version.version_number))
            else:
                hidden += 1
    return referrers, hidden


def list_bindings(state: State, key: SubjectKey, versions: Sequence[Version]) -> list[str]:
    """Return the bound resources that need an active version of a subject, if the last ones would be deleted."""
    active = queries.list_versions(state.find_subject(key))
    if not active or {version.uid for version in active} - {version.uid for version in versions}:
        return []
    bindings: list[Binding] = [row for row in queries.bindings_of(state, [key]) if row.resource_id]
    return sorted(f"{row.resource_type} {row.resource} ({row.role})" for row in bindings)


def list_form_pages() -> list[FormPage]:
    """Return the pages of this module."""
    page = Page(
        "/ui/subjects/{name:str}/delete", view_deletion, "deletion.html.j2", access(Operation.READ), menu="/subjects"
    )
    return [FormPage(page, submit_deletion, access(Operation.DELETE))]
