"""From text to tokens, in one pass of one expression without backtracking.

Numbers, names and texts follow the lexer of the Apache compiler (`thriftl.ll`): `//`, `#` and `/* */` are comments,
`/** */` is documentation, a text ends in its line and knows the escapes `\\r \\n \\t \\" \\' \\\\`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from typing import Final, NamedTuple

from stele.errors import MalformedSchema
from stele.formats.thrift.docs import clean


class Kind(Enum):
    """What a token is."""

    NAME = "a name"
    INTEGER = "an integer"
    DOUBLE = "a number"
    TEXT = "a quoted text"
    SYMBOL = "a symbol"
    END = "the end of the document"


class Token(NamedTuple):
    """One token: text is the name, the symbol, the number as written or the content of a quoted text."""

    kind: Kind
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
    "name": Kind.NAME,
    "hex": Kind.INTEGER,
    "integer": Kind.INTEGER,
    "double": Kind.DOUBLE,
    "symbol": Kind.SYMBOL,
}


def place(text: str, at: int) -> tuple[int, int]:
    """(line, column) of an offset, both from 1."""
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)


def fault(text: str, at: int, why: str, expected: str | None = None) -> MalformedSchema:
    """An error at an offset."""
    line, column = place(text, at)
    return MalformedSchema(why, line=line, column=column, expected=expected)


def tokens(text: str) -> Iterator[Token]:
    """All tokens, the last one of kind END, as they are asked for: a text that is wrong early is not read to its end.

    A documentation comment belongs to the token right after it.

    Raises `MalformedSchema` for what is no token.
    """
    at, doc, match = 0, "", _TOKEN.match
    while at < len(text):
        hit = match(text, at)
        if hit is None:
            raise _no_token(text, at)
        name, end = hit.lastgroup or "", hit.end()
        if name == "comment":
            end = _end_of_comment(text, at)
            if text.startswith("/**", at):
                doc = clean(text[at:end]) or doc
        elif name == "text":
            yield Token(Kind.TEXT, _content(text, at, hit.group()[1:-1]), at, doc)
            doc = ""
        elif name != "space":
            yield Token(_KINDS[name], hit.group(), at, doc)
            doc = ""
        at = end
    yield Token(Kind.END, "", len(text), doc)


def _end_of_comment(text: str, at: int) -> int:
    end = text.find("*/", at + 2)
    if end < 0:
        raise fault(text, at, "the comment never ends", "*/")
    return end + 2


def _content(text: str, at: int, inside: str) -> str:
    """The content of a quoted text."""
    if "\0" in inside:
        raise fault(text, at, "a quoted text cannot hold the character 0")
    if "\\" not in inside:
        return inside

    def plain(escape: re.Match[str]) -> str:
        found = _ESCAPES.get(escape.group(1))
        if found is None:
            raise fault(text, at + 1 + escape.start(), f"unknown escape {escape.group()!r}", r"\r \n \t \" \' or \\")
        return found

    return _ESCAPE.sub(plain, inside)


def _no_token(text: str, at: int) -> MalformedSchema:
    character = text[at]
    if character in {'"', "'"}:
        return fault(text, at, "the quoted text does not end in its line", f"a closing {character}")
    if character == "\ufeff":
        return fault(text, at, "there is a byte order mark", "plain UTF-8")
    return fault(text, at, f"unexpected character {character!r}")
