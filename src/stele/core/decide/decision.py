"""Shared parts of the rule modules: the shape of a decision, and the checks that every write passes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from stele.core.commands import CONTINUE_NUMBERING, Outcome, SubjectDefaults
from stele.core.events import BindingAdded, Event, EventMetadata, SubjectCreated
from stele.core.model import Binding, Mode, SettingsLevel, Subject, SubjectKey
from stele.core.queries import latest_version, mode_for
from stele.core.state import State
from stele.errors import InvalidName, InvalidRequest, PreconditionFailed, ReadOnly

_CLOSED_MODES = {Mode.READONLY, Mode.READONLY_OVERRIDE, Mode.FORWARD}


class Decision(NamedTuple):
    """Events to append, all or none, and the outcome to return to the caller once they are durable."""

    events: tuple[Event, ...]
    outcome: Outcome


def require_writable(state: State, level: SettingsLevel) -> Mode:
    """Return the mode in force at a level. Raises `ReadOnly` when it forbids writes."""
    mode = mode_for(state, level)
    if mode in _CLOSED_MODES:
        raise read_only_error(level, "in read-only mode")
    return mode


def read_only_error(level: SettingsLevel, how: str) -> ReadOnly:
    """Return the error of a write that the mode forbids."""
    namespace, subject = level.namespace or "", level.subject or ""
    return ReadOnly(
        f"Subject '{subject}' in namespace '{namespace}' is {how}", subject=subject, namespace=namespace, how=how
    )


def require_bindings(there: frozenset[Binding], expected: frozenset[Binding]) -> None:
    """Raise `PreconditionFailed` when the bindings differ from those that the caller decided on."""
    if there != expected:
        raise PreconditionFailed("the binding was changed meanwhile")


def require_latest(subject: Subject | None, number: int | None) -> None:
    """Raise `PreconditionFailed` unless the newest active version has this number; 0: there is none, None: any."""
    newest = latest_version(subject)
    there = newest.version_number if newest is not None else 0
    if number is not None and number != there:
        raise PreconditionFailed(f"the latest version is {there}, not {number}")


def bind_events(state: State, binding: Binding) -> tuple[Event, ...]:
    """Return the event of a binding, none if it exists already. Raises `InvalidRequest` for one that is frozen."""
    known = state.bindings.get(binding.key)
    if known == binding:
        return ()
    if known is not None and known.frozen:
        raise InvalidRequest(f"the binding of '{binding.resource}' is frozen")
    for part in (*binding.key, binding.resource_id):
        check_name(part)
    return (BindingAdded(binding),)


def merge_dialect_data(
    before: Mapping[str, Any] | None, changes: Mapping[str, Mapping[str, Any]]
) -> dict[str, dict[str, Any]] | None:
    """Return the data of dialects with changes merged in, member by member: None removes a member."""
    ext = {dialect: dict(members) for dialect, members in (before or {}).items()}
    for dialect, members in changes.items():
        dialect_data = {**ext.pop(dialect, {}), **members}
        dialect_data = {name: value for name, value in dialect_data.items() if value is not None}
        if dialect_data:
            ext[dialect] = dialect_data
    return ext or None


def check_name(name: str) -> str:
    """Return the name itself.

    Raises `InvalidName` for control characters, which would break every list that shows the name, and for lone
    surrogates, which no log can store.
    """
    if any(ord(char) < 0x20 or 0x7F <= ord(char) < 0xA0 for char in name):
        raise InvalidName(name, "has control characters")
    if any(0xD800 <= ord(char) < 0xE000 for char in name):
        raise InvalidName(name, "is not valid Unicode text")
    return name


def creation_event(
    state: State, key: SubjectKey, stamp: EventMetadata, defaults: SubjectDefaults = CONTINUE_NUMBERING
) -> SubjectCreated:
    """Return the event that creates a subject's next incarnation, numbered after the ones before it."""
    namespace = state.find_namespace(key.namespace)
    return SubjectCreated(
        key=SubjectKey(check_name(key.namespace), check_name(key.name)),
        uid=stamp.uid,
        serial=state.serial + 1,
        incarnation=(namespace.incarnations.get(key.name, 0) if namespace is not None else 0) + 1,
        numbering=defaults.numbering,
        comparison_scope=defaults.comparison_scope,
        default_policy=defaults.policy,
        format=defaults.format,
        custom_format=defaults.custom_format,
    )
