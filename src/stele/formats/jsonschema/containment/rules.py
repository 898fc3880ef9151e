"""The verdict: proof, counter-example or neither."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import jsonschema_rs

from stele.core.findings import Finding, Level
from stele.errors import MalformedSchema
from stele.formats.jsonschema.containment.document import Document, document
from stele.formats.jsonschema.containment.explain import Doubt, refusal, undecided
from stele.formats.jsonschema.containment.prover import PROVER
from stele.formats.jsonschema.containment.search import Budget, Search
from stele.formats.jsonschema.containment.shrink import shrunk
from stele.formats.jsonschema.containment.view import View, is_valid
from stele.formats.jsonschema.drafts import Draft
from stele.formats.jsonschema.parsed import ParsedJsonSchema
from stele.formats.jsonschema.text import Json, write

RULESETS = {"containment": Level.UNKNOWN, "containment-lenient": Level.WARNING}
"""The rulesets of this family with the level of what cannot be decided."""

STEPS = 12_000
"""Values made in search of a counter-example where there is no proof: about a tenth of a second."""

STEPS_AGAINST_PROOF = 1_000
"""Values made where there is a proof: the prover is experimental, and a document is stronger than its word."""

_ORDER = tuple(Draft)
_BROKEN_PATTERN = (
    jsonschema_rs.ValidationErrorKind.BacktrackLimitExceeded,
    jsonschema_rs.ValidationErrorKind.RegexEngineFailure,
)


class _Reading(NamedTuple):
    """The two schemas under one reading of `format`: an annotation, or (before 2019-09 both are usual) an assertion."""

    formats: bool
    reader: jsonschema_rs.Validator
    writer: jsonschema_rs.Validator


def findings(reader: ParsedJsonSchema, writer: ParsedJsonSchema, undecided_level: Level) -> list[Finding]:
    """Nothing when the reader's schema allows all the writer's does, under every usual reading of `format`.

    Else one finding: with a counter-example, or of undecided_level when neither proof nor counter-example was found.
    Bounded: a proof may take `prover.DEADLINE` seconds, a search `search.LONGEST`, for each reading.
    """
    try:
        readings = list(_readings(reader, writer))
    except MalformedSchema as error:
        return [undecided(Doubt.MALFORMED, undecided_level, str(error))]
    proved = True
    for reading in readings:
        proof = _proved(reader, writer, formats=reading.formats)
        found = _counter_example(reader, writer, reading, STEPS_AGAINST_PROOF if proof else STEPS)
        if found is not None:
            return [found]
        proved = proved and proof
    return [] if proved else [undecided(Doubt.NEITHER, undecided_level)]


def _readings(reader: ParsedJsonSchema, writer: ParsedJsonSchema) -> Iterator[_Reading]:
    yield _Reading(False, reader.validator, writer.validator)
    asserting = [_asserts(parsed) for parsed in (reader, writer)]
    if any(asserting):
        validators = [
            parsed.asserting_validator if asserts else parsed.validator
            for parsed, asserts in zip((reader, writer), asserting, strict=True)
        ]
        yield _Reading(True, *validators)


def _asserts(parsed: ParsedJsonSchema) -> bool:
    """Whether some validators refuse by `format`: up to draft-07 they may; texts referred to are not looked through."""
    return parsed.draft.ref_hides_siblings and (bool(parsed.references) or b'"format"' in parsed.printed)


def _document(parsed: ParsedJsonSchema, draft: Draft, *, formats: bool) -> Document:
    return document(parsed, draft, formats=formats and parsed.draft.ref_hides_siblings)


def _proved(reader: ParsedJsonSchema, writer: ParsedJsonSchema, *, formats: bool) -> bool:
    """Compared in one draft: their own if they share one, else the later one. What is equal needs no prover."""
    draft = max(reader.draft, writer.draft, key=_ORDER.index)
    if (
        reader.draft is writer.draft
        and reader.printed == writer.printed
        and not (reader.references or writer.references)
    ):
        return True
    mine, theirs = (_document(parsed, draft, formats=formats) for parsed in (reader, writer))
    if mine.exact and theirs.exact and write(mine.root, order="sorted") == write(theirs.root, order="sorted"):
        return True
    return PROVER.covers(mine, theirs, draft, formats=formats)


def _counter_example(
    reader: ParsedJsonSchema, writer: ParsedJsonSchema, reading: _Reading, steps: int
) -> Finding | None:
    mine, theirs = (View(_document(parsed, Draft.DRAFT2020, formats=reading.formats)) for parsed in (reader, writer))
    proves = partial(_proves, reading)
    witness = Search(mine, theirs, Budget(steps)).witness(proves)
    if witness is None:
        return None
    smallest = shrunk(witness.document, proves)
    return refusal(reader, writer, reading.reader, smallest)


def _proves(reading: _Reading, value: Json) -> bool:
    """Whether a document is one of the writer's and none of the reader's, for sure."""
    if is_valid(reading.writer, value) is not True or is_valid(reading.reader, value) is not False:
        return False
    try:
        return not any(isinstance(error.kind, _BROKEN_PATTERN) for error in reading.reader.iter_errors(value))
    except (ValueError, jsonschema_rs.ValidationError):
        return False
