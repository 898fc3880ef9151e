"""CESQL: results of expressions, refusal of invalid texts, and bounded run time."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.time_limit import limit_time

from stele.errors import InvalidRequest
from stele.service.cesql.evaluation import evaluate
from stele.service.cesql.functions import FUNCTIONS
from stele.service.cesql.syntax import (
    DEEPEST_EXPRESSION,
    LONGEST_EXPRESSION,
    Attribute,
    Binary,
    Call,
    Exists,
    Expression,
    In,
    Like,
    Literal,
    Unary,
    list_parts,
    parse_expression,
)
from stele.service.filters import check_filters, passes_filters

EVENT = {
    "id": "41-0",
    "source": "https://registry.example.org",
    "type": "io.cloudevents.schemaregistry.updated.v1",
    "subject": "/schemagroups/default/schemas/orders/versions/3",
    "mybool": True,
    "myint": 10,
    "hop": "5",
    "ttl": "6",
}

CASES = [
    # literals and attributes
    ("TRUE", True, ""),
    ("faLse", False, ""),
    ("0", 0, ""),
    ("+7", 7, ""),
    ("-2147483648", -2147483648, ""),
    ("'aBc'", "aBc", ""),
    ('"aBc"', "aBc", ""),
    (r"""'a"b\'c'""", "a\"b'c", ""),
    (r'''"a'b\"c"''', "a'b\"c", ""),
    (r"'a\b'", r"a\b", ""),
    ("id", "41-0", ""),
    ("myint", 10, ""),
    ("mybool", True, ""),
    ("missing", False, "missingAttribute"),
    # unary
    ("-10", -10, ""),
    ("--10", 10, ""),
    ("-'10'", -10, ""),
    ("--'10'", 10, ""),
    ("-TRUE", -1, ""),
    ("-missing", 0, "missingAttribute"),
    ("-(-2147483647 - 1)", 2147483647, "math"),
    ("NOT TRUE", False, ""),
    ("NOT 'false'", True, ""),
    ("NOT 10", False, ""),
    ("NOT 0", True, ""),
    ("NOT 'word'", False, "cast"),
    ("NOT missing", False, "missingAttribute"),
    # arithmetic
    ("4 * 2 + 4 / 2", 10, ""),
    ("4 * (2 + 4) / 2", 12, ""),
    ("10 - 4 - 3", 3, ""),
    ("4-1", 3, ""),
    ("4 + -1", 3, ""),
    ("5 / 3", 1, ""),
    ("-5 / 3", -1, ""),
    ("5 % 2", 1, ""),
    ("-5 % 3", -2, ""),
    ("5 % -3", 2, ""),
    ("5 / 0", 0, "math"),
    ("5 % 0", 0, "math"),
    ("missing / 0", 0, "missingAttribute"),
    ("2147483647 + 1", -2147483648, "math"),
    ("'5' + '3'", 8, ""),
    ("5 + TRUE", 6, ""),
    ("5 + 'x'", 0, "cast"),
    ("5 + '4294967296'", 0, "cast"),
    # comparison
    ("TRUE = FALSE", False, ""),
    ("2 = 2", True, ""),
    ("'abc' = 'ABC'", False, ""),
    ("1 != 2", True, ""),
    ("1 <> 1", False, ""),
    ("'TRUE' = true", True, ""),
    ("true = 'TRUE'", False, ""),
    ("hop = 5", True, ""),
    ("'x' = 5", False, "cast"),
    ("missing = 2", False, "missingAttribute"),
    ("missing != 2", False, "missingAttribute"),
    ("hop < ttl", True, ""),
    ("2 <= 2", True, ""),
    ("3 <= 2", False, ""),
    ("'10' > '9'", True, ""),
    ("2 >= 3", False, ""),
    ("missing <= 2", False, "missingAttribute"),
    # logic
    ("TRUE AND FALSE", False, ""),
    ("FALSE OR TRUE", True, ""),
    ("TRUE XOR TRUE", False, ""),
    ("TRUE XOR FALSE", True, ""),
    ("'true' AND 1", True, ""),
    ("false AND (1 != 1 / 0)", False, ""),
    ("true AND (1 != 1 / 0)", False, "math"),
    ("true OR (1 != 1 / 0)", True, ""),
    ("false OR (1 != 1 / 0)", False, "math"),
    ("false AND missing", False, ""),
    ("TRUE OR FALSE AND FALSE", False, ""),  # operators of one level, from left to right
    ("NOT TRUE = FALSE", True, ""),  # NOT binds more tightly than a comparison
    # LIKE
    ("'abc' LIKE 'a%b%c'", True, ""),
    ("'azzzbzzzc' LIKE 'a%b%c'", True, ""),
    ("'ac' LIKE 'abc'", False, ""),
    ("'' LIKE '%'", True, ""),
    ("'.ab.cde.' LIKE '.%.%.'", True, ""),
    ("'ab.cde' LIKE '.%.%.'", False, ""),
    ("'azbzc' LIKE 'a_b_c'", True, ""),
    ("'abc' LIKE 'a_b_c'", False, ""),
    (r"'a_b' LIKE 'a\_b'", True, ""),
    (r"'azb' LIKE 'a\_b'", False, ""),
    (r"'a%b' LIKE 'a\%b'", True, ""),
    (r"'ab\c' LIKE 'ab\c'", True, ""),
    ("'a*b' LIKE 'a*b'", True, ""),
    ("'azb' LIKE 'a*b'", False, ""),
    ("'abc' NOT LIKE 'abc'", False, ""),
    ("2344 LIKE '23%'", True, ""),
    ("TRUE LIKE 'tr%'", True, ""),
    ("missing LIKE '%'", False, "missingAttribute"),
    ("missing NOT LIKE 'a'", False, "missingAttribute"),
    ("subject LIKE '%/orders/%' AND type LIKE '%.updated.v1'", True, ""),
    # EXISTS and IN
    ("EXISTS subject", True, ""),
    ("EXISTS missing", False, ""),
    ("NOT EXISTS missing", True, ""),
    ("EXISTS missing AND missing = 'x'", False, ""),
    ("123 IN (1, 2, 123)", True, ""),
    ("123 NOT IN (1, 2, 123)", False, ""),
    ("id IN ('a', '41-0')", True, ""),
    ("'123' IN (123)", True, ""),
    ("1 IN ('x', 1)", False, "cast"),
    ("missing IN ('a')", False, "missingAttribute"),
    # functions
    ("INT('-1')", -1, ""),
    ("INT(TRUE)", 1, ""),
    ("INT('ABC')", 0, "cast"),
    ("BOOL('TRUE')", True, ""),
    ("BOOL(-50)", True, ""),
    ("BOOL('ABC')", False, "cast"),
    ("STRING(FALSE)", "false", ""),
    ("STRING(-1)", "-1", ""),
    ("IS_INT('12')", True, ""),
    ("IS_INT('ab')", False, ""),
    ("IS_BOOL('false')", True, ""),
    ("IS_BOOL('ab')", False, ""),
    ("ABS(-10)", 10, ""),
    ("ABS(-2147483648)", 2147483647, "math"),
    ("LENGTH('abc')", 3, ""),
    ("LENGTH(TRUE)", 4, ""),
    ("LENGTH(missing)", 0, "missingAttribute"),
    ("CONCAT()", "", ""),
    ("CONCAT('a', 1, TRUE)", "a1true", ""),
    ("CONCAT_WS(',', 'a', 'b')", "a,b", ""),
    ("CONCAT_WS(',')", "", ""),
    ("lower('AbC')", "abc", ""),
    ("Upper('AbC')", "ABC", ""),
    ("TRIM('  a b ')", "a b", ""),
    ("LEFT('abc', 2)", "ab", ""),
    ("LEFT('abc', 10)", "abc", ""),
    ("LEFT('abc', -2)", "abc", "functionEvaluation"),
    ("RIGHT('abc', 2)", "bc", ""),
    ("RIGHT('abc', 0)", "", ""),
    ("RIGHT('abc', 10)", "abc", ""),
    ("RIGHT('abc', -2)", "abc", "functionEvaluation"),
    ("SUBSTRING('abcdef', 2)", "bcdef", ""),
    ("SUBSTRING('Sakila', -3)", "ila", ""),
    ("SUBSTRING('Sakila', -5, 3)", "aki", ""),
    ("SUBSTRING('abcdef', 2, 100)", "bcdef", ""),
    ("SUBSTRING('abcdef', 0, 1)", "", ""),
    ("SUBSTRING('abcdef', 10)", "", "functionEvaluation"),
    ("SUBSTRING('abcdef', -10, 10)", "", "functionEvaluation"),
    ("SUBSTRING('abcdef', 1, -1)", "", "functionEvaluation"),
    ("LENGTH(hop + 10)", 2, ""),
]


@pytest.mark.parametrize(("text", "value", "error"), CASES, ids=[case[0] for case in CASES])
def test_evaluates_expressions(text: str, value: Any, error: str) -> None:
    """An expression has the expected value, type and first error."""
    outcome = evaluate(parse_expression(text), EVENT)
    assert (outcome.value, type(outcome.value), outcome.error or "") == (value, type(value), error)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "1 +",
        "(1",
        "1)",
        "'open",
        "a b",
        "a ! b",
        "Abc = 1",
        "a_b = 1",
        "unknown(1)",
        "LEFT('a')",
        "CONCAT_WS()",
        "LENGTH('a', 'b')",
        "2147483648",
        "-2147483649",
        "1" * 5000,
        "a LIKE b",
        "a IN ()",
        "EXISTS 'a'",
        "EXISTS LEFT('a', 1)",
        "NOT",
        "1 OR " * DEEPEST_EXPRESSION + "1",
        "-" * 1000 + "a",
        "'" + "x" * LONGEST_EXPRESSION + "'",
        "\x00",
    ],
)
def test_refuses_what_is_no_expression(text: str) -> None:
    """A text that is not CESQL, or exceeds a limit, is refused when it is parsed."""
    with pytest.raises(InvalidRequest):
        parse_expression(text)


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ("subject LIKE '%orders%'", True),
        ("subject LIKE '%invoices%'", False),
        ("1", False),
        ("'true'", False),
        ("missing = 'x' OR TRUE", False),
        ("NOT (1 / 0 = 1)", False),
    ],
)
def test_only_a_plain_true_passes_a_filter(text: str, passes: bool) -> None:
    """An event passes a filter whose expression is the boolean true without an error, and no other."""
    filters = [{"sql": text}]
    check_filters(filters)
    assert passes_filters(EVENT, filters) is passes


def test_checks_expressions_deep_in_filters() -> None:
    """An invalid expression is found at any depth of the filters."""
    for value in ("1 +", "", 7, None):
        with pytest.raises(InvalidRequest):
            check_filters([{"all": [{"not": {"sql": value}}]}])


def test_patterns_take_little_time() -> None:
    """A pattern with many wildcards is matched against a long text without backtracking."""
    pattern, text = "a%" * 3000 + "b", "a" * 8000
    with limit_time(2):
        tree = parse_expression(f"subject LIKE '{pattern}'")
        assert evaluate(tree, {"subject": text}).value is False


# --- parsing what was printed ---------------------------------------------------------------------------------------

_TEXTS = st.lists(st.one_of(st.sampled_from(["a", " ", "%", "_", "é", "\n", r"\%", r"\_", r"\\"])), max_size=6).map(
    "".join
)
_LITERALS = st.one_of(st.booleans(), st.integers(-(2**31), 2**31 - 1), _TEXTS, st.just("it's"), st.just('"')).map(
    Literal
)
_NAMES = st.from_regex(r"[a-z][a-z0-9]{0,5}", fullmatch=True).filter(
    lambda name: name not in {"and", "or", "xor", "not", "like", "in", "exists", "true", "false"}
)


def _make_calls(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    def call(name: str) -> st.SearchStrategy[Expression]:
        function = FUNCTIONS[name]
        most = len(function.parameters) + (3 if function.rest is not None else 0)
        least = len(function.parameters) - function.optional
        return st.lists(inner, min_size=least, max_size=most).map(lambda parts: Call(name, tuple(parts)))

    return st.sampled_from(sorted(FUNCTIONS)).flatmap(call)


def _extend(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    operators = ["=", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "AND", "OR", "XOR"]
    not_numbers = inner.filter(lambda node: not (isinstance(node, Literal) and type(node.value) is int))
    return st.one_of(
        st.builds(Binary, st.sampled_from(operators), inner, inner),
        st.builds(Unary, st.just("NOT"), inner),
        st.builds(Unary, st.just("-"), not_numbers),
        st.builds(Like, inner, _TEXTS, st.booleans()),
        st.builds(In, inner, st.lists(inner, min_size=1, max_size=3).map(tuple), st.booleans()),
        _make_calls(inner),
    )


EXPRESSIONS = st.recursive(st.one_of(_LITERALS, _NAMES.map(Attribute), _NAMES.map(Exists)), _extend, max_leaves=12)


def _print_text(text: str) -> str:
    return f'"{text}"' if "'" in text else f"'{text}'"


def print_expression(node: Expression) -> str:
    """Return an expression as text, every part in brackets."""
    match node:
        case Literal(value):
            return _print_text(value) if isinstance(value, str) else str(value)
        case Attribute(name):
            return name
        case Exists(name):
            return f"(EXISTS {name})"
        case Unary(name, operand):
            return f"({name} {print_expression(operand)})"
        case Binary(name, left, right):
            return f"({print_expression(left)} {name} {print_expression(right)})"
        case Like(operand, pattern, is_negated):
            return f"({print_expression(operand)} {'not ' * is_negated}like {_print_text(pattern)})"
        case In(operand, items, is_negated):
            printed = ", ".join(map(print_expression, items))
            return f"({print_expression(operand)} {'NOT ' * is_negated}IN ({printed}))"
        case Call(name, arguments):
            return f"{name}({', '.join(map(print_expression, arguments))})"


@given(EXPRESSIONS)
def test_parses_what_was_printed(tree: Expression) -> None:
    """Parsing a printed expression gives the same tree."""
    assert parse_expression(print_expression(tree)) == tree


@given(EXPRESSIONS)
def test_every_expression_has_a_value_of_its_type(tree: Expression) -> None:
    """The value of any expression, and of its parts, is a boolean, an integer of 32 bits or a text."""
    value = evaluate(tree, EVENT).value
    assert type(value) in {bool, int, str}
    assert type(value) is not int or -(2**31) <= value < 2**31
    for part in list_parts(tree):
        evaluate(part, EVENT)


@given(st.text(alphabet="ab1'\"\\()=<>!+-*/%, \nANDORNOTLIKEINtrue_", max_size=40))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    """Any text is either parsed or refused with `InvalidRequest`."""
    with suppress(InvalidRequest):
        evaluate(parse_expression(text), EVENT)
