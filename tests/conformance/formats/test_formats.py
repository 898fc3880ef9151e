"""Every built-in format satisfies the contract of the port, tested by the suite for plug-ins."""

from __future__ import annotations

from collections import Counter

import pytest
from tests.conformance.formats.format_cases import CASES, OWN, published_cases

from stele.formats.registry import get_format
from stele.testing.format_suite import FormatConformance, FormatMaterial

AT_MOST = 20
"""Most schemas of each language that are tested completely, of hundreds."""


class TestAvro(FormatConformance):
    material = FormatMaterial.read_files(
        get_format("avro"),
        [CASES, OWN],
        at_most=AT_MOST,
        broken={"apache-avro-ruby-0008": "bytes may hold more digits than the reader's decimal has room for"},
    )


class TestJsonSchema(FormatConformance):
    material = FormatMaterial.read_files(
        get_format("json"),
        [CASES, OWN],
        at_most=AT_MOST,
        data_rulesets=["containment"],
    )


class TestProtobuf(FormatConformance):
    material = FormatMaterial.read_files(get_format("protobuf"), [CASES, OWN], at_most=AT_MOST)


class TestThrift(FormatConformance):
    material = FormatMaterial.read_files(get_format("thrift"), [CASES, OWN], at_most=AT_MOST)


class TestXsd(FormatConformance):
    material = FormatMaterial.read_files(get_format("xsd"), [CASES, OWN], at_most=AT_MOST)


class TestOpaque(FormatConformance):
    material = FormatMaterial.read_files(get_format("opaque"), [OWN])


def test_every_format_is_here() -> None:
    """All built-in formats are tested."""
    tried = {suite.material.format.name for suite in FormatConformance.__subclasses__()}
    assert tried >= {"avro", "json", "protobuf", "thrift", "xsd", "opaque"}


@pytest.mark.parametrize(
    ("name", "compatible", "valid", "canonical"),
    [
        ("avro", 460, 29, 34),
        ("json", 274, 44, 0),
        ("protobuf", 74, 14, 0),
        ("thrift", 82, 0, 0),
        ("xsd", 46, 0, 0),
    ],
)
def test_the_suites_are_complete(name: str, compatible: int, valid: int, canonical: int) -> None:
    """All lines of the published files are read, with their statements."""
    stated: Counter[str] = Counter()
    for case in published_cases():
        if case.format == name and not case.contested:
            stated["compatible"] += case.compatible is not None
            stated["valid"] += case.valid is not None
            stated["canonical"] += case.canonical is not None
    assert stated == Counter(compatible=compatible, valid=valid, canonical=canonical)
