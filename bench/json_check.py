"""Compatibility checks of JSON Schema over the conformance pairs, compared with jsonschema-rs compiling both schemas.

python -m bench.json_check
"""

from __future__ import annotations

import json
from importlib.metadata import version as version_of
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter

import jsonschema_rs
from bench.report import Row, report

from stele.formats.jsonschema import JSON_SCHEMA

CASES = Path(__file__).parent.parent / "tests" / "conformance" / "formats" / "cases" / "apicurio-json.jsonl"
RULESETS = ("confluent", "containment")
ROUNDS = 15


def published_pairs() -> list[tuple[bytes, bytes]]:
    """Return (reader, writer) texts of the published cases, in both directions."""
    lines = [json.loads(line) for line in CASES.read_text(encoding="ascii").splitlines()]
    pairs = [(case["new"].encode(), case["old"].encode()) for case in lines if "old" in case]
    return [pair for new, old in pairs for pair in ((new, old), (old, new))]


def with_findings(ruleset: str) -> list[tuple[bytes, bytes]]:
    """Return the pairs for which a ruleset has findings, which are the slowest."""
    return [
        (reader, writer)
        for reader, writer in published_pairs()
        if JSON_SCHEMA.check(JSON_SCHEMA.parse(reader, {}), JSON_SCHEMA.parse(writer, {}), ruleset)
    ]


def measure_times(ruleset: str, reader: bytes, writer: bytes) -> tuple[float, float, float]:
    """Return the best times in ms of a check alone, of parsing and checking, and of compiling by jsonschema-rs.

    Every round parses again, so that nothing cached in a parsed schema speeds up the check.
    """
    best = [float("inf")] * 3
    for _ in range(ROUNDS):
        start = perf_counter()
        new, old = JSON_SCHEMA.parse(reader, {}), JSON_SCHEMA.parse(writer, {})
        parsed = perf_counter()
        JSON_SCHEMA.check(new, old, ruleset)
        checked = perf_counter()
        for text in (reader, writer):
            jsonschema_rs.validator_for(json.loads(text))
        compiled = perf_counter()
        best = [min(*pair) for pair in zip(best, (checked - parsed, checked - start, compiled - checked), strict=True)]
    return best[0] * 1000, best[1] * 1000, best[2] * 1000


def main() -> None:
    """Print median and 95th percentile of the pairs with findings, per ruleset, and the ratio to compiling."""
    rows: list[Row] = []
    for ruleset in RULESETS:
        measured = [measure_times(ruleset, reader, writer) for reader, writer in with_findings(ruleset)]
        alone, whole, compiled = (list(column) for column in zip(*measured, strict=True))
        rows.append(
            {
                "ruleset": ruleset,
                "pairs": len(measured),
                "check ms": median(alone),
                "check p95": quantiles(alone, n=20)[-1],
                "with parsing ms": median(whole),
                "with parsing p95": quantiles(whole, n=20)[-1],
                "compile both ms": median(compiled),
                "check/compile": median(alone) / median(compiled),
                "all/compile": median(whole) / median(compiled),
            }
        )
    notes = [
        "Pairs of the published suite, both ways, on which the ruleset has findings; each round parses them anew.",
        f"Best of {ROUNDS} rounds, the three timed in turn; compile is jsonschema-rs reading and compiling both.",
    ]
    report("json_check", rows, notes, {"jsonschema-rs": version_of("jsonschema-rs")})


if __name__ == "__main__":
    main()
