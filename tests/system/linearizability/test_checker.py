"""The checker of histories agrees with a search of all orders, accepts correct histories and finds planted faults."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, permutations
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import scale_examples
from tests.system.linearizability import check_history
from tests.system.linearizability.checker import Verdict, check_linearizability
from tests.system.linearizability.history import (
    WRONG_BODY,
    Action,
    History,
    Operation,
    Result,
    allow_lag,
    keep_history_of_failure,
    read_history,
)
from tests.system.linearizability.invariants import find_violations
from tests.system.linearizability.simulation import OTHER_SUBJECT, Fault, choose_argument, simulate_history
from tests.system.linearizability.subject_model import (
    SUBJECT_NOT_FOUND,
    SUBJECT_NOT_SOFT_DELETED,
    SubjectState,
    apply_operation,
    follow_operation,
    make_text,
    number_of_text,
)
from tests.system.linearizability.workload import send_request

from stele.testing import registry


def _operation(action: Action, argument: Any, begin: int, end: int | None, result: Result | None = None) -> Operation:
    return Operation(0, 0, action, "s", argument, begin, end, result, None)


def _verdict(*operations: Operation) -> Verdict:
    return check_linearizability(operations, SubjectState(), follow_operation).verdict


def test_a_read_after_a_registration_sees_it() -> None:
    """A list that lacks a version registered before it began is a violation; a concurrent list may lack it."""
    registered = _operation(Action.REGISTER, 0, 0, 10, Result(200, (1, 0)))
    assert _verdict(registered, _operation(Action.LIST_VERSIONS, None, 11, 12, SUBJECT_NOT_FOUND)) is Verdict.VIOLATED
    assert (
        _verdict(registered, _operation(Action.LIST_VERSIONS, None, 9, 12, SUBJECT_NOT_FOUND)) is Verdict.LINEARIZABLE
    )


def test_an_unknown_outcome_may_come_late_or_never() -> None:
    """A registration of unknown outcome may take effect or not, but its version must not disappear again."""
    unknown = _operation(Action.REGISTER, 0, 0, None)
    full_listing = _operation(Action.LIST_VERSIONS, None, 30, 40, Result(200, (1,)))
    empty_listing = _operation(Action.LIST_VERSIONS, None, 10, 20, SUBJECT_NOT_FOUND)
    assert _verdict(unknown, empty_listing) is Verdict.LINEARIZABLE
    assert _verdict(unknown, empty_listing, full_listing) is Verdict.LINEARIZABLE
    assert _verdict(unknown, full_listing, empty_listing._replace(invoked=50, completed=60)) is Verdict.VIOLATED


def test_two_registrations_do_not_get_one_number() -> None:
    """Two texts of one subject are not both its first version."""
    first = _operation(Action.REGISTER, 0, 0, 10, Result(200, (1, 0)))
    assert _verdict(first, _operation(Action.REGISTER, 1, 0, 10, Result(200, (1, 1)))) is Verdict.VIOLATED
    assert _verdict(first, _operation(Action.REGISTER, 1, 0, 10, Result(200, (2, 1)))) is Verdict.LINEARIZABLE


def test_a_slow_registration_may_bring_back_what_was_there_before_it() -> None:
    """A slow registration of an existing version may also have created it again after a concurrent purge.

    If the checker took it only for a look-up, which changes nothing, the rest would have no order.
    """
    text = Result(200, (1, 0))
    history = [
        _operation(Action.REGISTER, 0, 0, 10, text),
        _operation(Action.REGISTER, 0, 20, 100, text),
        _operation(Action.SOFT_DELETE_SUBJECT, None, 30, 40, Result(200, (1,))),
        _operation(Action.PURGE_SUBJECT, None, 50, 60, Result(200, (1,))),
        _operation(Action.PURGE_SUBJECT, None, 110, 120, SUBJECT_NOT_SOFT_DELETED),
    ]
    assert _verdict(*history) is Verdict.LINEARIZABLE
    history[1] = history[1]._replace(completed=45)
    assert _verdict(*history) is Verdict.VIOLATED


def test_ids_and_versions_may_be_behind_where_that_is_allowed() -> None:
    """A read of a deleted version is a violation, except within the allowed lag. A list has no lag."""
    registered = _operation(Action.REGISTER, 0, 0, 10, Result(200, (1, 0)))
    deleted = _operation(Action.SOFT_DELETE_SUBJECT, None, 20, 30, Result(200, (1,)))
    version_read = _operation(Action.GET_VERSION, 1, 40, 50, Result(200, (1, 0)))
    assert _verdict(registered, deleted, version_read) is Verdict.VIOLATED
    assert _verdict(*allow_lag([registered, deleted, version_read], 1e-9)) is Verdict.VIOLATED
    assert _verdict(*allow_lag([registered, deleted, version_read], 2e-8)) is Verdict.LINEARIZABLE
    listed = _operation(Action.LIST_VERSIONS, None, 40, 50, Result(200, (1,)))
    assert _verdict(*allow_lag([registered, deleted, listed], 2e-8)) is Verdict.VIOLATED


def test_a_search_without_end_is_undecided() -> None:
    """A search over its limit of positions is undecided."""
    history = simulate_history(Random(1), 60)
    finding = check_linearizability(history, SubjectState(), follow_operation, positions=5)
    assert finding.verdict is Verdict.UNDECIDED


def test_one_of_many_unanswered_writes_explains_an_answer() -> None:
    """Thirty writes of unknown outcome have too many orders to try, but an order with one of them is found soon."""
    refused = _operation(Action.SOFT_DELETE_VERSION, 1, 41, 45, Result(40406))
    history = [
        _operation(Action.REGISTER, 0, 0, 1, Result(200, (1, 0))),
        *(_operation(Action.REGISTER, 1 + number % 7, 2 + number, None) for number in range(29)),
        _operation(Action.SOFT_DELETE_SUBJECT, None, 40, None),
        refused,
        _operation(Action.LIST_ALL_VERSIONS, None, 50, 60, Result(200, (1,))),
    ]
    assert check_linearizability(history, SubjectState(), follow_operation, 2_000).verdict is Verdict.LINEARIZABLE
    history.remove(refused)
    history.append(_operation(Action.SOFT_DELETE_VERSION, 1, 41, 45, Result(40402)))
    assert check_linearizability(history, SubjectState(), follow_operation, 2_000).verdict is not Verdict.LINEARIZABLE


@settings(max_examples=scale_examples(60))
@given(st.integers(0, 2**32), st.integers(1, 8), st.floats(0, 0.15))
def test_histories_of_a_linearizable_registry_are_accepted(seed: int, clients: int, unknown: float) -> None:
    """A correct history of concurrent clients with unknown outcomes has no violations."""
    assert find_violations(simulate_history(Random(seed), 80, clients, unknown)) == []


@pytest.mark.parametrize("fault", Fault)
@pytest.mark.parametrize("seed", range(12))
def test_every_planted_fault_is_found(fault: Fault, seed: int) -> None:
    """A lost write, a stale read, a reissued id, a resurrected delete and a wrong body are found in every history."""
    history = [OTHER_SUBJECT, *simulate_history(Random(seed), 120, unknown=0.02, fault=fault)]
    assert find_violations(history) != []


def _is_explained(history: list[Operation]) -> bool:
    """Return whether some order of some choice of unknown operations explains the history, by trying all of them."""
    ended = [row for row in history if row.completed is not None]
    unknown = [row for row in history if row.completed is None]
    for choice in range(1 << len(unknown)):
        chosen = ended + [row for index, row in enumerate(unknown) if choice >> index & 1]
        for order in permutations(chosen):
            if any(
                later.completed is not None and later.completed < earlier.invoked
                for place, earlier in enumerate(order)
                for later in order[place + 1 :]
            ):
                continue
            state: SubjectState | None = SubjectState()
            for row in order:
                state = follow_operation(state, row)
                if state is None:
                    break
            else:
                return True
    return False


@settings(max_examples=scale_examples(150))
@given(st.integers(0, 2**32))
def test_the_checker_agrees_with_trying_all_orders(seed: int) -> None:
    """Short histories, half of them with a changed answer, get the verdict of a search of all orders."""
    random = Random(seed)
    history = simulate_history(random, 6, clients=3, unknown=0.3)[:6]
    if random.random() < 0.5:
        place = random.randrange(len(history))
        other = random.choice([row.result for row in history if row.result is not None] or [SUBJECT_NOT_FOUND])
        if history[place].completed is not None:
            history[place] = history[place]._replace(result=other)
    is_linearizable = _verdict(*history) is Verdict.LINEARIZABLE
    assert is_linearizable == _is_explained(history)


@pytest.fixture(scope="module")
def http() -> Iterator[httpx.Client]:
    """Run a registry in this process and yield a client."""
    with registry() as box, httpx.Client(transport=box.transport, base_url=box.url) as client:
        yield client


_subjects = count()


@settings(max_examples=scale_examples(60))
@given(seed=st.integers(0, 2**32))
def test_the_model_answers_as_a_registry_does(http: httpx.Client, seed: int) -> None:
    """Random sequential requests about a subject get the answers of the model."""
    random, subject = Random(seed), f"s-{next(_subjects)}"
    state, ids = SubjectState(), {}
    for _ in range(40):
        action = random.choice([row for row in Action if ids or row is not Action.GET_BY_ID])
        operation = _operation(action, choose_argument(action, random, ids), 0, 0)._replace(subject=subject)
        answer = send_request(http, operation)
        state, expected = apply_operation(state, operation)
        assert (operation, answer.result) == (operation, expected)
        if answer.schema_id is not None and isinstance(answer.result.value, tuple):
            ids[answer.result.value[1]] = answer.schema_id
        ids = {text: known for text, known in ids.items() if any(row.text == text for row in state.versions)}


def test_a_run_that_fails_leaves_its_history(tmp_path: Path) -> None:
    """A failure names a file with every operation, and the check of this file finds the violation."""
    file = tmp_path / "kept" / "history.jsonl"
    operations = simulate_history(Random(3), 80, unknown=0.1)
    operations.append(_operation(Action.GET_BY_ID, (1, 0), 10**6, 10**6 + 1, Result(200, WRONG_BODY)))
    history = History()
    for operation in operations:
        history.add(operation)
    with pytest.raises(pytest.fail.Exception) as failure, keep_history_of_failure(history, file):
        pytest.fail("found")
    assert str(file) in failure.value.__notes__[0]
    assert read_history(file) == operations
    assert check_history.main(str(file)) > 0


def test_texts_are_told_apart() -> None:
    """A text is recognised by its number, and a text of another subject gives -1."""
    assert number_of_text("s-1", make_text("s-1", 5)) == 5
    assert number_of_text("s-1", make_text("s-2", 5)) == -1
