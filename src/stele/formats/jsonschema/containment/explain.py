"""From a counter-example, or the lack of one, to a finding."""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple

import jsonschema_rs

from stele.core.findings import Finding, Severity
from stele.formats.jsonschema.codec import spell_numbers
from stele.formats.jsonschema.json_text import Json, json_pointer, shorten_message, write_json
from stele.formats.jsonschema.parse import ParsedJsonSchema, excerpt_at
from stele.formats.jsonschema.resolve import REF_KEYWORDS

_MESSAGE_LIMIT = 200
_CHOICES = (jsonschema_rs.ValidationErrorKind.AnyOf, jsonschema_rs.ValidationErrorKind.OneOfNotValid)
_CLOSING = ("additionalProperties", "unevaluatedProperties", "additionalItems", "unevaluatedItems")
_OTHER_KIND = ("type", "const", "enum")


class UndecidedReason(Enum):
    """Why a pair is undecided."""

    NEITHER = "neither proof nor counter-example"
    MALFORMED = "a schema no validator takes"
    TOO_LARGE = "schemas too large to be looked at"


class _Advice(NamedTuple):
    why: str
    fix: str


_LIMIT = "Keep the limit as the writer has it, or loosen it."
_ADVICE = {
    "type": _Advice(
        "The reader no longer takes a type the writer may use.", "Allow every type the writer's schema does."
    ),
    "enum": _Advice("A value the writer may use is not listed by the reader.", "Keep every value ever listed."),
    "const": _Advice("The reader takes one value where the writer may use others.", "List all values in an enum."),
    "required": _Advice(
        "The reader requires a property the writer may leave out.", "Do not require it, or require it in both schemas."
    ),
    "dependencies": _Advice(
        "The reader requires a property beside another one; the writer does not.", "Leave the dependency out."
    ),
    "additionalProperties": _Advice(
        "The reader's objects are closed to a property the writer may send.",
        "Name the property in the reader's schema, open its objects, or close the writer's first.",
    ),
    "unevaluatedProperties": _Advice(
        "The reader's objects are closed to a property the writer may send.",
        "Name the property in the reader's schema, open its objects, or close the writer's first.",
    ),
    "additionalItems": _Advice(
        "The reader's arrays are closed to an item the writer may send.", "Allow as many items as the writer's schema."
    ),
    "unevaluatedItems": _Advice(
        "The reader's arrays are closed to an item the writer may send.", "Allow as many items as the writer's schema."
    ),
    "falseSchema": _Advice(
        "The reader allows nothing where the writer may put a value.", "Replace the schema `false`."
    ),
    "minimum": _Advice("The reader's lower bound excludes a number the writer may use.", _LIMIT),
    "exclusiveMinimum": _Advice("The reader's lower bound excludes a number the writer may use.", _LIMIT),
    "maximum": _Advice("The reader's upper bound excludes a number the writer may use.", _LIMIT),
    "exclusiveMaximum": _Advice("The reader's upper bound excludes a number the writer may use.", _LIMIT),
    "multipleOf": _Advice(
        "The writer may use a number that is no multiple of the reader's step.",
        "Use the writer's step or a divisor of it.",
    ),
    "minLength": _Advice("The reader refuses a string as short as the writer may use.", _LIMIT),
    "maxLength": _Advice("The reader refuses a string as long as the writer may use.", _LIMIT),
    "pattern": _Advice(
        "The writer may use a string that does not match the reader's pattern.", "Widen the pattern, or leave it out."
    ),
    "format": _Advice(
        "Where formats are checked, the reader refuses a string the writer may use.",
        "Leave the format out, or give it to the writer's schema first.",
    ),
    "contentEncoding": _Advice("The reader refuses a string the writer may use.", "Keep the content keywords."),
    "contentMediaType": _Advice("The reader refuses a string the writer may use.", "Keep the content keywords."),
    "minItems": _Advice("The reader refuses an array as short as the writer may use.", _LIMIT),
    "maxItems": _Advice("The reader refuses an array as long as the writer may use.", _LIMIT),
    "uniqueItems": _Advice("The writer may repeat an item; the reader refuses that.", "Leave uniqueItems out."),
    "contains": _Advice(
        "The writer's array need not hold what the reader looks for.", "Leave contains out, or loosen it."
    ),
    "minProperties": _Advice("The reader refuses an object with as few members as the writer may use.", _LIMIT),
    "maxProperties": _Advice("The reader refuses an object with as many members as the writer may use.", _LIMIT),
    "propertyNames": _Advice(
        "The writer may use a name the reader refuses.", "Allow every name the writer's schema does."
    ),
    "anyOf": _Advice(
        "No branch of the reader takes a value the writer may use.", "Keep every branch, or add one for it."
    ),
    "oneOf": _Advice(
        "Not exactly one branch of the reader takes a value the writer may use.",
        "Keep every branch, keep them apart, or use anyOf.",
    ),
    "not": _Advice("The reader forbids a value the writer may use.", "Forbid no more than the writer's schema does."),
}
_OTHER = _Advice("The reader refuses a value the writer may use.", "Allow what the writer's schema allows.")


def build_refusal(
    reader: ParsedJsonSchema, writer: ParsedJsonSchema, validator: jsonschema_rs.Validator, witness: Json
) -> Finding:
    """Return the finding about a document of the writer that the reader's validator refuses."""
    error = _most_telling_error(next(iter(validator.iter_errors(witness))))
    keyword = _error_keyword(error)
    advice = _ADVICE.get(keyword, _OTHER)
    steps = [step for step in error.evaluation_path if step not in REF_KEYWORDS]
    where = json_pointer(error.instance_path)
    message = shorten_message(error.message, _MESSAGE_LIMIT)
    shown = f"The witness is valid under the writer's schema and refused at {where}: {message}."
    return Finding(
        rule=f"{re.sub(r'(?<=[a-z])(?=[A-Z])', '_', keyword).upper()}_REFUSES",
        path=_pointer_in_text(reader, error.evaluation_path),
        reader=excerpt_at(reader, steps),
        writer=excerpt_at(writer, steps),
        why=f"{advice.why} {shown}",
        fix=advice.fix,
        witness=write_json(spell_numbers(witness)).decode(),
    )


def build_undecided(doubt: UndecidedReason, level: Severity, detail: str = "") -> Finding:
    """Return the finding about a pair for which neither proof nor counter-example was found."""
    if doubt is UndecidedReason.MALFORMED:
        message = shorten_message(detail, _MESSAGE_LIMIT)
        why = f"One of the two schemas is malformed, so no document can be checked against it: {message}."
        fix = "Mend the schema, or compare with the ruleset confluent, which looks at the texts only."
    elif doubt is UndecidedReason.TOO_LARGE:
        why = "The schemas are too large for a proof or a search in reasonable time."
        fix = "Split the schema, or compare with the ruleset confluent."
    else:
        why = (
            "It could neither be proved that the reader's schema allows every document the writer's does, "
            "nor was a document found that it refuses."
        )
        fix = (
            "Make the change smaller or the schemas simpler, compare with another ruleset, "
            "or let undecided changes pass with containment-lenient."
        )
    return Finding("CONTAINMENT_UNDECIDED", "#", why=why, fix=fix, level=level)


def _most_telling_error(error: jsonschema_rs.ValidationError) -> jsonschema_rs.ValidationError:
    """Return the fault in the one branch of a choice that the value is meant for, where there is such a branch.

    It is the only branch that does not refuse the value for its type, or for the constant that tags it.
    """
    while isinstance(error.kind, _CHOICES):
        depth = len(error.instance_path)
        meant = [
            branch for branch in error.kind.context if branch and not any(_is_other_kind(f, depth) for f in branch)
        ]
        if len(meant) != 1:
            break
        error = meant[0][0]
    return error


def _is_other_kind(fault: jsonschema_rs.ValidationError, depth: int) -> bool:
    name = fault.kind.name
    return (name == "type" and len(fault.instance_path) == depth) or (
        name in _OTHER_KIND[1:] and len(fault.instance_path) <= depth + 1
    )


def _error_keyword(error: jsonschema_rs.ValidationError) -> str:
    last = error.evaluation_path[-1] if error.evaluation_path else ""
    if error.kind.name == "required" and last in ("dependencies", "dependentRequired"):
        return "dependencies"
    if error.kind.name == "falseSchema" and last in _CLOSING and error.evaluation_path[-2:-1] != ["properties"]:
        return str(last)
    return error.kind.name


def _pointer_in_text(parsed: ParsedJsonSchema, steps: list[str | int]) -> str:
    """Return the JSON Pointer of a place that a validator reached, after the label of the text it is in."""
    label, path, value = "", list[str | int](), parsed.root
    for step in steps:
        if step in REF_KEYWORDS and isinstance(value, dict) and id(value) in parsed.links.targets:
            value = parsed.links.targets[id(value)]
            label, path = _find_text(parsed, value)
            continue
        path = [*path, step]
        if isinstance(value, dict):
            value = value.get(str(step))
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
    return label + json_pointer(path)


def _find_text(parsed: ParsedJsonSchema, target: Json) -> tuple[str, list[str | int]]:
    """Return the label of the text an object is written in, and its path there; ('', []) for any other target."""
    for label, root in (("", parsed.root), *parsed.references.items()):
        stack: list[tuple[Json, list[str | int]]] = [(root, [])]
        while stack:
            value, path = stack.pop()
            if value is target and isinstance(value, dict):
                return label, path
            if isinstance(value, dict):
                stack.extend((inner, [*path, name]) for name, inner in value.items())
            elif isinstance(value, list):
                stack.extend((inner, [*path, index]) for index, inner in enumerate(value))
    return "", []
