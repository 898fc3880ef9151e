"""The schemas of the walk, with their compatibility written by hand.

A meaning is a schema in any spelling; `READS` gives the meanings whose data it can read. A draft is one spelling of a
meaning: the bytes that a client sends, and the text that the Confluent dialect prints for them.
"""

from __future__ import annotations

from functools import cache
from random import Random
from typing import NamedTuple

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
)


class Draft(NamedTuple):
    """One spelling of a schema. type is the full name of the type it declares, '' if it has none."""

    format: str
    meaning: str
    raw: str
    printed: str
    type: str = ""


def _record(fields: str, name: str = "R") -> str:
    return f'{{"type":"record","name":"{name}","namespace":"n","fields":[{fields}]}}'


_A, _B = '{"name":"a","type":"int"}', '{"name":"b","type":"string"'
_R0, _R1, _R2 = _record(_A), _record(f'{_A},{_B},"default":""}}'), _record(f"{_A},{_B}}}")
_R3, _S0 = _record('{"name":"a","type":"long"}'), _record('{"name":"x","type":"int"}', "S")
_WORD = '{"type":"string"}'
"""A text that is both Avro and JSON Schema. Only the client can tell which one it is."""

_J0 = '{"type":"object","properties":{"a":{"type":"integer"}},"additionalProperties":false}'
_J1 = _J0.replace("}},", '},"b":{"type":"string"}},')
_J2 = _J0.replace("integer", "number")
_J0_TURNED = '{"additionalProperties":false,"type":"object","properties":{"a":{"type":"integer"}}}'
_M0 = 'syntax = "proto3";\npackage p;\n\nmessage M {\n  int32 a = 1;\n}\n'
_M1 = _M0.replace("  int32 a = 1;\n", "  int32 a = 1;\n  string b = 2;\n")
_M2 = _M0.replace("int32 a", "string a")

DRAFTS = (
    Draft("avro", "R0", _R0, _R0, "n.R"),
    Draft("avro", "R0", '{"name": "n.R", "type": "record", "fields": [{"type": "int", "name": "a"}]}', _R0, "n.R"),
    Draft("avro", "R1", _R1, _R1, "n.R"),
    Draft("avro", "R1", _R1.replace(",", ", "), _R1, "n.R"),
    Draft("avro", "R2", _R2, _R2, "n.R"),
    Draft("avro", "R3", _R3, _R3, "n.R"),
    Draft("avro", "S0", _S0, _S0, "n.S"),
    Draft("avro", "string", _WORD, '"string"'),
    Draft("json", "J0", _J0, _J0),
    Draft("json", "J0", _J0_TURNED.replace(",", " ,\n"), _J0_TURNED),
    Draft("json", "J1", _J1, _J1),
    Draft("json", "J2", _J2, _J2),
    Draft("json", "JT", _J0.replace("{", '{"title":"T",', 1), _J0.replace("{", '{"title":"T",', 1), "T"),
    Draft("json", "word", _WORD, _WORD),
    Draft("protobuf", "M0", _M0, _M0, "p.M"),
    Draft("protobuf", "M0", " ".join(_M0.split()), _M0, "p.M"),
    Draft("protobuf", "M1", _M1, _M1, "p.M"),
    Draft("protobuf", "M2", _M2, _M2, "p.M"),
    Draft("opaque", "some words", "some words", "some words"),
    Draft("opaque", "other words", "other words", "other words"),
)

READS: dict[str, set[str]] = {
    "R0": {"R0", "R1", "R2"},  # drops b
    "R1": {"R0", "R1", "R2"},  # takes b, or its default
    "R2": {"R1", "R2"},  # wants b
    "R3": {"R0", "R1", "R2", "R3"},  # reads int as long, drops b
    "S0": {"S0"},
    "string": {"string"},
    "J0": {"J0", "JT"},  # closed: takes no b
    "J1": {"J0", "J1", "JT"},
    "J2": {"J0", "J2", "JT"},  # an integer is a number
    "JT": {"J0", "JT"},
    "word": {"word"},
    "M0": {"M0", "M1"},
    "M1": {"M0", "M1"},
    "M2": {"M2"},
}
"""The meanings whose data a meaning can read, by meaning."""


SAME_DATA = {"R1", "R2"}
"""Meanings with the same Parsing Canonical Form, which has no defaults."""


def pick_draft(random: Random, like: str, *, opaque: bool = True) -> int:
    """Draw the number of a draft, mostly of the format like ('' for none).

    Without opaque, opaque drafts are left out.
    """
    numbers = [number for number, draft in enumerate(DRAFTS) if opaque or draft.format != "opaque"]
    suited = [number for number in numbers if DRAFTS[number].format == like]
    return random.choice(suited if suited and random.random() < 0.75 else numbers)


_FIELDS: dict[str, tuple[tuple[str, FieldDescriptorProto.Type.ValueType], ...]] = {
    "M0": (("a", FieldDescriptorProto.TYPE_INT32),),
    "M1": (("a", FieldDescriptorProto.TYPE_INT32), ("b", FieldDescriptorProto.TYPE_STRING)),
    "M2": (("a", FieldDescriptorProto.TYPE_STRING),),
}


def compile_draft(meaning: str) -> bytes:
    """The descriptor set of a Protobuf schema, which is how some clients send it."""
    message = DescriptorProto(name="M")
    for number, (name, kind) in enumerate(_FIELDS[meaning], 1):
        label = FieldDescriptorProto.LABEL_OPTIONAL
        message.field.add(name=name, number=number, type=kind, label=label, json_name=name)
    file = FileDescriptorProto(name="p.proto", package="p", syntax="proto3", message_type=[message])
    return FileDescriptorSet(file=[file]).SerializeToString(deterministic=True)


def decompile_draft(data: bytes) -> str:
    """The meaning of a descriptor set."""
    (file,) = FileDescriptorSet.FromString(data).file
    (message,) = file.message_type
    fields = tuple((field.name, field.type) for field in message.field)
    assert (file.package, file.syntax, message.name) == ("p", "proto3", "M")
    return next(meaning for meaning, known in _FIELDS.items() if known == fields)


COMPILED = {compile_draft(meaning): meaning for meaning in _FIELDS}


@cache
def interpret_bytes(data: bytes, format_name: str) -> Draft | None:
    """Return the draft of some bytes in a format; None if they are not a schema of it."""
    if format_name == "opaque":  # Any text is a schema, and its only meaning is itself.
        words = data.decode("utf-8", "replace")
        return Draft("opaque", words, words, words)
    drafts = [draft for draft in DRAFTS if draft.format == format_name]
    if format_name == "protobuf" and data in COMPILED:
        return next(draft for draft in drafts if draft.meaning == COMPILED[data])
    return next((draft for draft in drafts if data in {draft.raw.encode(), draft.printed.encode()}), None)
