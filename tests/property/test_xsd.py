"""Properties of XSD containment over random pairs of schemas: what it says is true, in both directions."""

from __future__ import annotations

import random

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from lxml import etree
from tests.property.xsd_pairs import (
    Complex,
    Simple,
    change_type,
    random_complex,
    random_simple,
    sample_document,
    schema_text,
)
from tests.support.examples import scale_examples

from stele.core.findings import Finding, Severity
from stele.core.ports import TextForm
from stele.errors import MalformedSchema
from stele.formats.xsd import XSD, ParsedXsd
from stele.formats.xsd.codec import is_valid

DOCUMENTS = 25
_SLOW_DRAWS = [HealthCheck.filter_too_much, HealthCheck.too_slow]


def parse_type(kind: Simple | Complex) -> ParsedXsd:
    """The schema of a type; examples whose schema is ambiguous or contradictory are skipped."""
    try:
        return XSD.parse(schema_text(kind), {})
    except MalformedSchema:
        assume(False)
        raise


def random_pair(seed: int) -> tuple[Simple | Complex, ParsedXsd, ParsedXsd]:
    """A writer's type, its schema, and a reader's."""
    rng = random.Random(seed)
    writer: Simple | Complex = random_simple(rng) if rng.random() < 0.3 else random_complex(rng)
    reader = change_type(writer, rng) if rng.random() < 0.8 else random_complex(rng)
    return writer, parse_type(writer), parse_type(reader)


def random_documents(kind: Simple | Complex, seed: int) -> list[bytes]:
    """Random documents of a type, valid or nearly."""
    rng = random.Random(seed)
    return [sample_document("r", kind, rng).encode() for _ in range(DOCUMENTS)]


def has_breaking(findings: list[Finding]) -> bool:
    """Whether anything but a warning was found."""
    return any(finding.level is not Severity.WARNING for finding in findings)


@settings(
    max_examples=scale_examples(160),
    deadline=None,
    suppress_health_check=_SLOW_DRAWS,
)
@given(seed=st.integers(0, 2**40))
def test_compatible_means_every_document_passes(seed: int) -> None:
    """When no finding is made, every random document the writer's schema allows is valid for the reader's."""
    kind, writer, reader = random_pair(seed)
    if has_breaking(XSD.check(reader, writer)):
        return
    for document in random_documents(kind, seed):
        if is_valid(writer, document):
            assert is_valid(reader, document), (document, schema_text(kind), etree.tostring(reader.root))


@settings(
    max_examples=scale_examples(80),
    deadline=None,
    suppress_health_check=_SLOW_DRAWS,
)
@given(seed=st.integers(0, 2**40))
def test_witnesses_are_proofs_for_another_validator(seed: int) -> None:
    """Nearly every witness is confirmed by libxml2, and each one by the validator that the verdict is about."""
    _, writer, reader = random_pair(seed)
    for finding in XSD.check(reader, writer):
        if finding.witness is not None:
            assert is_valid(writer, finding.witness.encode())
            assert not is_valid(reader, finding.witness.encode())
            try:
                mine, theirs = (
                    etree.XMLSchema(etree.fromstring(etree.tostring(side.root))) for side in (writer, reader)
                )
            except etree.XMLSchemaParseError:
                continue  # libxml2 finds more content models ambiguous
            document = etree.fromstring(finding.witness)
            assert (mine.validate(document), theirs.validate(document)) == (True, False), finding


@settings(
    max_examples=scale_examples(40),
    deadline=None,
    suppress_health_check=_SLOW_DRAWS,
)
@given(seed=st.integers(0, 2**40))
def test_every_schema_contains_itself(seed: int) -> None:
    """A schema is compatible with itself and with each of its printed texts, whatever is in it."""
    _, writer, reader = random_pair(seed)
    for side in (writer, reader):
        for form in TextForm:
            again = XSD.parse(XSD.canonical(side, form), {})
            assert XSD.check(again, side) == XSD.check(side, again) == []
            assert XSD.canonical(again, form) == XSD.canonical(side, form)


def test_the_pairs_are_worth_it() -> None:
    """The generator makes pairs with both verdicts; pairs with only one would prove little."""
    verdicts = []
    for seed in range(120):
        rng = random.Random(seed)
        writer = random_complex(rng)
        try:
            old, new = XSD.parse(schema_text(writer), {}), XSD.parse(schema_text(change_type(writer, rng)), {})
        except MalformedSchema:
            continue
        verdicts.append(has_breaking(XSD.check(new, old)))
    assert verdicts.count(True) >= 10
    assert verdicts.count(False) >= 10
