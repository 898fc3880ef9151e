"""Imports and exports of a document, listed without its references."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stele.formats.registry import get_format

LINE = {"type": "record", "name": "Line", "fields": [{"name": "up", "type": ["null", "Line"]}]}
AVRO = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "total", "type": "Money"},
        {"name": "by", "type": ["null", {"type": "array", "items": "crm.Person"}]},
        {
            "name": "line",
            "type": {"type": "record", "name": "Line", "fields": [{"name": "up", "type": ["null", "Line"]}]},
        },
        {"name": "again", "type": "Line"},
    ],
}
JSON = {
    "$id": "https://x.org/order.json",
    "$defs": {"a": {"$id": "inner.json"}, "b": {"$ref": "inner.json"}, "c": {"$ref": "#/$defs/a"}},
    "properties": {"m": {"$ref": "money.json#/x"}, "p": {"$ref": "http://json-schema.org/draft-07/schema#"}},
}
XSD = """<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:o">
<xs:include schemaLocation="money.xsd"/><xs:import namespace="urn:x" schemaLocation="x.xsd"/></xs:schema>"""
CASES = [
    ("avro", json.dumps(AVRO), ["shop.Money", "crm.Person"], ["shop.Order", "shop.Line"]),
    ("json", json.dumps(JSON), ["money.json"], ["https://x.org/order.json"]),
    (
        "protobuf",
        'import "shop/money.proto"; import "google/protobuf/any.proto"; import public "a.proto";',
        ["shop/money.proto", "a.proto"],
        [],
    ),
    ("thrift", 'include "money.thrift"\nstruct A {}', ["money.thrift"], []),
    ("xsd", XSD, ["money.xsd", "x.xsd"], ["urn:o"]),
]


@pytest.mark.parametrize(("name", "text", "imports", "exports"), CASES, ids=[case[0] for case in CASES])
def test_documents_say_what_they_need(name: str, text: str, imports: list[str], exports: list[str]) -> None:
    """Imports are the names of references that the document needs, exports the names it is known by."""
    fmt: Any = get_format(name)
    assert (list(fmt.list_imports(text.encode())), list(fmt.list_exports(text.encode()))) == (imports, exports)
