"""Events beside versions into state: settings, modes, codecs, encodings, bindings, collections, rulesets."""

from __future__ import annotations

from msgspec.structs import replace

from stele.core import events as ev
from stele.core.model import Collection, Space, Subject, SubjectKey
from stele.core.state import State, slot, uid_of


def space_of(state: State, name: str, at: int) -> Space:
    """The space, which the first event about it brings about."""
    space = state.spaces.get(name)
    if space is None:
        space = Space(name, at)
        state.put(state.spaces, name, space)
    return space


def present(state: State, key: SubjectKey) -> Subject:
    """The present incarnation of a subject."""
    return state.spaces[key.space].subjects[key.name]


def settings_changed(state: State, event: ev.SettingsChanged, stamp: ev.Stamp, seq: int) -> None:
    """The settings of a level."""
    if event.level.space is None:
        state.change(state, settings=event.settings)
        return
    table = space_of(state, event.level.space, stamp.at).settings
    if event.settings is None:
        state.drop(table, slot(event.level))
    else:
        state.put(table, slot(event.level), replace(event.settings, policy=state.intern(event.settings.policy)))


def mode_changed(state: State, event: ev.ModeChanged, stamp: ev.Stamp, seq: int) -> None:
    """The mode of a level."""
    if event.level.space is None:
        state.change(state, mode=event.mode)
        return
    table = space_of(state, event.level.space, stamp.at).modes
    if event.mode is None:
        state.drop(table, slot(event.level))
    else:
        state.put(table, slot(event.level), event.mode)


def codec_added(state: State, event: ev.CodecAdded, stamp: ev.Stamp, seq: int) -> None:
    """One more codec of a subject."""
    subject = present(state, event.key)
    state.change(subject, codecs={**(subject.codecs or {}), event.name: event.properties}, epoch=subject.epoch + 1)


def encoding_assigned(state: State, event: ev.EncodingAssigned, stamp: ev.Stamp, seq: int) -> None:
    """The next encoding id of a subject."""
    subject = present(state, event.key)
    if subject.encodings is None:
        state.change(subject, encodings=[])
    assert subject.encodings is not None
    state.push(subject.encodings, (uid_of(event.version), event.codec))


def bound(state: State, event: ev.Bound, stamp: ev.Stamp, seq: int) -> None:
    """A binding, perhaps in the place of another."""
    _unplace(state, event.binding.key)
    if state.by_place is not None:
        for place in event.binding.places:
            state.put(state.by_place, place, (*state.by_place.get(place, ()), event.binding))
    state.put(state.bindings, event.binding.key, event.binding)


def unbound(state: State, event: ev.Unbound, stamp: ev.Stamp, seq: int) -> None:
    """The end of a binding."""
    _unplace(state, event.key)
    state.drop(state.bindings, event.key)


def _unplace(state: State, key: tuple[str, str, str, str]) -> None:
    known = state.bindings.get(key)
    if known is None or state.by_place is None:
        return
    for place in known.places:
        left = tuple(row for row in state.by_place.get(place, ()) if row.key != key)
        if left:
            state.put(state.by_place, place, left)
        else:
            state.drop(state.by_place, place)


def items_changed(state: State, event: ev.ItemsChanged, stamp: ev.Stamp, seq: int) -> None:
    """Documents of a collection."""
    if event.collection not in state.collections:
        state.put(state.collections, event.collection, Collection())
    collection = state.collections[event.collection]
    for key, value in event.changes:
        if value is None:
            state.drop(collection.items, key)
        else:
            state.put(collection.items, key, value)
    state.change(collection, revision=collection.revision + 1)


def ruleset_adopted(state: State, event: ev.RulesetAdopted, stamp: ev.Stamp, seq: int) -> None:
    """The version of a ruleset that decides."""
    state.put(state.rulesets, (event.format, event.name), event.version)
