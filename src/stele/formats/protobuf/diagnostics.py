"""Turns what the compiler prints into one error with a place."""

from __future__ import annotations

import re
from typing import NamedTuple

from stele.errors import MalformedSchema, UnresolvedReference

_PLACED = re.compile(r"(?P<file>.*?):(?P<line>\d+):(?P<column>\d+): (?P<text>.*)")
_MISSING = re.compile(r"(?P<file>.+): File not found\.")
_IMPORT = re.compile(r'Import "(?P<file>.*)" was not found or had errors\.')
_NOISE = re.compile(r"WARNING: All log messages before|[IW]\d{4} [\d:.]+ +\d+ |.*: warning: ")


class _Message(NamedTuple):
    file: str
    line: int | None
    column: int | None
    text: str


def error_of(messages: str, main: str) -> MalformedSchema:
    """The first error among the compiler's messages, for a document whose own import path is main."""
    lines = [line for line in messages.splitlines() if line and not _NOISE.match(line)]
    found = [_read(line) for line in lines]
    missing = [match["file"] for line in lines if (match := _MISSING.fullmatch(line)) and match["file"] != main]
    if missing:
        return _unresolved(missing[0], found, main)
    if not found:
        return MalformedSchema("the Protobuf compiler refused the text without saying why")
    # An error inside an imported file makes the import fail as well: the first is the one to read.
    first = next((message for message in found if not _IMPORT.fullmatch(message.text)), found[0])
    more = len(found) - 1
    why = first.text.rstrip(".") + (f" (and {more} more)" if more else "")
    if first.file not in {main, ""}:
        why = f"in the imported file {first.file!r}: {why}"
    return MalformedSchema(why, line=first.line, column=first.column)


def _unresolved(path: str, found: list[_Message], main: str) -> UnresolvedReference:
    place = next((message for message in found if (m := _IMPORT.fullmatch(message.text)) and m["file"] == path), None)
    where = "" if place is None or place.file == main else f", needed by {place.file!r},"
    return UnresolvedReference(
        f"the import {path!r}{where} is neither built in nor among the references",
        line=place.line if place else None,
        column=place.column if place else None,
    )


def _read(line: str) -> _Message:
    match = _PLACED.fullmatch(line)
    if match is None:
        return _Message("", None, None, line)
    return _Message(match["file"], int(match["line"]), int(match["column"]), match["text"])
