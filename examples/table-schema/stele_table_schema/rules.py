"""Rules for reading the records of one schema as records of another: by the names of columns, or by their position."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from stele.core.findings import Finding, Severity
from stele.formats.rulesets import Ruleset, Rulesets
from stele_table_schema.columns import Column
from stele_table_schema.descriptor import TableSchema

_WIDER = {("integer", "number"), ("year", "integer"), ("year", "number")}
"""(writer, reader) pairs of types where every text of the first is a text of the second."""


def check_by_name(reader: TableSchema, writer: TableSchema) -> list[Finding]:
    """Compare columns of the same name. A new order and new nullable columns are allowed."""
    columns = {column.name: column for column in writer.columns}
    return [found for one in reader.columns for found in _compare_columns(one, columns.get(one.name), reader, writer)]


def check_by_position(reader: TableSchema, writer: TableSchema) -> list[Finding]:
    """Compare columns at the same position, as in files without a header line."""
    found: list[Finding] = []
    for index, one in enumerate(reader.columns):
        other = writer.columns[index] if index < len(writer.columns) else None
        found += _compare_columns(one, other, reader, writer)
        if other is not None and other.name != one.name:
            why = "The column has another name; readers that go by names will not find it."
            found.append(
                _make_finding("COLUMN_RENAMED", one, one.name, other.name, why, "Keep the name.", Severity.WARNING)
            )
    if len(writer.columns) > len(reader.columns):
        left = writer.columns[len(reader.columns)]
        why = f"Records have {len(writer.columns)} cells and the reader knows {len(reader.columns)} columns."
        found.append(_make_finding("COLUMN_LEFT_OVER", left, "", left.name, why, "Keep the column at the end."))
    return found


RULESETS: Rulesets[TableSchema] = Rulesets(
    "tableschema",
    Ruleset("by-name@1", check_by_name, "Columns are found by name, as in files with a header line."),
    Ruleset("by-position@1", check_by_position, "Columns are found by their place, as in files without a header line."),
)
"""Rulesets of the format. Verdicts of a released version never change: corrected rules would become `by-name@2`."""


def _compare_columns(one: Column, other: Column | None, reader: TableSchema, writer: TableSchema) -> Iterator[Finding]:
    broken = partial(_make_finding, column=one)
    if other is None:
        if one.required:
            why = "The reader requires a column that the records do not have."
            yield broken("COLUMN_MISSING", reader=one.type, writer="", why=why, fix="Let the new column be null.")
        return
    text = one.type in ("string", "any") and one.format == "default"
    same = (one.type, one.format, one.words) == (other.type, other.format, other.words)
    if not (text or same or ((other.type, one.type) in _WIDER and one.format == other.format)):
        why = f"Not every {other.type} the records hold is a {one.type} of the reader's format."
        yield broken(
            "TYPE_CHANGED",
            reader=f"{one.type} {one.format}",
            writer=f"{other.type} {other.format}",
            why=why,
            fix="Keep type and format, or read the column as a string.",
        )
        return
    for word, value in one.constraints.items():
        if _is_narrower(word, value, other):
            before = other.constraints.get(word, "")
            why = f"Records may hold values that the reader's {word} refuses."
            yield broken(
                "CONSTRAINT_TIGHTENED",
                reader=f"{word} {value}"[:80],
                writer=f"{word} {before}"[:80],
                why=why,
                fix="Leave the constraint as wide as it was.",
            )


def _is_narrower(word: str, value: Any, other: Column) -> bool:
    """Return whether a constraint refuses values that the writer's column allows."""
    before = other.constraints.get(word)
    if value is False or word == "unique" or value == before:
        return False
    if before is None or type(before) is not type(value):
        return not (word == "minLength" and value == 0)
    if word in ("minimum", "minLength") and isinstance(value, int | float):
        return bool(value > before)
    if word in ("maximum", "maxLength") and isinstance(value, int | float):
        return bool(value < before)
    return not (word == "enum" and all(one in value for one in before))


def _make_finding(
    rule: str, column: Column, reader: str, writer: str, why: str, fix: str, level: Severity = Severity.ERROR
) -> Finding:
    return Finding(rule, column.name, reader, writer, why, fix, level=level)
