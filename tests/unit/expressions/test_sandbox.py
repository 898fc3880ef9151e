"""Untrusted expressions: each takes no more time and memory than allowed, and does not affect the next one."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import IntEnum, StrEnum
from pathlib import Path
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest

from stele.errors import DataError, TooLarge
from stele.expressions import sandbox, transport
from stele.expressions.questions import Answer, CelQuestion, JsonataQuestion, Question
from stele.expressions.sandbox import ExpressionLimits, Sandbox, evaluate_bounded

LIMITS = ExpressionLimits(seconds=0.5, memory=128 << 20)
WORKS = JsonataQuestion("a + 1", {"a": 1})

SHARED = "($a0 := 1; " + "".join(f"$a{n + 1} := {{'l': $a{n}, 'r': $a{n}}};" for n in range(40)) + "$a40)"
"""An object that contains each part twice: forty objects in memory, and 2^40 when it is serialized."""

ATTACKS: dict[str, Question] = {
    "backtracking": JsonataQuestion("$match(a, /^(?=a)(a+)+$/)", {"a": "a" * 40 + "!"}),
    "product of ranges": JsonataQuestion("[1..10000].[1..10000]", {}),
    "long padding": JsonataQuestion("$pad('a', 2000000000)", {}),
    "endless loop": JsonataQuestion("($f := function($x) { $f($x + 1) }; $f(1))", {}),
    "shared parts": JsonataQuestion(SHARED, {}),
    "doubled lists": CelQuestion("[[1]]" + ".map(x, [x, x])" * 40, {}),
    "doubled text": CelQuestion("['aaaaaaaa']" + ".map(x, x + x)" * 40, {}),
    "nested macros": CelQuestion("l.all(a, l.all(b, l.all(c, l.all(d, true))))", {"l": list(range(1000))}, True),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_attacks_end(attack: str) -> None:
    """An expression that needs too much time or memory raises `TooLarge` in time, and the next expression works."""
    evaluate_bounded(WORKS, ExpressionLimits(20))
    started = time.monotonic()
    with pytest.raises(TooLarge):
        evaluate_bounded(ATTACKS[attack], LIMITS)
    assert time.monotonic() - started < 60  # twice half a second and a new process, on a busy machine
    assert evaluate_bounded(WORKS, ExpressionLimits(20)) == Answer(True, 2)


def test_this_process_stays_small() -> None:
    """The memory of an expression is used in the worker process, not in this one."""
    code = """
from tests.support.memory import peak_memory
from stele.errors import SteleError
from stele.expressions.sandbox import ExpressionLimits, evaluate_bounded
from stele.expressions.questions import CelQuestion, JsonataQuestion
before = peak_memory()
for question in (
    JsonataQuestion("$pad('a', 2000000000)", {}), JsonataQuestion("[1..10000].[1..10000]", {}),
    JsonataQuestion("[1..3000000]", {}), CelQuestion("['aaaaaaaa']" + ".map(x, x + x)" * 40, {}),
):
    try:
        evaluate_bounded(question, ExpressionLimits(0.5, 128 << 20))
    except SteleError:
        pass
print(peak_memory() - before)
"""
    root = Path(__file__).parents[3]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root)
    assert int(done.stdout) < 200 << 20


class Colour(StrEnum):
    RED = "red"


class Size(IntEnum):
    BIG = 2


THING = object()
LOCAL = datetime(2026, 1, 2, 3)  # noqa: DTZ001 - of a local timestamp


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        ([True, 7, -(2**70), 0.5, "ü", b"\0", [], {}], [True, 7, -(2**70), 0.5, "ü", b"\0", [], {}]),
        (Decimal("1.50"), Decimal("1.50")),
        (UUID(int=5), UUID(int=5)),
        (date(2026, 1, 2), date(2026, 1, 2)),
        (timedelta(days=-1, microseconds=5), timedelta(days=-1, microseconds=5)),
        (LOCAL, LOCAL),
        (datetime(2026, 1, 2, 3, tzinfo=UTC), datetime(2026, 1, 2, 3, tzinfo=UTC)),
        (
            datetime(2026, 7, 2, 3, tzinfo=ZoneInfo("Europe/Berlin")),
            datetime(2026, 7, 2, 3, tzinfo=timezone(timedelta(hours=2))),
        ),
        ({"c": Colour.RED, "s": Size.BIG}, {"c": "red", "s": 2}),
        ({"thing": THING, "type": Colour}, {"thing": THING, "type": Colour}),
    ],
)
def test_values_pass(value: Any, expected: Any) -> None:
    """Values of records arrive unchanged. Unsupported values pass through and are returned."""
    answer = evaluate_bounded(JsonataQuestion("v", {"v": value}), ExpressionLimits()).value
    assert answer == expected
    assert type(answer) is type(expected)


def test_failures_are_told() -> None:
    """Errors of expressions, and values that cannot be sent, raise `DataError` with a message."""
    with pytest.raises(DataError, match="no"):
        evaluate_bounded(JsonataQuestion("$error('no')", {}), ExpressionLimits())
    with pytest.raises(DataError, match="which is not a CEL value"):
        evaluate_bounded(JsonataQuestion("$sum", {}), ExpressionLimits())
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(DataError):
        evaluate_bounded(JsonataQuestion("$", endless), ExpressionLimits())
    deep: Any = 1
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(DataError, match="nested too deeply"):
        evaluate_bounded(JsonataQuestion("$", deep), ExpressionLimits())


def test_answers_make_nothing_but_values() -> None:
    """An answer that would call a function is refused, and so is a truncated one."""
    packed = transport.pack_question(WORKS)
    for data in (b"cos\nsystem\n(S'true'\ntR.", b"cbuiltins\neval\n.", b"\x80\x05", b"", b"junk"):
        with pytest.raises(DataError):
            transport.unpack_answer(packed, data)


def test_a_process_that_dies_is_replaced() -> None:
    """After an idle process was killed, the next question is answered by a new one."""
    box = Sandbox(1)
    assert box.evaluate(WORKS, ExpressionLimits()).value == 2
    (waiting,) = box._idle
    waiting.kill()
    assert box.evaluate(WORKS, ExpressionLimits()).value == 2
    box.close()


def test_threads_do_not_mix_answers() -> None:
    """Many threads share few processes, and each gets its own answer."""
    wrong: list[Any] = []

    def ask(number: int) -> None:
        for step in range(10):
            answer = evaluate_bounded(
                JsonataQuestion("a & '-' & b", {"a": number, "b": step}), ExpressionLimits(20)
            ).value
            if answer != f"{number}-{step}":
                wrong.append(answer)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_fork_has_processes_of_its_own() -> None:
    """After a fork both processes evaluate, and neither reads the other's answers."""
    evaluate_bounded(WORKS, ExpressionLimits())
    child = os.fork()
    if not child:
        try:
            good = evaluate_bounded(JsonataQuestion("a", {"a": 5}), ExpressionLimits(20)).value == 5
            sandbox._SANDBOX.close()
            os._exit(0 if good else 1)
        finally:
            os._exit(2)  # an error must not continue the tests in the child
    assert os.waitpid(child, 0)[1] == 0
    assert evaluate_bounded(WORKS, ExpressionLimits()).value == 2
