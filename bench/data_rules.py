"""Costs of limits on data rules: each rule on one record, in this process and in one that can be killed, in one run.

python -m bench.data_rules
"""

from __future__ import annotations

import timeit
from collections.abc import Callable
from importlib.metadata import version as version_of
from typing import Any

from bench.report import Row, report

from stele.client import ResolvedSchema, Rule, RuleSet
from stele.client.serdes.rules import RecordContext, RuleEngine, RuleMode, RulePhase, Rules
from stele.client.serdes.rules.json_fields import json_walk
from stele.client.serdes.schemas import parse_schema

RECORD: dict[str, Any] = {
    "id": 7,
    "note": "ring twice",
    "customer": {"name": "Ann", "email": "ann@shop.example", "phone": "+49 30 1234"},
    "lines": [{"sku": f"A-{n}", "quantity": n, "price": 1.5 * n} for n in range(1, 6)],
    "tags": ["new", "gift"],
}
TEXT = """{"type": "object", "properties": {"id": {"type": "integer"}, "note": {"type": "string"},
  "customer": {"type": "object", "properties": {"name": {"type": "string"}, "email": {"type": "string"},
  "phone": {"type": "string"}}}}}"""
RULES = {
    "CEL condition": Rule(
        "r", kind="CONDITION", mode="WRITE", type="CEL", expr="message.id > 0 && size(message.lines) < 9"
    ),
    "CEL transformation": Rule(
        "r", mode="WRITE", type="CEL", expr="{'id': message.id + 1, 'note': message.note + '!', 'lines': message.lines}"
    ),
    "CEL_FIELD, five fields": Rule(
        "r", mode="WRITE", type="CEL_FIELD", expr="typeName == 'STRING' ; value + '.' + name"
    ),
    "JSONATA rename": Rule(
        "r", mode="WRITE", type="JSONATA", expr="$merge([$sift($, function($v, $k) {$k != 'note'}), {'remark': note}])"
    ),
    "JSONATA choice": Rule(
        "r", mode="WRITE", type="JSONATA", expr="{'id': id, 'mail': customer.email, 'lines': lines}"
    ),
}
ROUNDS = 9
CALLS = 40


def make_runner(rule: Rule, rules: Rules) -> Callable[[], Any]:
    """Return a function that runs a rule on the record."""
    schema = ResolvedSchema(TEXT, "JSON", rule_set=RuleSet(domain_rules=[rule]))
    engine, walk = RuleEngine(rules, None), json_walk(parse_schema(schema).parsed)
    record = RecordContext("orders-value", "orders", original=RECORD)
    return lambda: engine.run_phase(RulePhase.DOMAIN, RuleMode.WRITE, schema, RECORD, record, walk)


def main() -> None:
    """Time both ways in turns, and report the best rounds."""
    rows: list[Row] = []
    for name, rule in RULES.items():
        here, bounded = make_runner(rule, Rules(trusts=lambda _: True)), make_runner(rule, Rules())
        assert here() == bounded()
        times: list[tuple[float, float]] = [
            (timeit.timeit(here, number=CALLS), timeit.timeit(bounded, number=CALLS)) for _ in range(ROUNDS)
        ]
        rows.append(
            {
                "rule": name,
                "in process ms": min(here for here, _ in times) / CALLS * 1000,
                "bounded ms": min(bounded for _, bounded in times) / CALLS * 1000,
                "ratio": min(bounded for _, bounded in times) / min(here for here, _ in times),
            }
        )
    report(
        "data_rules",
        rows,
        notes=[
            f"best of {ROUNDS} rounds of {CALLS} records, in turns",
            "the process that evaluates was started before",
        ],
        versions={name: version_of(name) for name in ("cel-python", "jsonata-python", "google-re2")},
    )


if __name__ == "__main__":
    main()
