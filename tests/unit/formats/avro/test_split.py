"""Splitting of Avro documents: which types are moved, which stay, and the resulting documents."""

from __future__ import annotations

import json
from typing import Any

from stele.formats.avro import AVRO


def record(name: str, *types: Any, **more: Any) -> dict[str, Any]:
    """A record with fields of these types."""
    fields = [{"name": f"f{number}", "type": each} for number, each in enumerate(types)]
    return {"type": "record", "name": name, **more, "fields": fields}


def split(schema: Any) -> tuple[Any, dict[str, Any]]:
    """The document and its parts as JSON values."""
    done = AVRO.split_types(json.dumps(schema).encode())
    return json.loads(done.text), {name: json.loads(text) for name, text in done.types.items()}


def test_an_array_of_types() -> None:
    """Types in an array are moved and the array has their names; a type inside gets the namespace that it inherited."""
    money = {"type": "fixed", "name": "Money", "size": 8}
    array = [record("Order", money, namespace="shop"), record("shop.Refund", ["null", "Money"])]
    assert split(array) == (
        ["shop.Order", "shop.Refund"],
        {
            "shop.Money": money | {"namespace": "shop"},
            "shop.Order": record("Order", "shop.Money", namespace="shop"),
            "shop.Refund": record("shop.Refund", ["null", "Money"]),
        },
    )


def test_types_in_a_circle_stay_together() -> None:
    """Types that refer to each other stay together; other types that they use are moved."""
    leaf = {"type": "enum", "name": "Leaf", "symbols": ["A"]}
    tree = record("Tree", ["null", record("Branch", "Tree", {"type": "array", "items": leaf})], "Branch")
    assert split(record("Root", tree)) == (
        record("Root", "Tree"),
        {
            "Leaf": leaf,
            "Tree": record("Tree", ["null", record("Branch", "Tree", {"type": "array", "items": "Leaf"})], "Branch"),
        },
    )


def test_a_type_without_a_name_from_outside_stays() -> None:
    """A type of the null namespace inside a namespace stays, because nothing there can refer to it."""
    inner = {"type": "enum", "name": "Kind", "namespace": "", "symbols": ["A"]}
    assert split(record("Order", inner, namespace="shop")) == (record("Order", inner, namespace="shop"), {})


def test_nothing_to_take_out() -> None:
    """A document without types to move is returned byte for byte."""
    text = '{"type":  "record", "name": "A", "fields": []}'
    assert AVRO.split_types(text.encode()).text == text
