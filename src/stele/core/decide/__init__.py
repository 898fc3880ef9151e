"""Commands into events: the rules of the registry, pure. Same state, same command, same stamp: same decision."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from stele.core import commands as cmd
from stele.core.compatibility_requests import Verdicts
from stele.core.decide import catalogue, lifecycle, register, rulesets, settings
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
    cmd.CreateNamespace: catalogue.create_space,
    cmd.DeleteNamespace: catalogue.delete_space,
    cmd.EndIncarnations: lifecycle.close_subjects,
    cmd.CreateSubject: catalogue.create_subject,
    cmd.ChangeSubject: catalogue.change_subject,
    cmd.AddCodec: catalogue.add_codec,
    cmd.AssignEncoding: catalogue.assign_encoding,
    cmd.AddBinding: catalogue.bind,
    cmd.RemoveBinding: catalogue.unbind,
    cmd.ChangeBindings: catalogue.change_bindings,
    cmd.ChangeItems: catalogue.change_items,
    cmd.AdoptRulesets: rulesets.adopt,
}


def decide(state: State, command: cmd.Command, stamp: EventMetadata, verdicts: Verdicts = NO_VERDICTS) -> Decision:
    """What happens, and what to answer. No event means nothing changes.

    Raises a `SteleError` when the command is refused, `Undecided` when verdicts are missing.
    """
    if isinstance(command, cmd.RegisterSchema):
        return register.register(state, command, stamp, verdicts)
    return _RULES[type(command)](state, command, stamp)


__all__ = ["Decision", "decide"]
