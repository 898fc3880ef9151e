"""Histories of clients of a simulated registry that is linearizable, except for a fault that is planted in it."""

from __future__ import annotations

from enum import StrEnum
from random import Random
from typing import Any

from tests.system.linearizability.history import WRITES, WRONG_BODY, Action, Operation, Result
from tests.system.linearizability.subject_model import TEXTS, SubjectState, apply_operation

SUBJECT = "simulated"


class Fault(StrEnum):
    """An error that the simulated registry makes once."""

    LOST_WRITE = "an acknowledged registration has no effect"
    STALE_READ = "a read is answered from an older state"
    REISSUED_ID = "an id is given to two texts"
    RESURRECTED_DELETE = "what was deleted for good is back"
    WRONG_BODY = "a read returns a text that nobody sent"


def choose_argument(action: Action, random: Random, ids: dict[int, int], versions: int = 6) -> Any:
    """Return an argument for an action. `ids` maps known texts to their schema ids."""
    if action in {Action.REGISTER, Action.LOOK_UP, Action.CHECK_COMPATIBILITY}:
        return random.randrange(TEXTS)
    if action is Action.GET_BY_ID:
        return random.choice([(schema_id, text) for text, schema_id in ids.items()])
    if action in {Action.GET_VERSION, Action.SOFT_DELETE_VERSION, Action.PURGE_VERSION}:
        return random.randint(1, versions)
    return None


def simulate_history(
    random: Random, operations: int, clients: int = 4, unknown: float = 0.05, fault: Fault | None = None
) -> list[Operation]:
    """Return operations of concurrent clients. Each takes effect at one moment between its begin and its end.

    The last operations are reads after all others. A fault is planted in the first operation that it fits, from the
    middle on. Then only these reads follow, because another operation might undo the fault.
    """
    plan = sorted(_plan_operations(random, operations, clients))
    state, ids, history = SubjectState(), {}, []
    states = [(0, state)]
    planted = fault is None
    for place, (effect, operation) in enumerate(plan):
        before = state
        state, result = apply_operation(state, operation)
        if operation.action is Action.REGISTER and result.code == 200:
            text = operation.argument
            if not any(version.text == text for version in before.versions):
                ids[text] = len(history) + 1
        schema_id = ids.get(result.value[1]) if isinstance(result.value, tuple) and _has_text(operation) else None
        is_unknown = operation.action in WRITES and random.random() < unknown
        row = operation._replace(result=result, schema_id=schema_id)
        if not planted and fault is not None and place >= len(plan) // 2 and not is_unknown:
            broken = _plant_fault(fault, row, before, state, states)
            if broken is not None:
                planted = True
                row, state = broken
                history.append(row)
                break
        states.append((effect, state))
        history.append(row._replace(completed=None, result=None, schema_id=None) if is_unknown else row)
    if not planted:
        return simulate_history(random, operations, clients, unknown, fault)
    return [*history, *_read_everything(state, history)]


def _plan_operations(random: Random, operations: int, clients: int) -> list[tuple[int, Operation]]:
    weights = {Action.REGISTER: 8, Action.SOFT_DELETE_SUBJECT: 1, Action.PURGE_SUBJECT: 1, Action.GET_BY_ID: 0}
    actions = list(Action)
    plan = []
    for client in range(clients):
        now = random.randint(0, 50)
        for _ in range(operations // clients):
            action = random.choices(actions, [weights.get(row, 3) for row in actions])[0]
            began, now = now, now + random.randint(2, 100)
            operation = Operation(client, 0, action, SUBJECT, choose_argument(action, random, {}), began, now)
            plan.append((random.randint(began + 1, now), operation))
            now += random.randint(1, 20)
    return plan


def _read_everything(state: SubjectState, history: list[Operation]) -> list[Operation]:
    begin = 1000 + max(operation.completed or operation.invoked for operation in history)
    reads = [(Action.LIST_ALL_VERSIONS, None), *((Action.GET_VERSION, number) for number in range(1, 12))]
    rows = [
        Operation(0, 0, action, SUBJECT, argument, begin + 2 * place, begin + 2 * place + 1)
        for place, (action, argument) in enumerate(reads)
    ]
    return [row._replace(result=apply_operation(state, row)[1]) for row in rows]


def _has_text(operation: Operation) -> bool:
    return operation.action in {Action.REGISTER, Action.LOOK_UP, Action.GET_LATEST, Action.GET_VERSION}


def _plant_fault(
    fault: Fault, row: Operation, before: SubjectState, after: SubjectState, states: list[tuple[int, SubjectState]]
) -> tuple[Operation, SubjectState] | None:
    """Return the operation and the state with the fault in them, None where it does not fit."""
    if fault is Fault.LOST_WRITE and row.action is Action.REGISTER and before != after:
        return row, before
    if fault is Fault.RESURRECTED_DELETE and row.action is Action.PURGE_VERSION and before != after:
        return row, before
    if fault is Fault.STALE_READ and row.action is Action.LIST_VERSIONS:
        # A state older than all operations that are concurrent with the read.
        old = [state for at, state in states if at < row.invoked - 500]
        stale = apply_operation(old[-1], row)[1] if old else row.result
        between = {apply_operation(state, row)[1] for at, state in states if at >= row.invoked - 500}
        return (row._replace(result=stale), after) if stale not in between | {row.result} else None
    if row.result is None or row.result.code != 200 or not _has_text(row):
        return None
    if fault is Fault.WRONG_BODY and row.action is not Action.REGISTER:
        return row._replace(result=Result(200, (row.result.value[0], WRONG_BODY))), after
    if fault is Fault.REISSUED_ID and row.schema_id is not None:
        # The id of text 0 of another subject, which the tests add to each history.
        return row._replace(schema_id=FIRST_ID), after
    return None


FIRST_ID = 10**6
"""Schema id of a text of another subject."""

OTHER_SUBJECT = Operation(9, 0, Action.REGISTER, "other", 0, 0, 1, Result(200, (1, 0)), FIRST_ID)
