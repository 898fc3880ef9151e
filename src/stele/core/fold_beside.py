"""Events beside versions into state: settings, modes, codecs, encodings, bindings, collections, rulesets."""

from __future__ import annotations

from msgspec.structs import replace

from stele.core import events as ev
from stele.core.model import Collection, Namespace, Subject, SubjectKey
from stele.core.state import State, settings_slot, uid_from_bytes


def space_of(state: State, name: str, at: int) -> Namespace:
    """The namespace, which the first event about it brings about."""
    namespace = state.namespaces.get(name)
    if namespace is None:
        namespace = Namespace(name, at)
        state.set_item(state.namespaces, name, namespace)
    return namespace


def present(state: State, key: SubjectKey) -> Subject:
    """The present incarnation of a subject."""
    return state.namespaces[key.namespace].subjects[key.name]


def settings_changed(state: State, event: ev.SettingsChanged, stamp: ev.EventMetadata, seq: int) -> None:
    """The settings of a level."""
    if event.level.namespace is None:
        state.change(state, settings=event.settings)
        return
    table = space_of(state, event.level.namespace, stamp.at).settings
    if event.settings is None:
        state.remove_item(table, settings_slot(event.level))
    else:
        state.set_item(
            table, settings_slot(event.level), replace(event.settings, policy=state.intern_value(event.settings.policy))
        )


def mode_changed(state: State, event: ev.ModeChanged, stamp: ev.EventMetadata, seq: int) -> None:
    """The mode of a level."""
    if event.level.namespace is None:
        state.change(state, mode=event.mode)
        return
    table = space_of(state, event.level.namespace, stamp.at).modes
    if event.mode is None:
        state.remove_item(table, settings_slot(event.level))
    else:
        state.set_item(table, settings_slot(event.level), event.mode)


def codec_added(state: State, event: ev.CodecAdded, stamp: ev.EventMetadata, seq: int) -> None:
    """One more codec of a subject."""
    subject = present(state, event.key)
    state.change(subject, codecs={**(subject.codecs or {}), event.name: event.properties}, epoch=subject.epoch + 1)


def encoding_assigned(state: State, event: ev.EncodingAssigned, stamp: ev.EventMetadata, seq: int) -> None:
    """The next encoding id of a subject."""
    subject = present(state, event.key)
    if subject.encodings is None:
        state.change(subject, encodings=[])
    assert subject.encodings is not None
    state.append_to(subject.encodings, (uid_from_bytes(event.version), event.codec))


def bound(state: State, event: ev.BindingAdded, stamp: ev.EventMetadata, seq: int) -> None:
    """A binding, perhaps in the place of another."""
    _unplace(state, event.binding.key)
    if state.by_place is not None:
        for place in event.binding.index_keys:
            state.set_item(state.by_place, place, (*state.by_place.get(place, ()), event.binding))
    state.set_item(state.bindings, event.binding.key, event.binding)


def unbound(state: State, event: ev.BindingRemoved, stamp: ev.EventMetadata, seq: int) -> None:
    """The end of a binding."""
    _unplace(state, event.key)
    state.remove_item(state.bindings, event.key)


def _unplace(state: State, key: tuple[str, str, str, str]) -> None:
    known = state.bindings.get(key)
    if known is None or state.by_place is None:
        return
    for place in known.index_keys:
        left = tuple(row for row in state.by_place.get(place, ()) if row.key != key)
        if left:
            state.set_item(state.by_place, place, left)
        else:
            state.remove_item(state.by_place, place)


def items_changed(state: State, event: ev.ItemsChanged, stamp: ev.EventMetadata, seq: int) -> None:
    """Documents of a collection."""
    if event.collection not in state.collections:
        state.set_item(state.collections, event.collection, Collection())
    collection = state.collections[event.collection]
    for key, value in event.changes:
        if value is None:
            state.remove_item(collection.items, key)
        else:
            state.set_item(collection.items, key, value)
    state.change(collection, revision=collection.revision + 1)


def ruleset_adopted(state: State, event: ev.RulesetAdopted, stamp: ev.EventMetadata, seq: int) -> None:
    """The version of a ruleset that decides."""
    state.set_item(state.rulesets, (event.format, event.name), event.version)
