"""Turns commands into events: the rules of the registry, pure.

The same state, command and metadata always give the same decision.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from stele.core import commands as cmd
from stele.core.compatibility_requests import Verdicts
from stele.core.decide import (
    bindings,
    collections,
    lifecycle,
    namespaces,
    register,
    restoration,
    rulesets,
    settings,
    subjects,
    transaction,
)
from stele.core.decide.decision import Decision
from stele.core.events import EventMetadata
from stele.core.state import State

NO_VERDICTS: Verdicts = {}

_RULES: Mapping[type, Callable[[State, Any, EventMetadata], Decision]] = {
    cmd.DeleteVersion: lifecycle.delete_version,
    cmd.DeleteSubject: lifecycle.delete_subject,
    cmd.ChangeSettings: settings.change_settings,
    cmd.ClearSettings: settings.clear_settings,
    cmd.SetMode: settings.set_mode,
    cmd.ClearMode: settings.clear_mode,
    cmd.CreateNamespace: namespaces.create_namespace,
    cmd.DeleteNamespace: namespaces.delete_namespace,
    cmd.EndIncarnations: lifecycle.end_incarnations,
    cmd.CreateSubject: subjects.create_subject,
    cmd.ChangeSubject: subjects.change_subject,
    cmd.AddCodec: subjects.add_codec,
    cmd.AssignEncoding: subjects.assign_encoding,
    cmd.AddBinding: bindings.add_binding,
    cmd.RemoveBinding: bindings.remove_binding,
    cmd.ChangeBindings: bindings.change_bindings,
    cmd.ChangeItems: collections.change_items,
    cmd.AdoptRulesets: rulesets.adopt_rulesets,
    cmd.SkipIds: restoration.skip_ids,
}


def decide(state: State, command: cmd.Command, stamp: EventMetadata, verdicts: Verdicts = NO_VERDICTS) -> Decision:
    """Return the events of a command, and its outcome. Without events nothing changes.

    Raises a `SteleError` when the command is refused, `VerdictsRequired` when verdicts are missing.
    """
    if isinstance(command, cmd.RegisterSchema):
        return register.register_schema(state, command, stamp, verdicts)
    if isinstance(command, cmd.Transaction):
        return transaction.decide_transaction(state, command, stamp, verdicts, decide)
    return _RULES[type(command)](state, command, stamp)


__all__ = ["Decision", "decide"]
