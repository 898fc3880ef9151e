"""Which rights a command wants; pure.

Whoever sends a command needs all of them, however it came: an endpoint that forgets to ask cannot get around this.

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
    """Return the rights that a command wants, in the order in which they are asked for.

    The state says what a command alone does not: to which subject a binding leads that it removes, and whether a
    subject is in IMPORT mode.
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
    """A version number outside of IMPORT mode is a condition: it must be the next one, so everybody may give it."""
    resource = subject_resource(command.key)
    wanted = [Operation.REGISTER]
    gives_number = command.version_number is not None and (
        queries.mode_for(state, SettingsLevel(*command.key)) is Mode.IMPORT
    )
    if command.schema_id is not None or command.at is not None or command.uid is not None or gives_number:
        wanted.append(Operation.IMPORT)
    # Only callers ask to skip the check; no dialect does it by itself. Another lineage gets around it, too.
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
    """To all subjects concerned; where a binding leads that is not known is a matter of the registry."""
    resources = [subject_resource(binding.subject) for binding in added]
    for key in removed:
        binding = state.bindings.get(key)
        resources.append(REGISTRY_RESOURCE if binding is None else subject_resource(binding.subject))
    return tuple((Operation.BIND, resource) for resource in dict.fromkeys(resources))


def _rights_to_change_items(command: cmd.ChangeItems, state: State) -> Rights:
    match command.collection:
        case "usage" | "replications.tombstones":  # The service asks for the subjects that they are about.
            return ()
        case "confluent.keys":
            # A KEK is under (kek, context, name), a DEK under (dek, name of its KEK, …).
            names = dict.fromkeys(key[2] if key[0] == "kek" else key[1] for key in command.changes)
            return tuple((Operation.MANAGE_KEYS, key_resource(name)) for name in names)
        case "xregistry":  # What describes the registry as a whole.
            return ((Operation.REGISTER, REGISTRY_RESOURCE),)
        case "confluent.exporters" | "exporters.status" | "subscriptions" | "subscriptions.status":
            return ((Operation.MANAGE_EXPORTERS, REGISTRY_RESOURCE),)
        case "replications" | "replications.status":
            return ((Operation.MANAGE_EXPORTERS, REGISTRY_RESOURCE),)
        case _:  # Rules, API keys, and whatever else: what nobody thought of is for those who may do everything.
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
"""How the rights are found, by type of command."""
