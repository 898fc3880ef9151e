"""Decides several commands at once, each on the state that the ones before it would leave."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256

from msgspec.structs import replace

from stele.core.commands import (
    Command,
    CompatibilityCheck,
    Outcome,
    RegisterSchema,
    SeenNamespace,
    SeenSubject,
    Transaction,
    TransactionOutcome,
)
from stele.core.compatibility_requests import CompatibilityRequest, Verdicts, VerdictsRequired
from stele.core.decide.decision import Decision
from stele.core.events import Event, EventMetadata
from stele.core.fold import apply_event
from stele.core.state import State
from stele.errors import PreconditionFailed

Decide = Callable[[State, Command, EventMetadata, Verdicts], Decision]


def decide_transaction(
    state: State, command: Transaction, stamp: EventMetadata, verdicts: Verdicts, decide: Decide
) -> Decision:
    """Return the events of all commands. The state itself does not change.

    Args:
        state: The state. The events are applied to a draft of it, which is rolled back.
        command: The commands, and the conditions of what must not have changed since they were made.
        stamp: Metadata of the record.
        verdicts: Verdicts so far.
        decide: Decides one command.

    Raises:
        PreconditionFailed: A namespace or subject is not as the caller saw it.
        VerdictsRequired: Verdicts are missing; has the questions of all commands.
        SteleError: What the first refused command raises.
    """
    _require_unchanged(state, command)
    events: list[Event] = []
    outcomes: list[Outcome] = []
    missing: list[CompatibilityRequest] = []
    state.begin_draft()
    try:
        for position, part in enumerate(command.commands):
            own_stamp = replace(stamp, uid=_derive_uid(stamp.uid, position))
            try:
                decision = decide(state, part, own_stamp, verdicts)
            except VerdictsRequired as undecided:
                # Continue as if allowed, to collect the questions of all commands before these are decided again.
                missing += undecided.questions
                assert isinstance(part, RegisterSchema)
                decision = decide(state, replace(part, check=CompatibilityCheck.SKIP), own_stamp, verdicts)
            for event in decision.events:
                apply_event(state, event, own_stamp, state.seq + 1)
            events += decision.events
            outcomes.append(decision.outcome)
    finally:
        state.roll_back()
    if missing:
        raise VerdictsRequired(tuple(dict.fromkeys(missing)))
    return Decision(tuple(events), TransactionOutcome(tuple(outcomes)))


def _derive_uid(uid: bytes, position: int) -> bytes:
    """Return the uid of one command of a transaction: as random as that of the record, and the same in every replay."""
    return sha256(uid + position.to_bytes(8, "big")).digest()[: len(uid)]


def _require_unchanged(state: State, command: Transaction) -> None:
    for namespace in command.namespaces:
        if see_namespace(state, namespace.name) != namespace:
            raise PreconditionFailed(f"the namespace '{namespace.name}' was changed meanwhile")
    for subject in command.subjects:
        if see_subject(state, subject) != subject:
            raise PreconditionFailed(f"the subject '{subject.key.name}' was changed meanwhile")


def see_namespace(state: State, name: str) -> SeenNamespace:
    """Return a namespace as it is now, as a condition of a transaction."""
    namespace = state.find_namespace(name)
    if namespace is None or namespace.hidden:
        return SeenNamespace(name)
    return SeenNamespace(name, namespace.at, namespace.epoch)


def see_subject(state: State, expected: SeenSubject) -> SeenSubject:
    """Return the present incarnation of a subject as a condition of a transaction."""
    subject = state.find_subject(expected.key)
    return SeenSubject(expected.key) if subject is None else SeenSubject(expected.key, subject.uid, subject.epoch)
