"""Every valid schema of the case files is converted into the neutral model, and from there into other languages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stele.errors import CannotConvert, MalformedSchema
from stele.formats.capabilities import FromModel
from stele.formats.conversion.model import Loss
from stele.formats.registry import get_format, list_formats

CASES = Path(__file__).parent / "cases"
FORMATS = ("avro", "json", "protobuf", "thrift", "xsd")


def schema_texts(name: str) -> list[str]:
    """Return all schema texts of a format, each once."""
    texts: dict[str, None] = {}
    for path in sorted(CASES.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            case = json.loads(line)
            if case.get("format") == name:
                texts |= {case[key]: None for key in ("old", "new", "schema") if isinstance(case.get(key), str)}
    return list(texts)


@pytest.mark.parametrize("name", FORMATS)
def test_every_schema_of_the_cases_converts(name: str) -> None:
    """A schema without a data type cannot be converted; every other one becomes valid in each target language."""
    source = get_format(name)
    targets = [fmt for fmt in map(get_format, list_formats()) if isinstance(fmt, FromModel)]
    assert len(targets) == 3
    converted = 0
    for text in schema_texts(name):
        try:
            parsed = source.parse(text.encode(), {})
        except MalformedSchema:
            continue
        try:
            model, losses = source.to_model(parsed)  # type: ignore[attr-defined]  # the port does not demand it
        except CannotConvert:
            assert parsed.type_name == "", text
            continue
        assert_sentences(losses)
        for target in targets:
            schema, more = target.from_model(model)
            target.parse(schema, {})
            assert_sentences(more)
        converted += 1
    assert converted >= 40


def assert_sentences(losses: list[Loss]) -> None:
    """Assert that each loss has a word in upper case and a complete sentence."""
    for loss in losses:
        assert loss.what.isupper()
        assert loss.why.endswith("."), loss
        first = loss.why.split()[0]
        assert not first.isalpha() or first[0].isupper() or "_" in first, loss
