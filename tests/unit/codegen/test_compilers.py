"""Compilers and targets: RIP-42's compiler interface, and the generated Python code."""

from __future__ import annotations

import dataclasses
import json
import sys
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stele.codegen import SourceFolder, get_compiler, publish_sources
from stele.errors import CannotConvert, InvalidRequest, MalformedSchema, UnknownFormat

ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "shop.v1",
    "doc": 'An "order" \\ of """ somebody.',
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "class", "type": "string", "default": "it's"},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["OPEN", "None"]}, "default": "OPEN"},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "tags", "type": {"type": "array", "items": "string"}, "default": []},
        {"name": "total", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "parent", "type": ["null", "Order"], "default": None, "doc": "where it comes from"},
        {"name": "hash", "type": {"type": "fixed", "name": "Md5", "size": 16}},
        {"name": "by", "type": {"type": "map", "values": ["int", "string"]}},
    ],
}


class RecordingTarget:
    """A target that keeps the files it receives."""

    def __init__(self) -> None:
        self.given: list[tuple[Mapping[str, bytes], str]] = []

    def upload(self, files: Mapping[str, bytes], context: str) -> None:
        """Keep the files and the context."""
        self.given.append((files, context))


def load_module(files: Mapping[str, bytes]) -> types.ModuleType:
    """Import the single module of some files, and return it."""
    ((path, source),) = files.items()
    module = types.ModuleType("generated")
    sys.modules["generated"] = module
    exec(compile(source, path, "exec"), module.__dict__)
    return module


def test_25_a_compiler_makes_files_and_a_target_takes_them(tmp_path: Path) -> None:
    """25: an Avro schema becomes a map of files, and the target is called with that map and the context."""
    files = get_compiler("python").compile(json.dumps(ORDER), "AVRO")
    assert list(files) == ["shop/v1/order.py"]
    assert all(isinstance(data, bytes) for data in files.values())
    target = RecordingTarget()
    publish_sources(files, target, "shop:order:1.0")
    assert target.given == [(files, "shop:order:1.0")]
    publish_sources(files, SourceFolder(tmp_path), "shop/1.0")
    assert (tmp_path / "shop/1.0/shop/v1/order.py").read_bytes() == files["shop/v1/order.py"]


def test_the_classes_work() -> None:
    """The generated module can be imported, and has the schema's fields, types, defaults and documentation."""
    module = load_module(get_compiler("python").compile(json.dumps(ORDER), "AVRO"))
    order = module.Order(id=1, total=None, hash=b"", by={})
    assert (order.class_, order.state, order.note, order.tags) == ("it's", module.State.OPEN, None, [])
    assert module.Order.__doc__ == 'An "order" \\ of """ somebody.'
    field_types = {field.name: field.type for field in dataclasses.fields(module.Order)}
    assert field_types == {
        "id": "int",
        "class_": "str",
        "state": "State",
        "note": "str | None",
        "tags": "list[str]",
        "total": "Decimal",
        "parent": "Order | None",
        "hash": "bytes",
        "by": "dict[str, int | str]",
    }
    assert [member.value for member in module.State] == ["OPEN", "None"]
    with pytest.raises(dataclasses.FrozenInstanceError):
        order.id = 2


@pytest.mark.parametrize(
    ("schema_type", "idl", "path", "annotation"),
    [
        ("PROTOBUF", 'syntax = "proto3"; package p; message M { int64 a = 1; }', "p/m.py", "int | None"),
        ("THRIFT", "struct T { 1: required string a }", "t.py", "str"),
        ("JSON", '{"title": "T", "type": "object", "properties": {"a": {"type": "boolean"}}}', "t.py", "bool | None"),
    ],
)
def test_other_languages(schema_type: str, idl: str, path: str, annotation: str) -> None:
    """Every schema language that converts to the model can be compiled."""
    files = get_compiler("python").compile(idl, schema_type)
    assert [name.lower() for name in files] == [path]
    module = load_module(files)
    (record_class,) = (kind for kind in vars(module).values() if dataclasses.is_dataclass(kind))
    assert [(field.name, field.type) for field in dataclasses.fields(record_class)] == [("a", annotation)]


names = st.text(min_size=1, max_size=8) | st.sampled_from(['"""', "'''", "\\", "a\nb", "import os", "é", "__init__"])


@given(st.lists(names, min_size=1, max_size=4, unique=True), names)
def test_no_name_is_code(members: list[str], doc: str) -> None:
    """Names and texts of a schema never become code in the generated module."""
    properties = {name: {"type": "string", "default": name, "description": doc} for name in members}
    schema = {"title": "T", "description": doc, "type": "object", "properties": properties}
    try:
        text = json.dumps(schema)
        files = get_compiler("python").compile(text, "JSON")
    except (CannotConvert, MalformedSchema, UnicodeEncodeError):
        return
    module = load_module(files)
    own: list[Any] = [kind for kind in vars(module).values() if dataclasses.is_dataclass(kind)]
    assert len(own) == 1
    assert [field.default for field in dataclasses.fields(own[0])] == list(properties)


def test_what_cannot_be_compiled() -> None:
    """A schema without a record, a format without fields and unknown languages raise an error."""
    python = get_compiler("python")
    with pytest.raises(CannotConvert):
        python.compile('"int"', "AVRO")
    with pytest.raises(CannotConvert):
        python.compile("text", "opaque")
    with pytest.raises(MalformedSchema):
        python.compile("{", "AVRO")
    with pytest.raises(UnknownFormat):
        python.compile("", "COBOL")
    with pytest.raises(InvalidRequest, match="python"):
        get_compiler("cobol")


@pytest.mark.parametrize("path", ["", "/etc/x", "a//b", "../x", "a/../../x", "a\\b", "a\0"])
def test_files_stay_where_they_belong(path: str, tmp_path: Path) -> None:
    """Paths and contexts that lead out of the folder are refused."""
    with pytest.raises(InvalidRequest):
        publish_sources({path: b""}, SourceFolder(tmp_path), "c")
    with pytest.raises(InvalidRequest):
        publish_sources({}, SourceFolder(tmp_path), "c")
    for context in ("", ".", "..", "../c", "/c"):
        with pytest.raises(InvalidRequest):
            publish_sources({"a": b""}, SourceFolder(tmp_path / "root"), context)


def test_a_context_is_replaced_whole(tmp_path: Path) -> None:
    """Publishing a context again removes its old files, and leaves no other files behind."""
    publish_sources({"a": b"1", "b/c": b"2"}, SourceFolder(tmp_path), "c")
    publish_sources({"a": b"3"}, SourceFolder(tmp_path), "c")
    assert [(str(p.relative_to(tmp_path)), p.read_bytes()) for p in tmp_path.rglob("*") if p.is_file()] == [
        ("c/a", b"3")
    ]
