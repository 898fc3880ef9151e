"""The rulesets `containment` and `containment-lenient`: the reader's schema allows all that the writer's allows.

A pair is compatible when that is proved (structurally, or by the canonical form of jsonschema-rs) and no
counter-example is found. It is incompatible when a document is found that the writer's schema allows and the reader's
refuses; the finding shows it. Otherwise the pair is undecided: under `containment` an `UNKNOWN` finding, which refuses
the change, and under `containment-lenient` a warning, which allows it. Version 2 of both compares patterns and lengths
as regular languages. Version 1 compares patterns as texts.

Source: docs/protocols/json-schema.md#containment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from functools import cached_property, partial
from typing import NamedTuple

import jsonschema_rs

from stele.core.findings import Finding, Severity
from stele.errors import MalformedSchema
from stele.formats.jsonschema.codec import spell_numbers
from stele.formats.jsonschema.containment.document import BundledDocument, DocumentView, build_document, is_valid_value
from stele.formats.jsonschema.containment.provers import PROVER, StructuralProver
from stele.formats.jsonschema.containment.search import find_witness, shrink_document
from stele.formats.jsonschema.drafts import Draft
from stele.formats.jsonschema.json_text import Json, json_pointer, shorten_message, write_json
from stele.formats.jsonschema.parse import ParsedJsonSchema, excerpt_at
from stele.formats.jsonschema.patterns import SMALL_PATTERNS
from stele.formats.jsonschema.resolve import REF_KEYWORDS

__all__ = ["check_containment"]

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
        "The reader requires a property if another one is present; the writer does not.", "Leave the dependency out."
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
        "The writer may use a number that is not a multiple of the reader's step.",
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
    evidence = f"The witness is valid under the writer's schema and refused at {where}: {message}."
    return Finding(
        rule=f"{re.sub(r'(?<=[a-z])(?=[A-Z])', '_', keyword).upper()}_REFUSES",
        path=_pointer_in_text(reader, error.evaluation_path),
        reader=excerpt_at(reader, steps),
        writer=excerpt_at(writer, steps),
        why=f"{advice.why} {evidence}",
        fix=advice.fix,
        witness=write_json(spell_numbers(witness)).decode(),
    )


def build_undecided(doubt: UndecidedReason, level: Severity, detail: str = "") -> Finding:
    """Return the finding for a pair without proof and without counter-example."""
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
    """Return the error in the one branch of a choice that the value is meant for, if there is such a branch.

    It is the only branch that does not refuse the value for its type, or for the constant that tags it. Without it, the
    error itself is returned.
    """
    while isinstance(error.kind, _CHOICES):
        depth = len(error.instance_path)
        candidates = [
            branch for branch in error.kind.context if branch and not any(_is_other_kind(f, depth) for f in branch)
        ]
        if len(candidates) != 1:
            break
        error = candidates[0][0]
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
    """Return the JSON Pointer of the schema at the end of a validator's path, after the label of the text it is in."""
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


STEPS_BEFORE_PROOF = 1_000
"""Values tried before the canonical form is used: it is experimental, and a counter-example is more reliable."""

STEPS_BESIDE_PROOF = 200
"""Values tried although the structural proof holds, as an independent check."""

STEPS = 12_000
"""Values tried where there is no proof. That many take about a tenth of a second."""

_ORDER = tuple(Draft)
_BROKEN_PATTERN = (
    jsonschema_rs.ValidationErrorKind.BacktrackLimitExceeded,
    jsonschema_rs.ValidationErrorKind.RegexEngineFailure,
)


MAX_TEXT = 500_000
"""Maximum size in bytes of both schemas together; of larger ones, only equal texts are compatible."""


class _Reading(NamedTuple):
    """The two schemas with `format` as an annotation, or as an assertion (before 2019-09 both are usual)."""

    formats: bool
    reader: jsonschema_rs.Validator
    writer: jsonschema_rs.Validator


def check_containment(
    reader: ParsedJsonSchema, writer: ParsedJsonSchema, undecided_level: Severity, *, languages: bool = True
) -> list[Finding]:
    """Return no finding when the reader's schema allows all the writer's does, under every usual reading of `format`.

    Otherwise return one finding: with a counter-example, or of undecided_level when neither proof nor counter-example
    was found. languages is whether patterns are compared as languages; version 1 of the rules compares their texts. For
    each reading of `format`, a proof takes at most `provers.DEADLINE` seconds, a search `search.LONGEST`.
    """
    try:
        readings = list(_format_readings(reader, writer))
    except MalformedSchema as error:
        return [build_undecided(UndecidedReason.MALFORMED, undecided_level, str(error))]
    if _same_text(reader, writer):
        return []
    if len(reader.printed) + len(writer.printed) > MAX_TEXT:
        return [build_undecided(UndecidedReason.TOO_LARGE, undecided_level)]
    for reading in readings:
        comparison = _Comparison(reader, writer, reading, languages=languages)
        follows = comparison.is_proved_by_structure()
        finding = comparison.find_counter_example(STEPS_BESIDE_PROOF if follows else STEPS_BEFORE_PROOF)
        if finding is None and not follows and not comparison.is_proved_by_canonical_form():
            finding = comparison.find_counter_example(STEPS) or build_undecided(
                UndecidedReason.NEITHER, undecided_level
            )
        if finding is not None:
            return [finding]
    return []


def _same_text(reader: ParsedJsonSchema, writer: ParsedJsonSchema) -> bool:
    return (
        reader.draft is writer.draft
        and reader.printed == writer.printed
        and not (reader.references or writer.references)
    )


def _format_readings(reader: ParsedJsonSchema, writer: ParsedJsonSchema) -> Iterator[_Reading]:
    yield _Reading(False, reader.validator, writer.validator)
    asserting = [_may_assert_format(parsed) for parsed in (reader, writer)]
    if any(asserting):
        validators = [
            parsed.asserting_validator if asserts else parsed.validator
            for parsed, asserts in zip((reader, writer), asserting, strict=True)
        ]
        yield _Reading(True, *validators)


def _may_assert_format(parsed: ParsedJsonSchema) -> bool:
    """Return whether some validators may refuse values by `format`: for drafts up to 07, if a text may contain it."""
    return parsed.draft.ref_hides_siblings and (bool(parsed.references) or b'"format"' in parsed.printed)


def _document_in(parsed: ParsedJsonSchema, draft: Draft, *, formats: bool) -> BundledDocument:
    return build_document(parsed, draft, formats=formats and parsed.draft.ref_hides_siblings)


class _Comparison:
    """The comparison of one pair under one reading of `format`."""

    def __init__(
        self, reader: ParsedJsonSchema, writer: ParsedJsonSchema, reading: _Reading, *, languages: bool
    ) -> None:
        self._pair = reader, writer
        self._reading = reading
        mine, theirs = (_document_in(each, Draft.DRAFT2020, formats=reading.formats) for each in self._pair)
        self._later_exact = mine.exact and theirs.exact
        small = all(each.pattern_size <= SMALL_PATTERNS for each in self._pair)
        self._reader = DocumentView(mine, compiles=small)
        self._writer = DocumentView(theirs, compiles=small)
        self._structure = StructuralProver(self._reader, self._writer, languages=languages)

    @cached_property
    def _own_draft_documents(self) -> tuple[Draft, BundledDocument, BundledDocument]:
        """The draft that both share, or the later of the two, and both documents in that draft."""
        draft = max((each.draft for each in self._pair), key=_ORDER.index)
        mine, theirs = (_document_in(each, draft, formats=self._reading.formats) for each in self._pair)
        return draft, mine, theirs

    def _can_compare_keywords(self) -> bool:
        """Return whether keywords mean the same on both sides: exactly translated, or of one draft."""
        if self._later_exact:
            return True
        draft, mine, theirs = self._own_draft_documents
        return all(each.draft is draft for each in self._pair) and mine.exact and theirs.exact

    def is_proved_by_structure(self) -> bool:
        """Return whether the structural proof holds: each keyword of the reader follows from the writer's."""
        return self._can_compare_keywords() and self._structure.can_prove(self._reader.root, self._writer.root)

    def is_proved_by_canonical_form(self) -> bool:
        """Return whether the canonical form proves containment."""
        draft, mine, theirs = self._own_draft_documents
        return PROVER.can_prove(mine, theirs, draft, formats=self._reading.formats)

    def find_counter_example(self, steps: int) -> Finding | None:
        """Return the finding for a counter-example that was found within that many steps; None without one."""
        proves = partial(_is_counter_example, self._reading)
        witness = find_witness(self._reader, self._writer, self._structure, steps, proves)
        if witness is None:
            return None
        return build_refusal(*self._pair, self._reading.reader, shrink_document(witness.document, proves))


def _is_counter_example(reading: _Reading, value: Json) -> bool:
    """Return whether a document is certainly valid for the writer and invalid for the reader."""
    if is_valid_value(reading.writer, value) is not True or is_valid_value(reading.reader, value) is not False:
        return False
    try:
        return not any(isinstance(error.kind, _BROKEN_PATTERN) for error in reading.reader.iter_errors(value))
    except (ValueError, jsonschema_rs.ValidationError):
        return False
