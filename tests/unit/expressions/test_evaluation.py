"""Expressions evaluated in this process: steps are counted, loops end, and regexes are matched in linear time."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.time_limit import limit_time

from stele.expressions import cel, jsonata
from stele.expressions.evaluation import evaluate_question
from stele.expressions.questions import Answer, CelQuestion, JsonataQuestion


def test_steps_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The steps of nested macros are counted together."""
    monkeypatch.setattr(cel, "MAX_STEPS", 2000)
    nested = "l.all(a, l.all(b, l.all(c, a + b + c >= 0)))"
    with pytest.raises(Exception, match="more than 2000 steps"):
        evaluate_question(CelQuestion(nested, {"l": list(range(20))}))
    assert evaluate_question(CelQuestion(nested, {"l": [1, 2]}, is_condition=True)) == Answer(True, True)


def test_endless_loops_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop is stopped after the time limit, which starts again with each value."""
    monkeypatch.setattr(jsonata, "MAX_MILLISECONDS", 300)
    endless = jsonata.Expression("($f := function($x) { $f($x + 1) }; $f(1))")
    for _ in range(2):
        with pytest.raises(Exception, match=r"D1012|too long|time"):
            endless.evaluate({})
    monkeypatch.setattr(jsonata, "MAX_MILLISECONDS", 60_000)
    assert jsonata.Expression("a + 1").evaluate({"a": 1}) == 2


def test_a_pattern_that_multiplies_takes_no_time() -> None:
    """A pattern with 2^40 ways for a backtracking engine is refuted quickly."""
    with limit_time(1):
        question = JsonataQuestion("$match(a, /^(a+)+$/) or $contains(a, /^(a|aa)+$/)", {"a": "a" * 40 + "!"})
        assert evaluate_question(question).value is False


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("$match('ab12', /[a-z]+/).match", "ab"),
        ("$match('A1b2', /([a-z])([0-9])/i).groups", ["A", "1", "b", "2"]),
        ("$replace('John Smith', /(\\w+)\\s(\\w+)/, '$2, $1')", "Smith, John"),
        ("$replace('abc', /b/, function($m) { $uppercase($m.match) })", "aBc"),
        ("$split('a1b2c', /[0-9]/)", ["a", "b", "c"]),
        ("$contains('x\\ny', /^y/m)", True),
        ("$contains('xay', /x(?=a)/)", True),
        ("$contains('xx', /(x)\\1/)", True),
    ],
)
def test_patterns(expression: str, expected: Any) -> None:
    """Flags, groups, replacements and splits work; so do look-arounds and back references, which RE2 lacks."""
    assert evaluate_question(JsonataQuestion(expression, {})).value == expected
