r"""From text to tokens, in one pass of one expression without backtracking.

Numbers, names and texts follow the lexer of the Apache compiler (`thriftl.ll`): `//`, `#` and `/* */` are comments,
`/** */` is documentation, a text ends in its line and knows the escapes `\\r \\n \\t \\" \\' \\\\`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from enum import Enum
from textwrap import dedent
from typing import Final, NamedTuple

from stele.errors import MalformedSchema


class TokenKind(Enum):
    """What a token is."""

    NAME = "a name"
    INTEGER = "an integer"
    DOUBLE = "a number"
    TEXT = "a quoted text"
    SYMBOL = "a symbol"
    END = "the end of the document"


class ThriftToken(NamedTuple):
    """One token: text is the name, the symbol, the number as written or the content of a quoted text."""

    kind: TokenKind
    text: str
    at: int
    doc: str = ""


_TOKEN: Final = re.compile(
    r"""(?P<space>[ \t\r\n]++|//[^\n]*+|\#[^\n]*+)
      | (?P<comment>/\*)
      | (?P<name>[A-Za-z_][A-Za-z_0-9]*+(?:\.[A-Za-z_0-9]++)*+)
      | (?P<hex>[+-]?0x[0-9A-Fa-f]++)
      | (?P<double>[+-]?(?:[0-9]*+\.[0-9]++(?:[eE][+-]?[0-9]++)?|[0-9]++[eE][+-]?[0-9]++))
      | (?P<integer>[+-]?[0-9]++)
      | (?P<text>"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"|'[^'\\\n]*+(?:\\.[^'\\\n]*+)*+')
      | (?P<symbol>[:;,{}()=<>\[\]*&])
    """,
    re.VERBOSE,
)
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES: Final = {"r": "\r", "n": "\n", "t": "\t", '"': '"', "'": "'", "\\": "\\"}
_KINDS: Final = {
    "name": TokenKind.NAME,
    "hex": TokenKind.INTEGER,
    "integer": TokenKind.INTEGER,
    "double": TokenKind.DOUBLE,
    "symbol": TokenKind.SYMBOL,
}


def position_of(text: str, at: int) -> tuple[int, int]:
    """(line, column) of an offset, both from 1."""
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)


def make_fault(text: str, at: int, why: str, expected: str | None = None) -> MalformedSchema:
    """Return an error at an offset."""
    line, column = position_of(text, at)
    return MalformedSchema(why, line=line, column=column, expected=expected)


def tokenize(text: str) -> Iterator[ThriftToken]:
    """Yield the tokens one by one, the last one of kind END; a text that is wrong early is not read to its end.

    A documentation comment belongs to the token right after it.

    Raises `MalformedSchema` for what is no token.
    """
    at, doc, match = 0, "", _TOKEN.match
    while at < len(text):
        hit = match(text, at)
        if hit is None:
            raise _unexpected_character(text, at)
        name, end = hit.lastgroup or "", hit.end()
        if name == "comment":
            end = _find_comment_end(text, at)
            if text.startswith("/**", at):
                doc = clean_comment(text[at:end]) or doc
        elif name == "text":
            yield ThriftToken(TokenKind.TEXT, _unescape_text(text, at, hit.group()[1:-1]), at, doc)
            doc = ""
        elif name != "space":
            yield ThriftToken(_KINDS[name], hit.group(), at, doc)
            doc = ""
        at = end
    yield ThriftToken(TokenKind.END, "", len(text), doc)


def _find_comment_end(text: str, at: int) -> int:
    end = text.find("*/", at + 2)
    if end < 0:
        raise make_fault(text, at, "the comment never ends", "*/")
    return end + 2


def _unescape_text(text: str, at: int, inside: str) -> str:
    """Return the content of a quoted text."""
    if "\0" in inside:
        raise make_fault(text, at, "a quoted text cannot hold the character 0")
    if "\\" not in inside:
        return inside

    def plain(escape: re.Match[str]) -> str:
        found = _ESCAPES.get(escape.group(1))
        if found is None:
            raise make_fault(
                text, at + 1 + escape.start(), f"unknown escape {escape.group()!r}", r"\r \n \t \" \' or \\"
            )
        return found

    return _ESCAPE.sub(plain, inside)


def _unexpected_character(text: str, at: int) -> MalformedSchema:
    character = text[at]
    if character in {'"', "'"}:
        return make_fault(text, at, "the quoted text does not end in its line", f"a closing {character}")
    if character == "\ufeff":
        return make_fault(text, at, "there is a byte order mark", "plain UTF-8")
    return make_fault(text, at, f"unexpected character {character!r}")


# --- numbers ----------------------------------------------------------------------------------------------------------


I8: Final = range(-(2**7), 2**7)
I16: Final = range(-(2**15), 2**15)
I32: Final = range(-(2**31), 2**31)
I64: Final = range(-(2**63), 2**63)

_LONGEST_DOUBLE: Final = 400
"""Characters of a double that are looked at."""


def parse_integer(text: str, token: ThriftToken) -> int:
    """Return the integer of a token of the document text, decimal or hexadecimal.

    Raises `MalformedSchema` beyond 64 bits.
    """
    body = token.text.lstrip("+-")
    base = 16 if body.startswith("0x") else 10
    digits = body.removeprefix("0x").lstrip("0") or "0"
    if len(digits) <= len(str(2**63)):
        value = int(digits, base) * (-1 if token.text[0] == "-" else 1)
        if value in I64:
            return value
    raise make_fault(text, token.at, "the integer is too big", "a number of 64 bits")


def parse_double(text: str, token: ThriftToken) -> float:
    """Return the double of a token of the document text. Raises `MalformedSchema` beyond what a double holds."""
    value = float(token.text) if len(token.text) <= _LONGEST_DOUBLE else math.inf
    if math.isinf(value):
        raise make_fault(text, token.at, "the number is too big or too long", "a double")
    return value


# --- documentation comments -------------------------------------------------------------------------------------------


def clean_comment(comment: str) -> str:
    """Return the words of a `/** … */` comment: no stars, no common indentation, no blank lines around."""
    inside = comment.replace("\r\n", "\n").replace("\r", "\n")[3:-2].strip("*")
    first, *rest = inside.split("\n")
    if rest and all(line.lstrip(" \t").startswith("*") for line in rest if line.strip(" \t")):
        rest = [line.lstrip(" \t").removeprefix("*").removeprefix(" ") for line in rest]
    else:
        rest = dedent("\n".join(rest)).split("\n")
    lines = [first.strip(" \t"), *(line.rstrip(" \t") for line in rest)]
    while lines and not lines[0]:
        del lines[0]
    while lines and not lines[-1]:
        del lines[-1]
    return "\n".join(lines)


def format_comment(doc: str, indent: str) -> list[str]:
    """Return the lines of a documentation comment; none for an empty text."""
    if not doc:
        return []
    lines = doc.split("\n")
    if len(lines) == 1 and doc == doc.strip(" \t*"):
        return [f"{indent}/** {doc} */"]
    return [f"{indent}/**", *(f"{indent} * {line}".rstrip(" \t") for line in lines), f"{indent} */"]
