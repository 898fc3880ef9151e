"""Report formats for CI systems, checked against what those systems accept."""

from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree as ET

import jsonschema_rs

from stele.core.findings import Direction, Severity
from stele.review.github import render_github
from stele.review.junit import render_junit
from stele.review.report import FileFinding, FileReport, Outcome
from stele.review.sarif import build_sarif

FINDINGS = (
    FileFinding(
        "TYPE_MISMATCH",
        "/fields/0",
        why="50% of it,\nor: more",
        fix="Mend it.",
        line=4,
        column=7,
        compared_with="main:a,b.avsc",
        direction=Direction.BACKWARD,
    ),
    FileFinding("NAMING", "", why="\x00odd", level=Severity.WARNING),
)
REPORTS = (
    FileReport("dir/a,b: ü.avsc", Outcome.FAILED, FINDINGS),
    FileReport("new.avsc", Outcome.UNCOMPARED),
    FileReport("/abs/fine.avsc", Outcome.PASSED),
)
SARIF_PARTS = {
    "type": "object",
    "required": ["version", "runs"],
    "additionalProperties": False,
    "properties": {
        "$schema": {"type": "string", "format": "uri"},
        "version": {"enum": ["2.1.0"]},
        "runs": {"type": "array", "items": {"$ref": "#/definitions/run"}},
    },
    "definitions": {
        "message": {
            "type": "object",
            "required": ["text"],
            "additionalProperties": False,
            "properties": {"text": {"type": "string", "minLength": 1}},
        },
        "run": {
            "type": "object",
            "required": ["tool"],
            "additionalProperties": False,
            "properties": {
                "tool": {"required": ["driver"], "properties": {"driver": {"$ref": "#/definitions/driver"}}},
                "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                "results": {"type": "array", "items": {"$ref": "#/definitions/result"}},
            },
        },
        "driver": {
            "type": "object",
            "required": ["name"],
            "additionalProperties": False,
            "properties": {
                "name": {"type": "string"},
                "version": {"type": "string"},
                "informationUri": {"type": "string", "format": "uri"},
                "rules": {
                    "type": "array",
                    "uniqueItems": True,
                    "items": {
                        "type": "object",
                        "required": ["id"],
                        "additionalProperties": False,
                        "properties": {
                            "id": {"type": "string"},
                            "shortDescription": {"$ref": "#/definitions/message"},
                        },
                    },
                },
            },
        },
        "result": {
            "type": "object",
            "required": ["message"],
            "additionalProperties": False,
            "properties": {
                "ruleId": {"type": "string"},
                "ruleIndex": {"type": "integer", "minimum": -1},
                "level": {"enum": ["none", "note", "warning", "error"]},
                "message": {"$ref": "#/definitions/message"},
                "partialFingerprints": {"type": "object", "additionalProperties": {"type": "string"}},
                "locations": {"type": "array", "items": {"$ref": "#/definitions/location"}},
            },
        },
        "location": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "physicalLocation": {
                    "type": "object",
                    "required": ["artifactLocation"],
                    "additionalProperties": False,
                    "properties": {
                        "artifactLocation": {
                            "type": "object",
                            "additionalProperties": False,
                            "properties": {
                                "uri": {"type": "string", "format": "uri-reference"},
                                "uriBaseId": {"type": "string"},
                            },
                        },
                        "region": {
                            "type": "object",
                            "additionalProperties": False,
                            "properties": {
                                "startLine": {"type": "integer", "minimum": 1},
                                "startColumn": {"type": "integer", "minimum": 1},
                            },
                        },
                    },
                },
                "logicalLocations": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "additionalProperties": False,
                        "properties": {"fullyQualifiedName": {"type": "string"}},
                    },
                },
            },
        },
    },
}
"""The part of SARIF 2.1.0 that is written: the members, types and demands of the standard."""


def test_sarif_follows_the_standard() -> None:
    """The log has the members of SARIF 2.1.0 only; every result names a rule of the driver, by index too."""
    log = json.loads(json.dumps(build_sarif(REPORTS)))
    jsonschema_rs.Draft7Validator(SARIF_PARTS, validate_formats=True).validate(log)
    run = log["runs"][0]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert [rules[result["ruleIndex"]] for result in run["results"]] == [each["ruleId"] for each in run["results"]]
    first: dict[str, Any] = run["results"][0]
    assert first["level"] == "error"
    assert first["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "dir/a%2Cb%3A%20%C3%BC.avsc", "uriBaseId": "SRCROOT"},
        "region": {"startLine": 4, "startColumn": 7},
    }
    assert run["results"][1]["level"] == "warning"


def test_a_finding_is_the_same_when_it_moves() -> None:
    """The fingerprint of a finding does not contain its line, so code scanning recognises a moved finding."""
    moved = FileReport("dir/a,b: ü.avsc", Outcome.FAILED, (FileFinding.from_finding(FINDINGS[0], None),))
    at_line_4, nowhere = (build_sarif([FileReport("f", Outcome.FAILED, each.findings)]) for each in (REPORTS[0], moved))
    prints = [log["runs"][0]["results"][0]["partialFingerprints"]["steleFinding/v1"] for log in (at_line_4, nowhere)]
    assert prints[0].startswith("f|TYPE_MISMATCH|/fields/0")
    assert prints[1].startswith("f|TYPE_MISMATCH|/fields/0")


def test_sarif_of_nothing() -> None:
    """A run without findings is a log without results, which closes earlier findings."""
    assert build_sarif([])["runs"][0]["results"] == []


def test_annotations_are_escaped() -> None:
    """A workflow command is one line; its properties escape colons and commas too."""
    first, second = render_github(REPORTS).splitlines()
    assert first == (
        "::error file=dir/a%2Cb%3A ü.avsc,line=4,col=7,title=TYPE_MISMATCH::50%25 of it,%0Aor: more%0AAt /fields/0.%0A"
        "Compared with main:a,b.avsc.%0AMend it."
    )
    assert second == "::warning file=dir/a%2Cb%3A ü.avsc,title=NAMING::\x00odd"


def test_junit_has_a_case_for_each_file() -> None:
    """Breaking findings fail a case, warnings are in its output, and a file that was not compared is skipped."""
    root = ET.fromstring(render_junit(REPORTS))
    assert root.attrib == {"tests": "3", "failures": "1", "errors": "0"}
    cases = root.findall("testsuite/testcase")
    assert [case.get("file") for case in cases] == [report.file for report in REPORTS]
    failure = cases[0].find("failure")
    assert failure is not None
    assert failure.get("message") == "dir/a,b: ü.avsc:4:7: TYPE_MISMATCH"
    assert "\ufffdodd" in (cases[0].findtext("system-out") or "")
    assert cases[1].find("skipped") is not None
    assert list(cases[2]) == []
