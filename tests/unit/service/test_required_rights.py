"""The rights that each command needs."""

from __future__ import annotations

from typing import get_args

import pytest

from stele.core import commands as cmd
from stele.core.access import REGISTRY_RESOURCE, Operation, key_resource, namespace_resource, subject_resource
from stele.core.events import EventMetadata, ModeChanged
from stele.core.fold import apply_event
from stele.core.model import Binding, Mode, SettingsLevel, SubjectKey
from stele.core.policy import BACKWARD
from stele.core.state import State
from stele.service.required_rights import RIGHTS, required_rights

KEY = SubjectKey("team", "orders")
SUBJECT = subject_resource(KEY)
OTHER = SubjectKey("team", "payments")
LEVEL = SettingsLevel(*KEY)
BINDING = Binding("kafka", "topic", "orders", "value", KEY)


def test_every_command_has_an_entry() -> None:
    """Every command has an entry, so a new command fails this test until its rights are defined."""
    assert set(RIGHTS) == set(get_args(cmd.Command))


@pytest.mark.parametrize(
    ("command", "wanted"),
    [
        (cmd.RegisterSchema(KEY, None), {Operation.REGISTER}),
        (cmd.RegisterSchema(KEY, None, version_number=2), {Operation.REGISTER}),
        (cmd.RegisterSchema(KEY, None, schema_id=7), {Operation.REGISTER, Operation.IMPORT}),
        (cmd.RegisterSchema(KEY, None, at=7), {Operation.REGISTER, Operation.IMPORT}),
        (cmd.RegisterSchema(KEY, None, check=cmd.CompatibilityCheck.SKIP), {Operation.REGISTER, Operation.FORCE}),
        (cmd.RegisterSchema(KEY, None, policy=BACKWARD), {Operation.REGISTER, Operation.CHANGE_POLICY}),
        (cmd.RegisterSchema(KEY, None, bindings=(BINDING,)), {Operation.REGISTER, Operation.BIND}),
        (cmd.DeleteVersion(KEY, 1), {Operation.DELETE}),
        (cmd.DeleteVersion(KEY, 1, cmd.DeleteMode.HARD), {Operation.PURGE}),
        (cmd.DeleteSubject(KEY, cmd.DeleteMode.END_INCARNATION), {Operation.DELETE}),
        (cmd.DeleteSubject(KEY, cmd.DeleteMode.HARD), {Operation.PURGE}),
        (cmd.SetMode(LEVEL, Mode.READONLY), {Operation.CHANGE_POLICY}),
        (cmd.SetMode(LEVEL, Mode.IMPORT), {Operation.CHANGE_POLICY, Operation.IMPORT}),
        (cmd.SetMode(LEVEL, Mode.READONLY, force=True), {Operation.CHANGE_POLICY, Operation.FORCE}),
        (cmd.AddBinding(BINDING), {Operation.BIND}),
    ],
)
def test_what_a_command_does_to_a_subject_decides_which_rights_it_wants(
    command: cmd.Command, wanted: set[Operation]
) -> None:
    """Each special action of a command needs a right of its own on its subject."""
    assert set(required_rights(command, State())) == {(operation, SUBJECT) for operation in wanted}


def test_a_number_of_ones_own_wants_a_right_in_import_mode_only() -> None:
    """An explicit version number needs a right only in IMPORT mode; elsewhere it must be the next number."""
    state = State()
    apply_event(state, ModeChanged(LEVEL, Mode.IMPORT), EventMetadata(b"1" * 16, 1), 1)
    assert (Operation.IMPORT, SUBJECT) in required_rights(cmd.RegisterSchema(KEY, None, version_number=2), state)


def test_who_unbinds_needs_the_right_to_the_subject_that_is_bound() -> None:
    """Removing a binding needs the right to its subject; for an unknown binding, the right to the registry."""
    state = State()
    remove = cmd.ChangeBindings((), (BINDING.key,))
    assert required_rights(remove, state) == ((Operation.BIND, REGISTRY_RESOURCE),)
    state.bindings[BINDING.key] = BINDING
    assert required_rights(remove, state) == ((Operation.BIND, SUBJECT),)
    move = cmd.ChangeBindings((Binding("kafka", "topic", "orders", "value", OTHER),), (BINDING.key,))
    assert set(required_rights(move, state)) == {
        (Operation.BIND, SUBJECT),
        (Operation.BIND, subject_resource(OTHER)),
    }


@pytest.mark.parametrize(
    ("collection", "key", "wanted"),
    [
        ("confluent.keys", ("kek", "", "main"), (Operation.MANAGE_KEYS, key_resource("main"))),
        ("confluent.keys", ("dek", "main", "", "orders", "A", "1"), (Operation.MANAGE_KEYS, key_resource("main"))),
        ("confluent.exporters", ("copy",), (Operation.MANAGE_EXPORTERS, REGISTRY_RESOURCE)),
        ("subscriptions", ("s",), (Operation.MANAGE_EXPORTERS, REGISTRY_RESOURCE)),
        ("redpanda.acls", ("User:ann",), (Operation.MANAGE_ACCESS, REGISTRY_RESOURCE)),
        ("access.rules", ("1",), (Operation.MANAGE_ACCESS, REGISTRY_RESOURCE)),
        ("of.a.plug-in", ("1",), (Operation.MANAGE_ACCESS, REGISTRY_RESOURCE)),
    ],
)
def test_the_collection_decides_which_right_a_document_wants(
    collection: str, key: tuple[str, ...], wanted: tuple[Operation, object]
) -> None:
    """The collection determines the right to change a document; an unlisted one needs the right to manage access."""
    assert required_rights(cmd.ChangeItems(collection, {key: b"{}"}), State()) == (wanted,)


def test_settings_want_the_right_to_their_level() -> None:
    """Settings need the right to their level: the registry, a namespace or a subject."""
    resources = {
        SettingsLevel(): REGISTRY_RESOURCE,
        SettingsLevel("team"): namespace_resource("team"),
        LEVEL: SUBJECT,
    }
    for level, resource in resources.items():
        assert required_rights(cmd.ChangeSettings(level, {}), State()) == ((Operation.CHANGE_POLICY, resource),)
