"""Parses descriptors into columns and prints them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, Final

import jsonschema_rs

from stele.core.ports import TextForm
from stele.errors import MalformedSchema
from stele.formats.json_reader import decode_json
from stele_table_schema.columns import TYPES, Column, parse_cell

_SIZE: Final = 1 << 20
_COUNTS: Final = ("minLength", "maxLength")
_FLAGS: Final = ("required", "unique")
_VALUES: Final = ("minimum", "maximum", "enum")


class TableSchema:
    """A parsed descriptor; immutable by convention.

    document  the descriptor itself
    columns   its fields
    missing   texts that stand for null, the first one is written
    key       names of the columns of the primary key
    """

    def __init__(self, document: dict[str, Any], columns: tuple[Column, ...]) -> None:
        self.document = document
        self.columns = columns
        self.missing: tuple[str, ...] = tuple(document.get("missingValues", [""]))
        key = document.get("primaryKey", [])
        self.key: tuple[str, ...] = (key,) if isinstance(key, str) else tuple(key)

    @property
    def type_name(self) -> str:
        """The descriptor's `name`, or ''."""
        return str(self.document.get("name", ""))

    @cached_property
    def patterns(self) -> Mapping[str, Callable[[str], bool]]:
        """Functions that match a text against the pattern of a column, by column, in linear time."""
        return {
            one.name: compile_pattern(one.constraints["pattern"])
            for one in self.columns
            if "pattern" in one.constraints
        }


def compile_pattern(pattern: str) -> Callable[[str], bool]:
    """Return a function that matches whole texts. Raises `ValueError` if the bounded engine rejects the pattern."""
    limits = jsonschema_rs.RegexOptions(size_limit=_SIZE, dfa_size_limit=_SIZE)
    schema = {"pattern": f"^(?:{pattern})$"}
    return jsonschema_rs.Draft7Validator(schema, pattern_options=limits).is_valid


def parse_descriptor(text: bytes) -> TableSchema:
    """Return the schema of a descriptor. Raises `MalformedSchema` with line and column, or with a JSON Pointer."""
    document = decode_json(text)
    if not isinstance(document, dict):
        raise _malformed_error("#", "the descriptor must be a JSON object", "an object with `fields`")
    fields = document.get("fields")
    if not isinstance(fields, list) or not fields:
        raise _malformed_error("#/fields", "there are no fields", "a list of at least one field")
    columns = tuple(_parse_column(field, f"#/fields/{index}") for index, field in enumerate(fields))
    seen: set[str] = set()
    for index, column in enumerate(columns):
        if column.name in seen:
            raise _malformed_error(f"#/fields/{index}/name", f"the name {column.name!r} is there twice", "another name")
        seen.add(column.name)
    if not _list_texts(document.get("missingValues", [])):
        raise _malformed_error("#/missingValues", "missingValues must be a list of strings", "a list of strings")
    key = document.get("primaryKey", [])
    keys = [key] if isinstance(key, str) else key
    if not _list_texts(keys) or not seen.issuperset(keys):
        raise _malformed_error("#/primaryKey", "the primary key names no fields", "names of fields")
    return TableSchema(document, columns)


def print_descriptor(schema: TableSchema, form: TextForm) -> bytes:
    """Return the descriptor in one of its text forms."""
    document: Any = schema.document if form is not TextForm.CANONICAL else _without_defaults(schema)
    # A lone surrogate cannot be written as UTF-8, so non-ASCII characters are escaped.
    return json.dumps(document, separators=(",", ":"), sort_keys=form is not TextForm.PRINTED).encode()


def _without_defaults(schema: TableSchema) -> dict[str, Any]:
    """Return the members that affect the reading of data, without defaults."""
    fields = []
    for column in schema.columns:
        field: dict[str, Any] = {"name": column.name, "type": column.type, "format": column.format}
        field["constraints"] = {word: value for word, value in column.constraints.items() if value is not False}
        if column.type == "boolean":
            field["trueValues"], field["falseValues"] = map(list, column.words)
        fields.append({word: value for word, value in field.items() if value not in ({}, "default")})
    bare: dict[str, Any] = {"fields": fields, "missingValues": list(schema.missing), "primaryKey": list(schema.key)}
    return {word: value for word, value in bare.items() if (word, value) not in _DEFAULTS}


_DEFAULTS: Final[tuple[tuple[str, list[str]], ...]] = (("missingValues", [""]), ("primaryKey", []))


def _parse_column(field: Any, path: str) -> Column:
    if not isinstance(field, dict):
        raise _malformed_error(path, "a field is an object", '{"name": …, "type": …}')
    name, kind, shape = field.get("name"), field.get("type", "string"), field.get("format", "default")
    if not isinstance(name, str) or not name:
        raise _malformed_error(f"{path}/name", "the field has no name", "a text")
    if kind not in TYPES:
        raise _malformed_error(f"{path}/type", f"there is no type {kind!r}"[:80], ", ".join(TYPES))
    if not isinstance(shape, str):
        raise _malformed_error(f"{path}/format", "a format is a text", "default")
    constraints = field.get("constraints", {})
    if not isinstance(constraints, dict):
        raise _malformed_error(f"{path}/constraints", "constraints are an object", "an object")
    words = (field.get("trueValues", ["true", "True", "TRUE", "1"]), field.get("falseValues", _FALSE))
    if not all(_list_texts(one) and one for one in words):
        raise _malformed_error(f"{path}/trueValues", "the words for true and false are texts", "lists of strings")
    doc = field.get("description", field.get("title", ""))
    column = Column(name, kind, shape, constraints, str(doc), (tuple(words[0]), tuple(words[1])))
    for fault, expected in _find_constraint_faults(column):
        raise _malformed_error(f"{path}/constraints/{fault}", f"the constraint {fault} has a wrong value", expected)
    return column


_FALSE: Final = ["false", "False", "FALSE", "0"]


def _find_constraint_faults(column: Column) -> Iterator[tuple[str, str]]:
    """Yield constraints with a value of the wrong type, each with the expected one."""
    for word, value in column.constraints.items():
        if word in _COUNTS and not (type(value) is int and value >= 0):
            yield word, "a count"
        if word in _FLAGS and not isinstance(value, bool):
            yield word, "true or false"
        if word == "enum" and not (isinstance(value, list) and value):
            yield word, "a list of values"
        elif word in _VALUES and not all(_is_cell(column, one) for one in (value if word == "enum" else [value])):
            yield word, f"a value of type {column.type}"
        if word == "pattern" and not _can_compile(value):
            yield word, "a regular expression without look-around"


def _is_cell(column: Column, value: Any) -> bool:
    try:
        parse_cell(column, str(value))
    except (ValueError, ArithmeticError, RecursionError):
        return False
    return True


def _can_compile(pattern: Any) -> bool:
    try:
        compile_pattern(pattern)
    except ValueError:
        return False
    return isinstance(pattern, str)


def _list_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _malformed_error(path: str, why: str, expected: str) -> MalformedSchema:
    return MalformedSchema(why, path=path, expected=expected)
