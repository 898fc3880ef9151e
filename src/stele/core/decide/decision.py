"""What the rule modules share: the shape of a decision, and the gates every write passes."""

from __future__ import annotations

from typing import NamedTuple

from stele.core.commands import CONTINUING, Outcome, SubjectDefaults
from stele.core.events import Event, Stamp, SubjectCreated
from stele.core.model import Binding, Level, Mode, SubjectKey
from stele.core.queries import mode_for
from stele.core.state import State
from stele.errors import InvalidName, PreconditionFailed, ReadOnly

_CLOSED_MODES = {Mode.READONLY, Mode.READONLY_OVERRIDE, Mode.FORWARD}


class Decision(NamedTuple):
    """Events to append, all or none, and what to tell the caller once they are durable."""

    events: tuple[Event, ...]
    outcome: Outcome


def writable(state: State, level: Level) -> Mode:
    """The mode in force at a level. Raises `ReadOnly` when it forbids writes."""
    mode = mode_for(state, level)
    if mode in _CLOSED_MODES:
        raise refused(level, "in read-only mode")
    return mode


def refused(level: Level, how: str) -> ReadOnly:
    """The error of a write that the mode forbids."""
    space, subject = level.space or "", level.subject or ""
    return ReadOnly(f"Subject '{subject}' in space '{space}' is {how}", subject=subject, space=space, how=how)


def require_bindings(there: frozenset[Binding], seen: frozenset[Binding]) -> None:
    """Raises `PreconditionFailed` when the bindings there are not the ones somebody decided on."""
    if there != seen:
        raise PreconditionFailed("what is bound was changed meanwhile")


def checked_name(name: str) -> str:
    """The name itself.

    Raises `InvalidName` for control characters, which would break every list it is shown in, and for lone surrogates,
    which no log can write.
    """
    if any(ord(char) < 0x20 or 0x7F <= ord(char) < 0xA0 for char in name):
        raise InvalidName(name, "has control characters")
    if any(0xD800 <= ord(char) < 0xE000 for char in name):
        raise InvalidName(name, "is no Unicode text")
    return name


def creation(state: State, key: SubjectKey, stamp: Stamp, defaults: SubjectDefaults = CONTINUING) -> SubjectCreated:
    """The event that creates a subject's next incarnation, numbered after the ones before it."""
    space = state.space(key.space)
    return SubjectCreated(
        key=SubjectKey(checked_name(key.space), checked_name(key.name)),
        uid=stamp.uid,
        serial=state.serial + 1,
        incarnation=(space.incarnations.get(key.name, 0) if space is not None else 0) + 1,
        numbering=defaults.numbering,
        scope=defaults.scope,
        default_policy=defaults.policy,
        format=defaults.format,
    )
