"""The rights that each command needs; pure.

The caller of a command needs all of them, whichever way the command came. An endpoint that forgets a check cannot
bypass this one.

The model: docs/explanation/access.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from stele.core import commands as cmd
from stele.core import queries
from stele.core.access import (
    REGISTRY_RESOURCE,
    Operation,
    Resource,
    key_resource,
    level_resource,
    namespace_resource,
    subject_resource,
)
from stele.core.model import Mode, SettingsLevel
from stele.core.state import State

Right = tuple[Operation, Resource]
Rights = tuple[Right, ...]


def required_rights(command: cmd.Command, state: State) -> Rights:
    """Return the rights that a command needs, in the order in which they are checked.

    The state adds what the command does not contain: the subject of a binding that it removes, and whether a subject is
    in IMPORT mode.
    """
    return RIGHTS[type(command)](command, state)


def _on_subject(*operations: Operation) -> Callable[[Any, State], Rights]:
    return lambda command, state: tuple((operation, subject_resource(command.key)) for operation in operations)


def _on_namespace(operation: Operation) -> Callable[[Any, State], Rights]:
    return lambda command, state: ((operation, namespace_resource(command.namespace)),)


def _on_level(operation: Operation) -> Callable[[Any, State], Rights]:
    return lambda command, state: ((operation, level_resource(command.level)),)


def _on_registry(operation: Operation) -> Callable[[Any, State], Rights]:
    return lambda command, state: ((operation, REGISTRY_RESOURCE),)


def _rights_to_register(command: cmd.RegisterSchema, state: State) -> Rights:
    """Return the rights to register a schema.

    Outside of IMPORT mode, a version number is only a condition: it must be the next one. So it needs no further right.
    """
    resource = subject_resource(command.key)
    wanted = [Operation.REGISTER]
    gives_number = command.version_number is not None and (
        queries.mode_for(state, SettingsLevel(*command.key)) is Mode.IMPORT
    )
    if command.schema_id is not None or command.at is not None or command.uid is not None or gives_number:
        wanted.append(Operation.IMPORT)
    # Only callers request to skip the check, no dialect does. An explicit lineage bypasses it, too.
    if command.check is cmd.CompatibilityCheck.SKIP or command.lineage is not None:
        wanted.append(Operation.FORCE)
    if command.policy is not None:
        wanted.append(Operation.CHANGE_POLICY)
    if command.bindings:
        wanted.append(Operation.BIND)
    return tuple((operation, resource) for operation in wanted)


_DELETING: Final = {
    cmd.DeleteMode.SOFT: Operation.DELETE,
    cmd.DeleteMode.END_INCARNATION: Operation.DELETE,
    cmd.DeleteMode.HARD: Operation.PURGE,
}


def _rights_to_delete(command: cmd.DeleteVersion | cmd.DeleteSubject, state: State) -> Rights:
    return ((_DELETING[command.mode], subject_resource(command.key)),)


def _rights_to_set_mode(command: cmd.SetMode, state: State) -> Rights:
    wanted = [Operation.CHANGE_POLICY]
    if command.mode is Mode.IMPORT:
        wanted.append(Operation.IMPORT)
    if command.force:
        wanted.append(Operation.FORCE)
    return tuple((operation, level_resource(command.level)) for operation in wanted)


def _rights_to_bind(state: State, added: Iterable[Any], removed: Iterable[tuple[str, str, str, str]]) -> Rights:
    """Return the right to bind for all subjects concerned; for the registry where a removed binding is unknown."""
    resources = [subject_resource(binding.subject) for binding in added]
    for key in removed:
        binding = state.bindings.get(key)
        resources.append(REGISTRY_RESOURCE if binding is None else subject_resource(binding.subject))
    return tuple((Operation.BIND, resource) for resource in dict.fromkeys(resources))


def _rights_to_change_items(command: cmd.ChangeItems, state: State) -> Rights:
    match command.collection:
        case "usage" | "replications.tombstones":  # The service checks the rights to the subjects concerned.
            return ()
        case "confluent.keys":
            # A KEK is under (kek, context, name), a DEK under (dek, name of its KEK, …).
            names = dict.fromkeys(key[2] if key[0] == "kek" else key[1] for key in command.changes)
            return tuple((Operation.MANAGE_KEYS, key_resource(name)) for name in names)
        case "xregistry":  # Descriptive attributes of the whole registry.
            return ((Operation.REGISTER, REGISTRY_RESOURCE),)
        case "confluent.exporters" | "exporters.status" | "subscriptions" | "subscriptions.status":
            return ((Operation.MANAGE_EXPORTERS, REGISTRY_RESOURCE),)
        case "replications" | "replications.status":
            return ((Operation.MANAGE_EXPORTERS, REGISTRY_RESOURCE),)
        case _:  # Rules, API keys, and every collection that is not listed.
            return ((Operation.MANAGE_ACCESS, REGISTRY_RESOURCE),)


RIGHTS: Final[dict[type[Any], Callable[[Any, State], Rights]]] = {
    cmd.RegisterSchema: _rights_to_register,
    cmd.DeleteVersion: _rights_to_delete,
    cmd.DeleteSubject: _rights_to_delete,
    cmd.CreateNamespace: _on_namespace(Operation.REGISTER),
    cmd.DeleteNamespace: _on_namespace(Operation.DELETE),
    cmd.EndIncarnations: _on_namespace(Operation.DELETE),
    cmd.CreateSubject: _on_subject(Operation.REGISTER),
    cmd.ChangeSubject: _on_subject(Operation.REGISTER),
    cmd.ChangeSettings: _on_level(Operation.CHANGE_POLICY),
    cmd.ClearSettings: _on_level(Operation.CHANGE_POLICY),
    cmd.SetMode: _rights_to_set_mode,
    cmd.ClearMode: _on_level(Operation.CHANGE_POLICY),
    cmd.AddCodec: _on_subject(Operation.REGISTER),
    cmd.AssignEncoding: _on_subject(Operation.REGISTER),
    cmd.AddBinding: lambda command, state: _rights_to_bind(state, (command.binding,), ()),
    cmd.RemoveBinding: lambda command, state: _rights_to_bind(state, (), (command.key,)),
    cmd.ChangeBindings: lambda command, state: _rights_to_bind(state, command.added, command.removed),
    cmd.ChangeItems: _rights_to_change_items,
    cmd.AdoptRulesets: _on_registry(Operation.CHANGE_POLICY),
    cmd.SkipIds: _on_registry(Operation.IMPORT),
    cmd.Transaction: lambda command, state: tuple(
        dict.fromkeys(right for part in command.commands for right in required_rights(part, state))
    ),
}
"""Functions that return the rights, by type of command."""
