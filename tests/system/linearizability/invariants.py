"""Checks of a whole history: linearizable subjects, unique ids, correct bodies, no lost registrations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tests.system.linearizability.checker import Verdict, check_linearizability
from tests.system.linearizability.history import PURGES, WRONG_BODY, Action, Operation, group_by_subject
from tests.system.linearizability.subject_model import SubjectState, follow_operation


def find_violations(operations: list[Operation]) -> list[str]:
    """Return all violations in a history as sentences. A history that is too hard to decide counts as one."""
    return [
        *_find_reissued_ids(operations),
        *_find_wrong_bodies(operations),
        *_find_lost_registrations(operations),
        *_find_unordered_subjects(operations),
    ]


def _find_unordered_subjects(operations: list[Operation]) -> Iterator[str]:
    for subject, rows in group_by_subject(operations).items():
        finding = check_linearizability(rows, SubjectState(), follow_operation)
        if finding.verdict is not Verdict.LINEARIZABLE:
            stuck = "\n    ".join(map(str, finding.stuck_at))
            yield (
                f"{subject} is {finding.verdict}: an order explains {finding.explained} of {len(rows)} operations; next"
                f" would be one of\n    {stuck}"
            )


def _find_reissued_ids(operations: Iterable[Operation]) -> Iterator[str]:
    texts_by_id: defaultdict[int, set[tuple[str, int]]] = defaultdict(set)
    ids_by_text: defaultdict[tuple[str, int], set[int]] = defaultdict(set)
    purges: defaultdict[str, int] = defaultdict(int)
    for operation in operations:
        purges[operation.subject] += operation.action in PURGES
        if operation.schema_id is not None and operation.result is not None:
            text = _find_text(operation)
            texts_by_id[operation.schema_id].add((operation.subject, text))
            ids_by_text[operation.subject, text].add(operation.schema_id)
    for schema_id, texts in texts_by_id.items():
        if len(texts) > 1:
            yield f"schema id {schema_id} was issued twice: {sorted(texts)}"
    for (subject, text), ids in ids_by_text.items():
        if len(ids) > 1 + purges[subject]:
            yield f"text {text} of {subject} has the ids {sorted(ids)}, after {purges[subject]} purges"


def _find_wrong_bodies(operations: Iterable[Operation]) -> Iterator[str]:
    for operation in operations:
        if operation.result is None or operation.result.code != 200:
            continue
        expected = {
            Action.REGISTER: operation.argument,
            Action.LOOK_UP: operation.argument,
            Action.GET_BY_ID: operation.argument[1] if operation.action is Action.GET_BY_ID else None,
        }.get(operation.action)
        text = _find_text(operation)
        if text == WRONG_BODY or (expected is not None and text is not None and text != expected):
            yield f"wrong body: {operation}"


def _find_lost_registrations(operations: list[Operation]) -> Iterator[str]:
    """Yield reads by id that miss an acknowledged registration, in subjects without purges."""
    purged = {operation.subject for operation in operations if operation.action in PURGES}
    acknowledged: Mapping[int, int] = {
        operation.schema_id: operation.completed
        for operation in sorted(operations, key=lambda row: -(row.completed or 0))
        if operation.schema_id is not None and operation.completed is not None and operation.subject not in purged
    }
    for operation in operations:
        if operation.action is not Action.GET_BY_ID or operation.result is None or operation.result.code == 200:
            continue
        since = acknowledged.get(operation.argument[0])
        if since is not None and since < operation.invoked:
            yield f"an acknowledged registration is lost: {operation}"


def _find_text(operation: Operation) -> Any:
    """Return the number of the text in an answer, None where the answer has none."""
    assert operation.result is not None
    value = operation.result.value
    if operation.action is Action.GET_BY_ID:
        return value
    if operation.action in {Action.REGISTER, Action.LOOK_UP, Action.GET_LATEST, Action.GET_VERSION}:
        return value[1] if value is not None else None
    return None
