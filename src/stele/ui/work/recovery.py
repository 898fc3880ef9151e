"""Recovery of soft-deleted versions: each is registered again, with its text and all that belongs to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from stele.apis.http.access import access
from stele.apis.http.requests import parse_whole_number
from stele.core import queries
from stele.core.access import Operation, subject_resource
from stele.core.commands import Registration
from stele.core.findings import Finding
from stele.core.model import MAX_INT32, VersionState
from stele.errors import Incompatible, SubjectNotFound, UnresolvedReference
from stele.service.proposals import make_registration
from stele.ui.forms import Destination, FieldProblem, Form, FormPage
from stele.ui.links import add_query, qualify_name, subject_path
from stele.ui.pages import Page, PageRequest
from stele.ui.work.register import VIA

_MOST_ROWS: Final = 100


class DeletedVersion(msgspec.Struct, frozen=True):
    """A soft-deleted version."""

    number: int
    schema_id: int
    at: int


class RecoveryPage(msgspec.Struct, frozen=True):
    """Soft-deleted versions, newest first.

    number   number that a recovered version gets
    refusal  why the caller may not recover versions; '' if the caller may
    purge    why the caller may not delete versions for good; '' if the caller may
    findings why the policy refused the version that was to be recovered
    """

    namespace: str
    subject: str
    qualified: str
    number: int
    rows: Sequence[DeletedVersion]
    omitted: int
    refusal: str
    purge: str
    findings: Sequence[Finding] = ()
    problems: Sequence[FieldProblem] = ()


async def view_recovery(page: PageRequest) -> RecoveryPage:
    """List the soft-deleted versions of a subject."""
    key = page.subject
    state = await page.registry.fresh_state()
    subject = state.find_subject(key)
    if subject is None:
        raise SubjectNotFound(key.name)
    deleted = [version for version in reversed(subject.versions) if version.state is VersionState.SOFT_DELETED]
    return RecoveryPage(
        namespace=key.namespace,
        subject=key.name,
        qualified=qualify_name(key),
        number=queries.next_version_number(state, key),
        rows=[
            DeletedVersion(version.version_number, version.schema.schema_id, version.at)
            for version in deleted[:_MOST_ROWS]
        ],
        omitted=max(0, len(deleted) - _MOST_ROWS),
        refusal=page.find_refusal(Operation.REGISTER, subject_resource(key)),
        purge=page.find_refusal(Operation.PURGE, subject_resource(key)),
    )


async def submit_recovery(page: PageRequest, form: Form) -> msgspec.Struct:
    """Register a soft-deleted version again."""
    key = page.subject
    content = await view_recovery(page)
    number = parse_whole_number("version", form.get("version"), 1, MAX_INT32)
    state = page.registry.state
    version = queries.get_version(state, key, number, queries.ACTIVE_OR_SOFT_DELETED)
    if version.state is VersionState.ACTIVE:
        return Destination(add_query(subject_path(key), {"version": number, "done": "same"}))
    try:
        registration = await page.registry.execute(make_registration(state, version), via=VIA)
    except Incompatible as error:
        problem = FieldProblem("", f"Version {number} cannot come back: the policy in force refuses it.")
        return msgspec.structs.replace(content, findings=error.findings, problems=[problem])
    except UnresolvedReference as error:
        problem = FieldProblem("", f"Version {number} cannot come back yet: {error.why}. Recover that first.")
        return msgspec.structs.replace(content, problems=[problem])
    assert isinstance(registration, Registration)
    return Destination(add_query(subject_path(key), {"version": registration.version_number, "done": "recovered"}))


def list_form_pages() -> list[FormPage]:
    """Return the pages of this module."""
    page = Page(
        "/ui/subjects/{name:str}/recover", view_recovery, "recovery.html.j2", access(Operation.READ), menu="/subjects"
    )
    return [FormPage(page, submit_recovery, access(Operation.REGISTER))]
