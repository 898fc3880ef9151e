"""Compatibility findings in words: what happens to the data, and what the author can do about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from stele.core.findings import Finding, Severity

_WORDS: Final[Mapping[str, tuple[str, str]]] = {
    "TYPE_MISMATCH": (
        "Data written as {writer} cannot be read as {reader}.",
        "Keep the type {writer}, or add a new field with a default and leave this one as it is.",
    ),
    "NAME_MISMATCH": (
        "The writer's type is called {writer}, the reader's {reader}, and types are matched by name.",
        'Keep the name, or add "aliases": ["{writer}"] to {reader}.',
    ),
    "FIXED_SIZE_MISMATCH": (
        "The reader expects {reader} bytes where the writer wrote {writer}.",
        "Keep the size of {extra} at {writer}, or define a new fixed type under another name.",
    ),
    "MISSING_ENUM_SYMBOLS": (
        "The reader's enum {reader} has no symbol for values {extra} that the writer may have written.",
        "Keep these symbols, or give the enum {reader} a default symbol.",
    ),
    "READER_FIELD_MISSING_DEFAULT_VALUE": (
        "The reader needs the field {reader!r}, but records written as {writer} do not have it.",
        'Give {reader!r} ({extra}) a default (for instance ["null", …] with null), or an alias the writer knows.',
    ),
    "READER_FIELD_AMBIGUOUS": (
        "The reader's field {reader!r} matches several fields of the writer by name and alias: {writer}.",
        "Remove the aliases of {reader!r} in {extra} that name other existing fields.",
    ),
    "MISSING_UNION_BRANCH": (
        "The writer may have written {writer}, and no branch of the reader's {reader} takes it.",
        "Add {writer} to the union, or stop removing it.",
    ),
    "LOGICAL_TYPE_CHANGED": (
        "The bytes can be read, but values written as {writer} are taken for {reader}: {extra}.",
        "Keep the logical type {writer}, or put values of the new kind into a new field.",
    ),
}

_WARNINGS: Final = frozenset({"LOGICAL_TYPE_CHANGED"})


def explain(rule: str, path: str, reader: str, writer: str, extra: str = "") -> Finding:
    """The finding for an issue.

    extra is the fixed's name (FIXED_SIZE_MISMATCH), the missing symbols as `[A, B]` (MISSING_ENUM_SYMBOLS), the field's
    type or the record's name (READER_FIELD_…), what becomes of values (LOGICAL_TYPE_CHANGED), the first reason why the
    branch that was probably meant does not fit (MISSING_UNION_BRANCH).
    """
    why, fix = (text.format(reader=reader, writer=writer, extra=extra) for text in _WORDS[rule])
    if rule == "MISSING_UNION_BRANCH" and extra:
        why = f"{why} The nearest one fails with {extra}."
        fix = "Mend that branch so that it reads what was written before."
    level = Severity.WARNING if rule in _WARNINGS else Severity.ERROR
    # The missing symbols are what the writer has and the reader lacks, so they stand in the writer's column.
    shown = extra if rule == "MISSING_ENUM_SYMBOLS" else writer
    return Finding(rule, path, reader, shown, why, fix, level=level)
