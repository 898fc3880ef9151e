"""Every schema of the case files that parses is turned into neutral words, and from there into Protobuf."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stele.errors import CannotConvert, MalformedSchema
from stele.formats import catalogue
from stele.formats.protobuf import ProtobufFormat

CASES = Path(__file__).parent / "cases"
FORMATS = ("protobuf", "thrift", "xsd")


def sources(name: str) -> list[str]:
    """All schema texts of a format, each once."""
    found: dict[str, None] = {}
    for path in sorted(CASES.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            case = json.loads(line)
            if case.get("format") == name:
                found |= {case[key]: None for key in ("old", "new", "schema") if isinstance(case.get(key), str)}
    return list(found)


@pytest.mark.parametrize("name", FORMATS)
def test_every_schema_of_the_cases_converts(name: str) -> None:
    """A schema without any type of data says so; every other one ends as a Protobuf file that compiles."""
    source, target = catalogue.get(name), ProtobufFormat()
    converted = 0
    for text in sources(name):
        try:
            parsed = source.parse(text.encode(), {})
        except MalformedSchema:
            continue
        try:
            model, losses = source.to_model(parsed)  # type: ignore[attr-defined]  # the port does not demand it
        except CannotConvert:
            assert parsed.type_name == "", text
            continue
        assert all(loss.what.isupper() and loss.why.endswith(".") for loss in losses)
        made, more = target.from_model(model)
        assert target.to_model(target.parse(made, {}))[0].types, text
        assert all(loss.what.isupper() and loss.why.endswith(".") for loss in more)
        converted += 1
    assert converted >= 40
