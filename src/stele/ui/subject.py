"""What all pages about one subject share: its head, its versions and the tabs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from stele.apis.http.access import access
from stele.apis.http.requests import parse_whole_number
from stele.core import queries
from stele.core.access import Operation, subject_resource
from stele.core.model import MAX_INT32, Mode, SettingsLevel, Subject, SubjectKey, Version, VersionState
from stele.core.state import State
from stele.errors import SubjectNotFound, VersionNotFound
from stele.ui.links import qualify_name, subject_path
from stele.ui.pages import Control, Page, PageRequest, View

TABS: Final = (
    ("definition", "Definition"),
    ("fields", "Fields"),
    ("versions", "Versions"),
    ("history", "History"),
    ("compare", "Compare"),
    ("references", "References"),
    ("rules", "Rules"),
    ("usage", "Usage"),
    ("clients", "Clients"),
)
"""Last path segment and title of each tab."""
_CLOSED: Final = frozenset({Mode.READONLY, Mode.READONLY_OVERRIDE})
"""Modes in which nothing can be registered or deleted."""
_MOST_CHOICES: Final = 300
"""Maximum number of versions to choose from; the newest ones are offered."""


def make_tab(name: str, view: View, *, in_thread: bool = False, **helpers: Any) -> Page:
    """Return the page of a tab.

    Args:
        name: Last segment of its path, and name of its template.
        view: Returns its content; the struct has a field `head`.
        in_thread: See `Page`.
        helpers: See `Page`.
    """
    return Page(
        f"/ui/subjects/{{name:str}}/{name}",
        view,
        f"{name}.html.j2",
        access(Operation.READ),
        menu="/subjects",
        aliases=("/ui/subjects/{name:str}",) if name == TABS[0][0] else (),
        helpers={"tab": name, "tabs": TABS, **helpers},
        in_thread=in_thread,
    )


class VersionChoice(msgspec.Struct, frozen=True):
    """A version that can be chosen; state is `active` or `deleted`."""

    number: int
    state: str
    is_latest: bool


class SubjectHead(msgspec.Struct, frozen=True):
    """The part above each tab.

    qualified  name as it appears in paths and commands
    path       path of the subject's page, below `/ui`
    version    number of the version that is shown; 0 if there is none
    state      state of the subject: `active`, `deleted` or `empty`
    versions   number of active versions
    choices    versions to choose from, newest first
    older      number of the version before the shown one; None if there is none
    newer      number of the version after the shown one; None if there is none
    policy     common name of the policy in force, or of the nearest stricter one
    mode       mode in force
    alias      other subject that requests for this one act on; '' for none
    controls   actions on the subject
    """

    namespace: str
    name: str
    qualified: str
    path: str
    format: str
    type_name: str
    version: int
    schema_id: int
    version_state: str
    state: str
    versions: int
    choices: Sequence[VersionChoice]
    older: int | None
    newer: int | None
    policy: str
    mode: str
    alias: str
    description: str
    controls: Sequence[Control]


class ShownSubject(NamedTuple):
    """The subject of a page, and the version that it shows; version is None if the subject has none."""

    state: State
    key: SubjectKey
    subject: Subject
    version: Version | None
    head: SubjectHead


async def find_subject(page: PageRequest) -> ShownSubject:
    """Return the subject of a page, and the version that its query names, or else the newest one.

    Raises `SubjectNotFound`, `VersionNotFound`, and `InvalidRequest` if the version is not a number.
    """
    key = page.subject
    state = await page.registry.fresh_state()
    subject = state.find_subject(key)
    if subject is None:
        raise SubjectNotFound(key.name)
    version = _choose_version(state, key, subject, page.get_query("version"))
    return ShownSubject(state, key, subject, version, _make_head(page, state, key, subject, version))


async def find_version(page: PageRequest) -> tuple[ShownSubject, Version]:
    """Return what `find_subject` returns, and the version, for a page that needs one.

    Raises what `find_subject` raises, and `VersionNotFound` if the subject has no version.
    """
    subject_view = await find_subject(page)
    if subject_view.version is None:
        raise VersionNotFound("latest")
    return subject_view, subject_view.version


def _choose_version(state: State, key: SubjectKey, subject: Subject, version_text: str) -> Version | None:
    if version_text and version_text != "latest":
        number = parse_whole_number("version", version_text, 1, MAX_INT32)
        return queries.get_version(state, key, number, queries.ACTIVE_OR_SOFT_DELETED)
    latest = queries.latest_version(subject)
    return latest if latest is not None else subject.versions[-1] if subject.versions else None


def _make_head(
    page: PageRequest, state: State, key: SubjectKey, subject: Subject, version: Version | None
) -> SubjectHead:
    latest = queries.latest_version(subject)
    numbers = [each.version_number for each in subject.versions]
    place = numbers.index(version.version_number) if version is not None else -1
    settings = state.settings_at(SettingsLevel(*key))
    mode = queries.mode_for(state, SettingsLevel(*key))
    return SubjectHead(
        namespace=key.namespace,
        name=key.name,
        qualified=qualify_name(key),
        path=subject_path(key),
        format=(version.kind.custom_format or version.kind.format) if version is not None else subject.format,
        type_name=version.kind.type if version is not None else "",
        version=version.version_number if version is not None else 0,
        schema_id=version.schema.schema_id if version is not None else 0,
        version_state=_name_state(version) if version is not None else "",
        state="active" if latest is not None else "deleted" if numbers else "empty",
        versions=sum(each.state is VersionState.ACTIVE for each in subject.versions),
        choices=[
            VersionChoice(each.version_number, _name_state(each), each is latest)
            for each in reversed(subject.versions[-_MOST_CHOICES:])
        ],
        older=numbers[place - 1] if place > 0 else None,
        newer=numbers[place + 1] if 0 <= place < len(numbers) - 1 else None,
        policy=queries.policy_for(state, key).nearest_name,
        mode=mode.value,
        alias=(settings.alias or "") if settings is not None else "",
        description=subject.description,
        controls=_list_controls(page, key, mode, is_empty=not numbers),
    )


def _name_state(version: Version) -> str:
    return "active" if version.state is VersionState.ACTIVE else "deleted"


def _list_controls(page: PageRequest, key: SubjectKey, mode: Mode, *, is_empty: bool) -> list[Control]:
    """Return the actions on a subject; each links to a page of its own."""
    resource = subject_resource(key)
    wanted = [
        ("New version", "register", Operation.REGISTER),
        ("Set policy", "policy", Operation.CHANGE_POLICY),
        *([] if is_empty else [("Delete", "delete", Operation.DELETE)]),
    ]
    controls = [page.make_control(label, subject_path(key, path), right, resource) for label, path, right in wanted]
    if mode in _CLOSED:
        refusal = f"It is in the mode {mode.value}."
        return [
            control if control.refusal or control.label == "Set policy" else replace(control, refusal=refusal)
            for control in controls
        ]
    return controls
