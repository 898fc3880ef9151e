"""Properties of the ruleset `containment`: no document contradicts a compatible verdict, every witness is a proof."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.property.jsonschema_pairs import URIS, Schemas, random_document
from tests.support.examples import scale_examples
from tests.support.patient_search import let_steps_end_searches

from stele.core.findings import Severity
from stele.errors import SteleError
from stele.formats.jsonschema import JSON_SCHEMA, ParsedJsonSchema
from stele.formats.jsonschema.containment.document import DocumentView
from stele.formats.jsonschema.containment.document import build_document as one_document
from stele.formats.jsonschema.containment.provers import StructuralProver
from stele.formats.jsonschema.drafts import Draft
from stele.formats.jsonschema.json_text import to_builtin

QUICK = settings(max_examples=scale_examples(150), deadline=None, suppress_health_check=list(HealthCheck))
SEEDS = st.integers(0, 2**48)
DRAFTS = st.sampled_from(sorted(URIS))
DOCUMENTS = [random_document(Random(seed)) for seed in range(400)]


def parse(schema: Any) -> ParsedJsonSchema | None:
    """The parsed schema, or None when it is refused."""
    try:
        return JSON_SCHEMA.parse(json.dumps(schema).encode(), {})
    except SteleError:
        return None


def find_refuted(reader: ParsedJsonSchema, writer: ParsedJsonSchema) -> list[Any]:
    """Return the documents of the writer that the reader rejects."""
    mine, theirs = reader.validator, writer.validator
    return [value for value in DOCUMENTS if theirs.is_valid(value) and not mine.is_valid(value)]


@QUICK
@given(SEEDS, DRAFTS)
def test_compatible_means_no_document_speaks_against_it(seed: int, draft: int) -> None:
    """Without a finding no document of hundreds fits only the writer; a witness fits the writer and not the reader."""
    writer, reader = map(parse, Schemas(Random(seed), draft).make_pair())
    if writer is None or reader is None:
        return
    findings = JSON_SCHEMA.check(reader, writer, "containment")
    if not findings:
        assert find_refuted(reader, writer) == []
        return
    (finding,) = findings
    assert finding.breaks
    if finding.level is Severity.UNKNOWN:
        assert finding.witness is None
        assert [other.level for other in JSON_SCHEMA.check(reader, writer, "containment-lenient")] == [Severity.WARNING]
        return
    assert finding.witness is not None
    witness = json.loads(finding.witness)
    readings = [(writer.validator, reader.validator), (writer.asserting_validator, reader.asserting_validator)]
    assert any(theirs.is_valid(witness) and not mine.is_valid(witness) for theirs, mine in readings)


@QUICK
@given(SEEDS, DRAFTS, DRAFTS)
def test_drafts_may_differ(seed: int, old: int, new: int) -> None:
    """A compatible verdict across drafts also holds for documents."""
    writer, _ = Schemas(Random(seed), old).make_pair()
    reader = {**writer, "$schema": URIS[new]}
    before, after = parse(writer), parse(reader)
    if before is not None and after is not None and not JSON_SCHEMA.check(after, before, "containment"):
        assert find_refuted(after, before) == []


@QUICK
@given(SEEDS, DRAFTS)
def test_the_structural_proof_is_sound_by_itself(seed: int, draft: int) -> None:
    """A structural proof holds for all documents, without an earlier search."""
    writer, reader = map(parse, Schemas(Random(seed), draft).make_pair())
    if writer is None or reader is None:
        return
    views = [DocumentView(one_document(each, Draft.DRAFT2020, formats=False)) for each in (reader, writer)]
    if StructuralProver(views[0], views[1]).can_prove(views[0].root, views[1].root):
        assert find_refuted(reader, writer) == []


@QUICK
@given(SEEDS, DRAFTS)
def test_one_document_means_what_the_schema_meant(seed: int, draft: int) -> None:
    """The self-contained document, in its own draft and (if exact) in the latest one, allows the same documents."""
    parsed = parse(Schemas(Random(seed), draft).make_pair()[0])
    if parsed is None:
        return
    for target in {parsed.draft, Draft.DRAFT2020}:
        translated = one_document(parsed, target, formats=False)
        if not translated.exact:
            continue
        validator = target.validator(to_builtin(translated.root), validate_formats=False)
        assert [validator.is_valid(value) for value in DOCUMENTS] == [parsed.validator.is_valid(v) for v in DOCUMENTS]


@pytest.mark.parametrize("draft", sorted(URIS))
def test_few_pairs_stay_undecided(draft: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 60 pairs of a draft at most five find neither proof nor counter-example, and both answers occur."""
    let_steps_end_searches(monkeypatch)
    levels: list[Severity | None] = []
    for seed in range(60):
        writer, reader = map(parse, Schemas(Random(seed), draft).make_pair())
        if writer is not None and reader is not None:
            findings = JSON_SCHEMA.check(reader, writer, "containment")
            levels.append(findings[0].level if findings else None)
    assert levels.count(Severity.UNKNOWN) <= 5
    assert levels.count(None) > 10
    assert levels.count(Severity.ERROR) > 10
