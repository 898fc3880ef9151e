"""Findings as the Confluent API words them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stele.apis.confluent.compatibility_messages import format_messages
from stele.core.findings import Finding, Severity
from stele.core.model import SubjectKey
from stele.formats.avro import AVRO
from stele.service.registry import Registry

from .conftest import Put

FINDING = Finding("SOME_RULE", "/a", "int", "string", "It broke.", "Mend it.")


async def test_avro_messages_carry_what_both_sides_have(registry: Registry, put: Put) -> None:
    """An entry in single quotes with both sides, then the old version, its text and the level."""
    await put(":a", '"string"')
    description, information = "It broke, at path '/a'. Mend it", "reader: int, writer: string"
    assert format_messages(registry.state, SubjectKey("", "a"), [FINDING], 1) == [
        f"{{errorType:'SOME_RULE', description:'{description}', additionalInfo:'{information}'}}",
        "{oldSchemaVersion: 1}",
        "{oldSchema: '\"string\"'}",
        "{validateFields: 'false', compatibility: 'BACKWARD'}",
    ]


async def test_a_long_old_schema_is_cut_and_marked(registry: Registry, put: Put) -> None:
    """Beyond 10 KiB the old text is cut, and said to be."""
    long = json.dumps({"type": "record", "name": "R", "doc": "d" * 20_000, "fields": []})
    await put(":a", long)
    shown = format_messages(registry.state, SubjectKey("", "a"), [FINDING], 1)[2]
    assert shown.startswith("{oldSchema: <truncated> '{")
    assert shown.endswith("d...'}")
    assert len(shown) == 10 * 1024 + len("{oldSchema: <truncated> '...'}")


async def test_doubt_is_told_apart_from_a_break(registry: Registry) -> None:
    """What no rule could decide is refused with those words; a proven break goes without."""
    findings = [Finding("R", "/a", why="It may break.", level=level) for level in (Severity.ERROR, Severity.UNKNOWN)]
    proven, doubtful, _ = format_messages(registry.state, SubjectKey("", "a"), findings, None)
    assert "description:'It may break, at path '/a''" in proven
    assert "description:'Not decided, hence refused: It may break, at path '/a''" in doubtful


@pytest.mark.parametrize(
    ("old", "new", "information"),
    [
        ({"fields": []}, {"fields": [{"name": "a", "type": "int"}]}, "a"),
        ({"type": "enum", "symbols": ["A", "B", "C"]}, {"type": "enum", "symbols": ["A"]}, "[B, C]"),
        ({"type": "fixed", "size": 5}, {"type": "fixed", "size": 4}, "expected: 5, found: 4"),
        ({"name": "R", "fields": []}, {"name": "Q", "fields": []}, "expected: R"),
    ],
)
async def test_the_additional_information_names_the_offender(
    registry: Registry, put: Put, old: dict[str, Any], new: dict[str, Any], information: str
) -> None:
    """Avro's messages end with the field, the symbols, the name or the sizes that do not fit, as clients expect."""
    texts = [json.dumps({"type": "record", "name": "R", **schema}) for schema in (old, new)]
    await put(":a", texts[0])
    writer, reader = (AVRO.parse(text.encode(), {}) for text in texts)
    first = format_messages(registry.state, SubjectKey("", "a"), AVRO.check(reader, writer), 1)[0]
    assert first.endswith(f", additionalInfo:'{information}'}}")
