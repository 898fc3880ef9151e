"""The value a field reads as when it is not set, made comparable across types."""

from __future__ import annotations

import math
import struct

from google.protobuf.descriptor_pb2 import FieldDescriptorProto
from google.protobuf.text_encoding import CUnescape

from stele.formats.protobuf.buf.module import Cardinality, FieldDeclaration

_F = FieldDescriptorProto
_FLOATS = frozenset({_F.TYPE_FLOAT, _F.TYPE_DOUBLE})

Default = bytes | int | float
"""Strings in UTF-8, enums and booleans as numbers."""


def default_of(field: FieldDeclaration) -> Default | None:
    """The declared or usual default; None for a field that cannot have one (list, map, message)."""
    if field.cardinality in {Cardinality.REPEATED, Cardinality.MAP}:
        return None
    kind, proto = field.kind, field.proto
    if kind in {_F.TYPE_MESSAGE, _F.TYPE_GROUP}:
        return None
    if kind == _F.TYPE_ENUM:
        return _enum_default(field)
    text = proto.default_value
    if kind == _F.TYPE_STRING:
        return text.encode()
    if kind == _F.TYPE_BYTES:
        return bytes(CUnescape(text))
    if kind == _F.TYPE_BOOL:
        return text == "true"
    if kind in _FLOATS:
        return float(text or 0)
    return int(text or 0)


def _enum_default(field: FieldDeclaration) -> int:
    """The first value where none is declared, which is not 0 for every closed enum."""
    enum, name = field.module.find_enum(field.type_name), field.proto.default_value
    return enum.numbers[name] if name else enum.proto.value[0].number


def is_same_default(new: FieldDeclaration, old: FieldDeclaration) -> bool:
    """Whether the defaults of two fields mean the same: equal, or both what zero is for their type."""
    now, was = default_of(new), default_of(old)
    if now is None or was is None or (not now and not was):
        return True
    if isinstance(now, bytes) or isinstance(was, bytes):
        return now == was
    if new.kind in _FLOATS and old.kind in _FLOATS:
        if _F.TYPE_FLOAT in {new.kind, old.kind}:
            now, was = _round_to_float32(now), _round_to_float32(was)
        if math.isnan(now) or math.isnan(was):
            return math.isnan(now) and math.isnan(was)
    elif _F.TYPE_FLOAT in {new.kind, old.kind}:
        now, was = (_round_to_float32(v) if side.kind == _F.TYPE_FLOAT else v for side, v in ((new, now), (old, was)))
    return now == was


def _round_to_float32(value: float) -> float:
    """The nearest number a `float` field can hold."""
    try:
        rounded: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return rounded
