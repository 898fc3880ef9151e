"""Compatibility checks of Avro by Stele and by the `avro` package in one run: parse both schemas and compare them.

python -m bench.avro_check
"""

from __future__ import annotations

import json
import timeit
from collections.abc import Callable
from importlib.metadata import version as version_of
from typing import Any

import avro.compatibility
import avro.schema
from bench.report import Row, report

from stele.formats.avro import AVRO


def make_order_schema(*, version: int) -> dict[str, Any]:
    """Return a record of 15 fields with nested records, a union, an enum and logical types.

    Version 2 widens a type and adds a field.
    """
    address = {
        "type": "record",
        "name": "Address",
        "fields": [{"name": name, "type": "string"} for name in ("street", "city", "country")],
    }
    item = {
        "type": "record",
        "name": "Item",
        "fields": [
            {"name": "sku", "type": "string"},
            {"name": "quantity", "type": "int" if version == 1 else "long"},
            {"name": "price", "type": "double"},
        ],
    }
    fields: list[dict[str, Any]] = [
        {"name": "id", "type": "long", "doc": "Number of the order"},
        {"name": "customer", "type": "string"},
        {"name": "email", "type": ["null", "string"], "default": None},
        {"name": "placed", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "total", "type": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "PAID"], "default": "NEW"}},
        {"name": "shipping", "type": address},
        {"name": "billing", "type": ["null", "Address"], "default": None},
        {"name": "items", "type": {"type": "array", "items": item}},
        {"name": "tags", "type": {"type": "map", "values": "string"}},
        {"name": "gift", "type": "boolean"},
        {"name": "weight", "type": "float" if version == 1 else "double"},
        {"name": "note", "type": "string", "default": ""},
        {"name": "signature", "type": "bytes"},
        {"name": "revision", "type": "int"},
    ]
    if version == 2:
        fields.append({"name": "channel", "type": ["null", "string"], "default": None})
    return {"type": "record", "name": "Order", "namespace": "com.acme", "doc": "An order", "fields": fields}


def check_with_stele(old: bytes, new: bytes) -> bool:
    """Return whether `new` can read data of `old`, according to Stele."""
    findings = AVRO.check(AVRO.parse(new, {}), AVRO.parse(old, {}))
    return not any(finding.breaks for finding in findings)


def check_with_apache(old: bytes, new: bytes) -> bool:
    """Return whether `new` can read data of `old`, according to the avro package."""
    checker = avro.compatibility.ReaderWriterCompatibilityChecker()
    result = checker.get_compatibility(avro.schema.parse(new.decode()), avro.schema.parse(old.decode()))
    return bool(result.compatibility is avro.compatibility.SchemaCompatibilityType.compatible)


def measure_milliseconds(check: Callable[[bytes, bytes], bool], old: bytes, new: bytes) -> float:
    """Return the milliseconds of a check, the best of five rounds of 200 checks."""
    return min(timeit.repeat(lambda: check(old, new), number=200, repeat=5)) / 200 * 1000


def main() -> None:
    """Compare both for a compatible and an incompatible pair, and Stele also with parsed schemas."""
    first, second = (json.dumps(make_order_schema(version=version)).encode() for version in (1, 2))
    rows: list[Row] = []
    for label, old, new in (("compatible", first, second), ("incompatible", second, first)):
        assert check_with_stele(old, new) == check_with_apache(old, new) == (label == "compatible")
        ours, theirs = (
            measure_milliseconds(check_with_stele, old, new),
            measure_milliseconds(check_with_apache, old, new),
        )
        reader, writer = AVRO.parse(new, {}), AVRO.parse(old, {})
        alone = min(timeit.repeat(lambda r=reader, w=writer: AVRO.check(r, w), number=500, repeat=5)) / 500 * 1000
        rows.append(
            {"pair": label, "stele ms": ours, "parsed before ms": alone, "avro ms": theirs, "ratio": ours / theirs}
        )
    notes = ["A record of 15 fields, nested types among them: parse both texts, compare, write the findings."]
    report("avro_check", rows, notes, {"avro": version_of("avro")})


if __name__ == "__main__":
    main()
