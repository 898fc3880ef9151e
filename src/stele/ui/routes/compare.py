"""Comparison of two versions of a subject: the effect of the changes, then the texts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import msgspec

from stele.apis.http.requests import parse_whole_number
from stele.core import queries
from stele.core.model import MAX_INT32, SettingsLevel, Version
from stele.core.state import State
from stele.errors import SteleError
from stele.service.changes import DeclarationChange
from stele.service.check import Candidate, NamedText
from stele.service.diff import DiffRequest, diff_schemas
from stele.service.policies import get_policy
from stele.service.ruleset_adoption import adopted_versions
from stele.service.text_diff import unified_diff
from stele.ui.highlight import highlight_diff
from stele.ui.pages import Page, PageRequest
from stele.ui.subject import ShownSubject, SubjectHead, find_subject, make_tab

_MOST_CHANGES = 500


class ComparePage(msgspec.Struct, frozen=True):
    """The changes from one version to another.

    old, new  numbers of the versions; 0 if the subject has fewer than two
    backward  whether the new one reads data of the old one; None: not compared
    forward   whether the old one reads data of the new one
    ruleset   ruleset that decided; '' for none
    changes   changes in the order of the new version
    omitted   number of changes that are not listed
    text      unified diff of the normalised texts, or of the authors' texts if these cannot be printed
    problem   why only the texts are compared; '' if the changes are, too
    """

    head: SubjectHead
    old: int
    new: int
    backward: bool | None = None
    forward: bool | None = None
    ruleset: str = ""
    changes: Sequence[DeclarationChange] = ()
    omitted: int = 0
    text: str = ""
    problem: str = ""


async def view_compare(page: PageRequest) -> ComparePage:
    """Compare two versions of a subject: the changes, their effect on readers, and the diff of the texts."""
    subject_view = await find_subject(page)
    pair = _choose_versions(page, subject_view)
    if pair is None:
        return ComparePage(subject_view.head, 0, 0)
    old, new = pair
    numbers = old.version_number, new.version_number
    if old.kind.format != new.kind.format:
        text = await _compare_texts(page, old, new)
        problem = f"Version {numbers[0]} is {old.kind.format}, version {numbers[1]} is {new.kind.format}."
        return ComparePage(subject_view.head, *numbers, text=text, problem=problem)
    try:
        policy = await get_policy(page.registry, SettingsLevel(*subject_view.key))
        old_text, new_text = (_make_candidate(subject_view.state, each) for each in (old, new))
        request = DiffRequest(new.kind.format, old_text, new_text, policy.rulesets.get(new.kind.format))
        compare = partial(
            diff_schemas,
            request,
            page.registry.limits,
            undecided=page.registry.compatibility.undecided,
            adopted=await adopted_versions(page.registry),
        )
        answer = await page.registry.run_stateless(compare)
    except SteleError as error:
        text = await _compare_texts(page, old, new)
        return ComparePage(subject_view.head, *numbers, text=text, problem=f"Only the texts are compared: {error}")
    return ComparePage(
        head=subject_view.head,
        old=numbers[0],
        new=numbers[1],
        backward=answer.backward,
        forward=answer.forward,
        ruleset=answer.ruleset,
        changes=answer.changes[:_MOST_CHANGES],
        omitted=max(0, len(answer.changes) - _MOST_CHANGES),
        text=answer.text,
    )


def _choose_versions(page: PageRequest, subject_view: ShownSubject) -> tuple[Version, Version] | None:
    """Return the versions that the query names; by default, the shown version and the one before it."""
    versions = subject_view.subject.versions
    if len(versions) < 2 and not (page.get_query("old") and page.get_query("new")):
        return None
    latest = subject_view.version or versions[-1]
    new = _get_version(page, subject_view, "new") or latest
    older = [each for each in versions if each.version_number < new.version_number]
    active = [each for each in older if each.state.name == "ACTIVE"]
    old = _get_version(page, subject_view, "old") or (active or older or versions)[-1]
    return old, new


def _get_version(page: PageRequest, subject_view: ShownSubject, name: str) -> Version | None:
    version_text = page.get_query(name)
    if not version_text:
        return None
    number = parse_whole_number(name, version_text, 1, MAX_INT32)
    return queries.get_version(subject_view.state, subject_view.key, number, queries.ACTIVE_OR_SOFT_DELETED)


def _make_candidate(state: State, version: Version) -> Candidate:
    """Return a version with all texts it refers to. Raises `UnresolvedReference`."""
    references = queries.resolve_references(state, version.schema.attachments.references)
    return Candidate(
        _decode_text(state, version),
        tuple(
            NamedText(name, state.get_text(state.contents[sha]).decode("utf-8", "replace")) for name, sha in references
        ),
    )


def _decode_text(state: State, version: Version) -> str:
    return state.get_text(version.content).decode("utf-8", "replace")


async def _compare_texts(page: PageRequest, old: Version, new: Version) -> str:
    texts = (page.registry.state.get_text(each.content) for each in (old, new))
    return await page.registry.run_stateless(unified_diff, *texts)


def list_pages() -> list[Page]:
    """Return the pages of this module."""
    return [make_tab("compare", view_compare, in_thread=True, highlight_diff=highlight_diff)]
