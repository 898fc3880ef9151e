"""The verdict: proof, counter-example or neither."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, partial
from typing import NamedTuple

import jsonschema_rs

from stele.core.findings import Finding, Severity
from stele.errors import MalformedSchema
from stele.formats.jsonschema.containment.document import BundledDocument, build_document
from stele.formats.jsonschema.containment.explain import UndecidedReason, build_refusal, build_undecided
from stele.formats.jsonschema.containment.search import find_witness, shrink_document
from stele.formats.jsonschema.containment.structural_prover import StructuralProver
from stele.formats.jsonschema.containment.subprocess_prover import PROVER
from stele.formats.jsonschema.containment.view import DocumentView, is_valid_value
from stele.formats.jsonschema.drafts import Draft
from stele.formats.jsonschema.json_text import Json
from stele.formats.jsonschema.parse import ParsedJsonSchema

STEPS_BEFORE_PROOF = 1_000
"""Values made before the prover is asked: it is experimental, and a document beats its word."""

STEPS_BESIDE_PROOF = 200
"""Values made where the structural proof holds: a look from another side."""

STEPS = 12_000
"""Values made where there is no proof: about a tenth of a second."""

_ORDER = tuple(Draft)
_BROKEN_PATTERN = (
    jsonschema_rs.ValidationErrorKind.BacktrackLimitExceeded,
    jsonschema_rs.ValidationErrorKind.RegexEngineFailure,
)


MAX_TEXT = 500_000
"""Bytes of both schemas together; beyond, nothing but equal texts is compared."""


class _Reading(NamedTuple):
    """The two schemas under one reading of `format`: an annotation, or (before 2019-09 both are usual) an assertion."""

    formats: bool
    reader: jsonschema_rs.Validator
    writer: jsonschema_rs.Validator


def check_containment(reader: ParsedJsonSchema, writer: ParsedJsonSchema, undecided_level: Severity) -> list[Finding]:
    """Nothing when the reader's schema allows all the writer's does, under every usual reading of `format`.

    Else one finding: with a counter-example, or of undecided_level when neither proof nor counter-example was found.
    Bounded: a proof may take `prover.DEADLINE` seconds, a search `search.LONGEST`, for each reading.
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
        comparison = _Comparison(reader, writer, reading)
        follows = comparison.is_proved_by_structure()
        found = comparison.find_counter_example(STEPS_BESIDE_PROOF if follows else STEPS_BEFORE_PROOF)
        if found is None and not follows and not comparison.is_proved_by_canonical_form():
            found = comparison.find_counter_example(STEPS) or build_undecided(UndecidedReason.NEITHER, undecided_level)
        if found is not None:
            return [found]
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
    """Return whether some validators may refuse values by `format`: those up to draft-07, where the text has one."""
    return parsed.draft.ref_hides_siblings and (bool(parsed.references) or b'"format"' in parsed.printed)


def _document_in(parsed: ParsedJsonSchema, draft: Draft, *, formats: bool) -> BundledDocument:
    return build_document(parsed, draft, formats=formats and parsed.draft.ref_hides_siblings)


class _Comparison:
    """One pair under one reading."""

    def __init__(self, reader: ParsedJsonSchema, writer: ParsedJsonSchema, reading: _Reading) -> None:
        self._pair = reader, writer
        self._reading = reading
        mine, theirs = (_document_in(each, Draft.DRAFT2020, formats=reading.formats) for each in self._pair)
        self._later_exact = mine.exact and theirs.exact
        self._reader = DocumentView(mine)
        self._writer = DocumentView(theirs)
        self._structure = StructuralProver(self._reader, self._writer)

    @cached_property
    def _own_draft_documents(self) -> tuple[Draft, BundledDocument, BundledDocument]:
        """The two in their own draft if they share one, else in the later one."""
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
        """Return a document found in so many steps, as a finding."""
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
