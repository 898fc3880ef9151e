"""CESQL expressions as trees: the grammar, the parser, and the bounds that keep every evaluation short.

Source: docs/protocols/cncf.md#cesql
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import Any, Final, NamedTuple, TypeAlias

import lark

from stele.errors import InvalidRequest
from stele.service.cesql.functions import FUNCTIONS, accepts_arguments
from stele.service.cesql.values import GREATEST, SMALLEST, Value

LONGEST_EXPRESSION: Final = 8192
"""Maximum length of an expression, in characters."""
DEEPEST_EXPRESSION: Final = 150
"""Maximum number of levels of nested expressions. Each operator of a chain is one level."""
_KEPT: Final = 256
"""Maximum number of parsed expressions in the cache."""


class Literal(NamedTuple):
    """A literal value."""

    value: Value


class Attribute(NamedTuple):
    """The value of an attribute of the event."""

    name: str


class Exists(NamedTuple):
    """Whether the event has an attribute."""

    name: str


class Unary(NamedTuple):
    """`NOT x` or `-x`."""

    operator: str
    operand: Expression


class Binary(NamedTuple):
    """An operator between two expressions."""

    operator: str
    left: Expression
    right: Expression


class Like(NamedTuple):
    """Whether a text matches a pattern, in which `%` is any text and `_` one character."""

    operand: Expression
    pattern: str
    is_negated: bool


class In(NamedTuple):
    """Whether a value equals one of several."""

    operand: Expression
    items: tuple[Expression, ...]
    is_negated: bool


class Call(NamedTuple):
    """A function with its arguments."""

    name: str
    arguments: tuple[Expression, ...]


Expression: TypeAlias = Literal | Attribute | Exists | Unary | Binary | Like | In | Call

_GRAMMAR: Final = r"""
    ?start: logic
    ?logic: comparison | logic (AND | OR | XOR) comparison -> binary
    ?comparison: sum | comparison COMPARISON sum -> binary
    ?sum: product | sum (PLUS | MINUS) product -> binary
    ?product: postfix | product (STAR | SLASH | PERCENT) postfix -> binary
    ?postfix: prefix
        | postfix LIKE STRING -> like
        | postfix NOT LIKE STRING -> not_like
        | postfix IN "(" logic ("," logic)* ")" -> in_set
        | postfix NOT IN "(" logic ("," logic)* ")" -> not_in_set
    ?prefix: atom
        | (NOT | MINUS) prefix -> unary
        | PLUS INTEGER -> positive
        | EXISTS NAME -> exists
    ?atom: "(" logic ")"
        | NAME "(" (logic ("," logic)*)? ")" -> call
        | NAME -> attribute
        | INTEGER -> integer
        | STRING -> string
        | TRUE -> true
        | FALSE -> false

    AND: "AND"i
    OR: "OR"i
    XOR: "XOR"i
    NOT: "NOT"i
    LIKE: "LIKE"i
    IN: "IN"i
    EXISTS: "EXISTS"i
    TRUE: "TRUE"i
    FALSE: "FALSE"i
    COMPARISON: "<=" | ">=" | "<>" | "!=" | "=" | "<" | ">"
    PLUS: "+"
    MINUS: "-"
    STAR: "*"
    SLASH: "/"
    PERCENT: "%"
    INTEGER.1: /[0-9]+(?![a-zA-Z0-9_])/
    NAME: /[a-z0-9_]+/i
    STRING: /'(?:\\[\s\S]|[^'\\])*'|"(?:\\[\s\S]|[^"\\])*"/
    %ignore /[ \t\r\n]+/
"""

_ATTRIBUTE_NAME: Final = re.compile(r"[a-z0-9]+")
_MOST_DIGITS: Final = 10
_PRINTED: Final = 40
"""Characters of a wrong part that a message repeats."""


class _Builder(lark.Transformer[Any, Expression]):
    """Builds expressions from the parser's rules, the innermost first."""

    def binary(self, parts: list[Any]) -> Expression:
        left, operator, right = parts
        name = operator.upper()
        return Binary("!=" if name == "<>" else name, left, right)

    def like(self, parts: list[Any]) -> Expression:
        return Like(parts[0], _read_string(parts[-1]), False)

    def not_like(self, parts: list[Any]) -> Expression:
        return Like(parts[0], _read_string(parts[-1]), True)

    def in_set(self, parts: list[Any]) -> Expression:
        return In(parts[0], tuple(parts[2:]), False)

    def not_in_set(self, parts: list[Any]) -> Expression:
        return In(parts[0], tuple(parts[3:]), True)

    def unary(self, parts: list[Any]) -> Expression:
        operator, operand = parts
        if operator == "-" and isinstance(operand, Literal) and type(operand.value) is int:
            return Literal(-operand.value)
        return Unary(operator.upper(), operand)

    def exists(self, parts: list[Any]) -> Expression:
        return Exists(_check_attribute(parts[1]))

    def call(self, parts: list[Any]) -> Expression:
        name = parts[0].upper()
        if name not in FUNCTIONS:
            raise InvalidRequest(f"not CESQL: there is no function {name[:_PRINTED]}; there are {', '.join(FUNCTIONS)}")
        if not accepts_arguments(name, len(parts) - 1):
            raise InvalidRequest(f"not CESQL: {name} does not take {len(parts) - 1} arguments")
        return Call(name, tuple(parts[1:]))

    def attribute(self, parts: list[Any]) -> Expression:
        return Attribute(_check_attribute(parts[0]))

    def integer(self, parts: list[Any]) -> Expression:
        return _read_integer(parts[0])

    def positive(self, parts: list[Any]) -> Expression:
        return _read_integer(parts[1])

    def string(self, parts: list[Any]) -> Expression:
        return Literal(_read_string(parts[0]))

    def true(self, parts: list[Any]) -> Expression:
        return Literal(True)

    def false(self, parts: list[Any]) -> Expression:
        return Literal(False)


@lru_cache(_KEPT)
def parse_expression(text: str) -> Expression:
    """Return the tree of an expression.

    Raises:
        InvalidRequest: It is not CESQL, names an unknown function, or is too long or too deep.
    """
    if len(text) > LONGEST_EXPRESSION:
        raise InvalidRequest(f"an expression of CESQL may have at most {LONGEST_EXPRESSION} characters")
    try:
        tree: Expression = _make_parser().parse(text)  # type: ignore[assignment]  # the builder makes expressions
    except lark.exceptions.VisitError as error:
        raise error.orig_exc from None
    except lark.exceptions.UnexpectedEOF:
        raise InvalidRequest("not CESQL: the expression ends too early") from None
    except lark.exceptions.UnexpectedInput as error:
        raise InvalidRequest(_explain_place(text, error)) from None
    _check_bounds(tree)
    return tree


def _explain_place(text: str, error: lark.exceptions.UnexpectedInput) -> str:
    place = error.pos_in_stream
    if isinstance(error, lark.exceptions.UnexpectedToken) and error.token.type == "$END":
        return "not CESQL: the expression ends too early"
    part = text[place : (place or 0) + _PRINTED]
    return f"not CESQL: line {error.line}, column {error.column}, at {part!r}"


@cache
def _make_parser() -> lark.Lark:
    return lark.Lark(_GRAMMAR, parser="lalr", transformer=_Builder())


def _check_attribute(name: str) -> str:
    if not _ATTRIBUTE_NAME.fullmatch(name):
        raise InvalidRequest(
            f"not CESQL: an attribute may have only lower-case letters and digits: {name[:_PRINTED]!r}"
        )
    return str(name)


def _read_string(token: str) -> str:
    """Return the text between quotes. A backslash is kept, except before a quote of the same kind."""
    quote = token[0]
    return re.sub(r"\\([\s\S])", lambda match: quote if match[1] == quote else match[0], token[1:-1])


def _read_integer(token: str) -> Literal:
    """Return a number. It may be too great by one, because a minus sign may stand before it."""
    digits = token.lstrip("0") or "0"
    if len(digits) > _MOST_DIGITS:
        raise InvalidRequest(f"not CESQL: {digits[:_PRINTED]} is not an integer of 32 bits")
    return Literal(int(digits))


def _check_bounds(tree: Expression) -> None:
    """Raise `InvalidRequest` for a tree that is too deep, and for numbers that do not fit in 32 bits."""
    pending = [(tree, 1)]
    while pending:
        node, depth = pending.pop()
        if depth > DEEPEST_EXPRESSION:
            raise InvalidRequest(f"an expression of CESQL may have at most {DEEPEST_EXPRESSION} levels")
        if isinstance(node, Literal) and type(node.value) is int and not SMALLEST <= node.value <= GREATEST:
            raise InvalidRequest(f"not CESQL: {node.value} is not an integer of 32 bits")
        pending += [(inner, depth + 1) for inner in list_parts(node)]


def list_parts(node: Expression) -> tuple[Expression, ...]:
    """Return the expressions directly within one."""
    match node:
        case Unary(_, operand) | Like(operand, _, _):
            return (operand,)
        case Binary(_, left, right):
            return (left, right)
        case In(operand, items, _):
            return (operand, *items)
        case Call(_, arguments):
            return arguments
        case _:
            return ()
