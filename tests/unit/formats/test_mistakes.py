"""Errors about schemas: each has the position, names what is wrong, and reports what was expected.

The mistakes are in mistakes.jsonl, one in each line: the document (its bytes as Latin-1), the position as `line:column`
or path, what the error must name, and what it must list as expected ('' if the message itself contains it).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stele.errors import MalformedSchema
from stele.formats.registry import get_format

MISTAKES: list[dict[str, Any]] = [
    json.loads(line) for line in Path(__file__).with_name("mistakes.jsonl").read_text("ascii").splitlines()
]


@pytest.mark.parametrize("case", MISTAKES, ids=[f"{case['format']}-{case['mistake']}" for case in MISTAKES])
def test_mistakes(case: dict[str, Any]) -> None:
    """The error has the position, the wrong part and what was expected, and is short."""
    with pytest.raises(MalformedSchema) as caught:
        get_format(case["format"]).parse(case["text"].encode("latin-1"), {})
    error = caught.value
    assert case["place"] == (error.path if error.line is None else f"{error.line}:{error.column}")
    assert case["names"] in error.why
    assert case["expected"] in (error.expected or "")
    assert len(str(error)) < 400
    assert "Xsd" not in str(error)
    assert "invalid literal" not in str(error)


def test_enough_mistakes() -> None:
    """Every language has at least twenty of them."""
    languages = [case["format"] for case in MISTAKES]
    assert all(languages.count(name) >= 20 for name in ("avro", "protobuf", "json", "thrift", "xsd"))


@pytest.mark.parametrize("name", ["avro", "protobuf", "json", "thrift", "xsd"])
def test_mistakes_in_references(name: str) -> None:
    """The error for a mistake in a reference has the name of the reference."""
    texts = {
        "avro": (b'"a.R"', b'{"type":"record","name":"a.R"}'),
        "protobuf": (b'syntax="proto3"; import "ref";', b'syntax="proto3"; message M { strin a = 1; }'),
        "json": (b'{"$ref":"ref"}', b'{"type":'),
        "thrift": (b'include "ref"', b"struct {"),
        "xsd": (
            b'<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:include schemaLocation="ref"/></xs:schema>',
            b"<xs:schema>",
        ),
    }
    text, reference = texts[name]
    with pytest.raises(MalformedSchema, match="'ref'"):
        get_format(name).parse(text, {"ref": reference})
