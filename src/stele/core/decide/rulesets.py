"""Decides which versions of rulesets a registry uses."""

from __future__ import annotations

from stele.core import queries
from stele.core.commands import AdoptRulesets, EmptyOutcome
from stele.core.decide.decision import Decision, check_name, require_writable
from stele.core.events import EventMetadata, RulesetAdopted
from stele.core.model import MAX_INT32, REGISTRY_LEVEL
from stele.core.rulesets import FIRST, split_ruleset
from stele.core.state import State
from stele.errors import InvalidName, UnknownRuleset


def adopt_rulesets(state: State, command: AdoptRulesets, stamp: EventMetadata) -> Decision:
    """Adopt versions of rulesets, also older ones: a downgrade is deliberate. Versions already in force are left out.

    Does not check whether a version is installed; the caller does. Raises `InvalidName`, `UnknownRuleset` for an
    invalid name or version, `ReadOnly`.
    """
    if command.first and state.seq > 0:
        return Decision((), EmptyOutcome())
    events = []
    for format_name, name, version in command.versions:
        if not check_name(format_name) or not check_name(name):
            raise InvalidName("", "does not name a format and a ruleset")
        if split_ruleset(name)[1] is not None or not FIRST <= version <= MAX_INT32:
            raise UnknownRuleset(f"{name!r} and {version} are not the name and version of a ruleset")
        if queries.ruleset_version(state, format_name, name) != version:
            events.append(RulesetAdopted(format_name, name, version))
    if events:
        require_writable(state, REGISTRY_LEVEL)
    return Decision(tuple(events), EmptyOutcome())
