"""Turns the messages of the compiler into one error with a position. No other module reads them."""

from __future__ import annotations

import re
from typing import NamedTuple

from stele.errors import MalformedSchema, UnresolvedReference
from stele.formats.json_reader import line_and_column

_PLACED = re.compile(r"(?P<file>.*?):(?P<line>\d+):(?P<column>\d+): (?P<text>.*)")
_MISSING = re.compile(r"(?P<file>.+): File not found\.")
_IMPORT = re.compile(r'Import "(?P<file>.*)" was not found or had errors\.')
_NOISE = re.compile(r"WARNING: All log messages before|[IW]\d{4} [\d:.]+ +\d+ |.*: warning: ")


_EXPECTED = (
    (re.compile(r"\" is not defined"), "the name of a type of this file, its package or its imports"),
    (re.compile(r"\" is already defined"), "another name"),
    (re.compile(r"has already been used in"), "a number no other field has"),
    (re.compile(r"must be positive integers|Field numbers cannot be greater"), "a number between 1 and 536870911"),
    (re.compile(r"Missing field number"), "= and a number"),
    (re.compile(r"first enum value must be zero"), "a value 0 that comes first"),
    (re.compile(r"Required fields are not allowed"), "optional, repeated or no label"),
    (re.compile(r"Explicit default values are not allowed"), "no default, or an older syntax"),
    (re.compile(r"Key in map fields cannot be"), "an integer, bool or string as key"),
    (re.compile(r"^(Field )?(number|name).* is reserved"), "one that is not reserved"),
    (re.compile(r"Unknown edition"), "an edition such as 2023"),
    (re.compile(r"Interpreting non ascii codepoint"), "UTF-8, with letters beyond ASCII in texts and comments only"),
    (re.compile(r"Integer out of range"), "a number of fewer digits"),
    (re.compile(r"^Option .* unknown"), "an option of descriptor.proto, or of an import"),
    (re.compile(r"Multiline strings are not allowed"), "a closing quote on the same line"),
    (re.compile(r"End-of-file inside block comment"), "*/"),
    (re.compile(r"numbers 19000 through 19999"), "a number below 19000 or above 19999"),
)


class _Diagnostic(NamedTuple):
    file: str
    line: int | None
    column: int | None
    text: str


def error_from_messages(messages: str, main: str, text: bytes = b"") -> MalformedSchema:
    """Return the first error among the compiler's messages, for a document whose own import path is main.

    Where the compiler names no place, text is searched for it.
    """
    lines = [line for line in messages.splitlines() if line and not _NOISE.match(line)]
    found = [_parse_line(line) for line in lines]
    missing = [match["file"] for line in lines if (match := _MISSING.fullmatch(line)) and match["file"] != main]
    if missing:
        return _unresolved_import(missing[0], found, main)
    if not found:
        return MalformedSchema("the Protobuf compiler refused the text without saying why")
    # An error inside an imported file makes the import fail as well: the first is the one to read.
    first = next((message for message in found if not _IMPORT.fullmatch(message.text)), found[0])
    more = len(found) - 1
    why = first.text.rstrip(".") + (f" (and {more} more)" if more else "")
    if first.file not in {main, ""}:
        why = f"in the imported file {first.file!r}: {why}"
    why = why.removeprefix(f"{main}: ")
    line, column = (first.line, first.column) if first.line is not None else _guess_position(why, text)
    return MalformedSchema(why, line=line, column=column, expected=_expected_hint(first.text))


def _guess_position(why: str, text: bytes) -> tuple[int, int] | tuple[None, None]:
    """Return line and column of what a message without a place is about, where that can be guessed."""
    about: re.Match[bytes] | None = None
    if "numbers 19000 through 19999" in why:
        about = re.search(rb"(?<==)\s*(?P<it>19\d{3})\b", text)
    elif named := re.search(r"fields in (?:\w+\.)*(\w+) exceeds", why):
        about = re.search(rb"\bmessage\s+(?P<it>%s)\b" % named[1].encode(), text)
    return (None, None) if about is None else line_and_column(text, about.start("it"))


def _unresolved_import(path: str, found: list[_Diagnostic], main: str) -> UnresolvedReference:
    place = next((message for message in found if (m := _IMPORT.fullmatch(message.text)) and m["file"] == path), None)
    where = "" if place is None or place.file == main else f", needed by {place.file!r},"
    return UnresolvedReference(
        f"the import {path!r}{where} is neither built in nor among the references",
        line=place.line if place else None,
        column=place.column if place else None,
        expected=f"a reference named {path!r}",
    )


def _expected_hint(text: str) -> str | None:
    """Return what would have been right, where the compiler does not say so itself."""
    return next((wanted for pattern, wanted in _EXPECTED if pattern.search(text)), None)


def _parse_line(line: str) -> _Diagnostic:
    match = _PLACED.fullmatch(line)
    if match is None:
        return _Diagnostic("", None, None, line)
    return _Diagnostic(match["file"], int(match["line"]), int(match["column"]), match["text"])
