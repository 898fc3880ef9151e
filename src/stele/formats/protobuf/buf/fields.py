"""Rules about two fields with the same number in the same message, or two such extensions."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping
from functools import partial

from google.protobuf.descriptor_pb2 import Edition, FeatureSet, FieldDescriptorProto, FieldOptions
from google.protobuf.text_encoding import CUnescape

from stele.formats.protobuf.buf.module import CPP_CORD, CPP_VIEW, JAVA_VERIFY, Cardinality, FieldDeclaration
from stele.formats.protobuf.buf.rules import Rules, Violation
from stele.formats.protobuf.model import default_json_name


def cpp_string_type(field: FieldDeclaration) -> str:
    """Return STRING, STRING_PIECE, CORD or VIEW. `ctype` takes precedence while the edition has it."""
    options = field.proto.options
    if field.file.proto.edition < Edition.EDITION_2024 and options.HasField("ctype"):
        return FieldOptions.CType.Name(options.ctype)
    return {CPP_VIEW: "VIEW", CPP_CORD: "CORD"}.get(field.features.cpp_string_type, "STRING")


def java_utf8_validation(field: FieldDeclaration) -> str:
    """Return VERIFY or NONE: from the file's option or the feature for Java, else from the general feature."""
    file = field.file.proto
    if file.syntax != "editions" or file.options.HasField("java_string_check_utf8"):
        verify = file.options.java_string_check_utf8
    else:
        verify = field.features.java_utf8_validation == JAVA_VERIFY
    return "VERIFY" if verify or field.features.utf8_validation == FeatureSet.VERIFY else "NONE"


_F = FieldDescriptorProto
_FLOATS = frozenset({_F.TYPE_FLOAT, _F.TYPE_DOUBLE})

Default = bytes | int | float
"""A default value: strings in UTF-8, enums and booleans as numbers."""


def default_of(field: FieldDeclaration) -> Default | None:
    """Return the declared or usual default; None for a field that cannot have one (list, map, message)."""
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
    """Return the declared default, else the first value. In a closed enum the first value need not be 0."""
    enum, name = field.module.find_enum(field.type_name), field.proto.default_value
    return enum.numbers[name] if name else enum.proto.value[0].number


def is_same_default(new: FieldDeclaration, old: FieldDeclaration) -> bool:
    """Return whether two defaults have the same meaning: equal, or both the zero of their type."""
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
    """Return the nearest number a `float` field can hold."""
    try:
        rounded: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return rounded


_LONGS = frozenset({_F.TYPE_INT64, _F.TYPE_SINT64, _F.TYPE_UINT64, _F.TYPE_FIXED64, _F.TYPE_SFIXED64})
_NAMED = frozenset({_F.TYPE_MESSAGE, _F.TYPE_GROUP, _F.TYPE_ENUM})

_Families = Mapping[int, str]


def _build_families(*families: tuple[str, tuple[int, ...]]) -> _Families:
    """Return the family of each type. A type that is not listed is a family of its own."""
    listed = {kind: name for name, kinds in families for kind in kinds}
    return {kind: listed.get(kind, name) for name, kind in _F.Type.items()}


_BITS = (
    ("32 bits", (_F.TYPE_FIXED32, _F.TYPE_SFIXED32)),
    ("64 bits", (_F.TYPE_FIXED64, _F.TYPE_SFIXED64)),
)
_WIRE = _build_families(
    ("varint", (_F.TYPE_INT32, _F.TYPE_INT64, _F.TYPE_UINT32, _F.TYPE_UINT64, _F.TYPE_BOOL)),
    ("zigzag", (_F.TYPE_SINT32, _F.TYPE_SINT64)),
    *_BITS,
)
_WIRE_JSON = _build_families(
    ("short varint", (_F.TYPE_INT32, _F.TYPE_UINT32)),
    ("long varint", (_F.TYPE_INT64, _F.TYPE_UINT64)),
    *_BITS,
)


# --- type -----------------------------------------------------------------------------------------------------------


def _compare_type(new: FieldDeclaration, old: FieldDeclaration) -> Iterator[Violation]:
    if new.kind != old.kind or new.type_name != old.type_name:
        yield _type_violation(new, old, f"Generated code for field {new.proto.number} has another type.")


def _compare_wire_type(new: FieldDeclaration, old: FieldDeclaration) -> Iterator[Violation]:
    if old.kind == _F.TYPE_STRING and new.kind == _F.TYPE_BYTES:
        return  # every string is also a sequence of bytes
    yield from _compare_families(_WIRE, "", new, old)


def _compare_wire_json_type(new: FieldDeclaration, old: FieldDeclaration) -> Iterator[Violation]:
    yield from _compare_families(_WIRE_JSON, " or JSON", new, old)


def _compare_families(
    families: _Families, also: str, new: FieldDeclaration, old: FieldDeclaration
) -> Iterator[Violation]:
    if families[new.kind] != families[old.kind]:
        why = f"Binary{also} data of field {new.proto.number} is encoded in another way and would be misread."
        yield _type_violation(new, old, why)
    elif new.kind in _NAMED and new.type_name != old.type_name and not _is_widened_enum(new, old):
        yield _type_violation(new, old, f"Data of {old.type_name} would be read as {new.type_name}, another type.")


def _is_widened_enum(new: FieldDeclaration, old: FieldDeclaration) -> bool:
    """Return whether the new enum has the local name and all values of the old one."""
    names = new.type_name, old.type_name
    same = len({name.rsplit(".", 1)[-1] for name in names}) == 1
    return new.kind == _F.TYPE_ENUM and same and new.module.has_enum_values_of(names[0], old.module, names[1])


def _type_violation(new: FieldDeclaration, old: FieldDeclaration, why: str) -> Violation:
    fix = f"Keep `{old}`, and give the new field a number that was never used."
    return Violation(new.full_name, str(new), str(old), why, fix)


# --- cardinality ----------------------------------------------------------------------------------------------------

_SINGULAR = frozenset({Cardinality.EXPLICIT, Cardinality.IMPLICIT})
_PLURAL = frozenset({Cardinality.REPEATED, Cardinality.MAP})


def _compare_cardinality(
    alike: tuple[frozenset[Cardinality], ...], new: FieldDeclaration, old: FieldDeclaration
) -> Iterator[Violation]:
    """Report a changed cardinality, unless the old and the new one are equivalent."""
    now, was = new.cardinality, old.cardinality
    if now is was or (new.in_entry and old.in_entry) or any(now in known and was in known for known in alike):
        return
    yield Violation(
        new.full_name,
        now.value,
        was.value,
        f"Field {new.proto.number} holds another number of values, or distinguishes absence from the default"
        " in another way.",
        f"Keep `{old}`, and give the new field a number that was never used.",
    )


# --- names, defaults, oneofs ----------------------------------------------------------------------------------------


def _compare_name(new: FieldDeclaration, old: FieldDeclaration) -> Iterator[Violation]:
    """Report a changed name. Fields are compared by name, extensions by full name."""
    now, was = (side.full_name if side.owner is None else side.proto.name for side in (new, old))
    if now != was:
        yield Violation(
            new.full_name,
            str(new),
            str(old),
            f"Code and JSON that say {was} do not find the field, which is called {now}.",
            f"Keep the name {was}.",
        )


def _compare_json_name(new: FieldDeclaration, old: FieldDeclaration) -> Iterator[Violation]:
    if new.owner is None:
        return  # the JSON name of an extension is its full name
    now, was = (side.proto.json_name or default_json_name(side.proto.name) for side in (new, old))
    if now != was:
        yield Violation(
            new.full_name,
            f'json_name = "{now}"',
            f'json_name = "{was}"',
            f'JSON written with "{was}" is read without field {new.proto.number}.',
            f'Add `[json_name = "{was}"]` to the field.',
        )


def _compare_default(new: FieldDeclaration, old: FieldDeclaration) -> Iterator[Violation]:
    if not is_same_default(new, old):
        yield Violation(
            new.full_name,
            f"default {default_of(new)!r}",
            f"default {default_of(old)!r}",
            f"Data without field {new.proto.number} means one value to the writer and another to the reader.",
            "Keep the default.",
        )


def _compare_oneof(new: FieldDeclaration, old: FieldDeclaration) -> Iterator[Violation]:
    now, was = new.oneof, old.oneof
    if now != was:
        yield Violation(
            new.full_name,
            f"in oneof {now}" if now else "in no oneof",
            f"in oneof {was}" if was else "in no oneof",
            "Of the members of a oneof only the last in the data is kept; of independent fields each is.",
            f"Keep the field in oneof {was}." if was else "Keep the field outside of oneofs.",
        )


# --- options and features of languages ------------------------------------------------------------------------------


def _compare_jstype(new: FieldDeclaration, old: FieldDeclaration) -> Iterator[Violation]:
    if new.kind not in _LONGS or old.kind not in _LONGS:
        return
    now, was = (FieldOptions.JSType.Name(side.proto.options.jstype) for side in (new, old))
    if now != was:
        yield _option_violation(new, "jstype", now, was, "The field has another type in JavaScript.")


def _compare_cpp_string_type(new: FieldDeclaration, old: FieldDeclaration) -> Iterator[Violation]:
    texts = {_F.TYPE_STRING, _F.TYPE_BYTES}
    if new.kind not in texts or old.kind not in texts or (new.in_entry and old.in_entry):
        return
    now, was = cpp_string_type(new), cpp_string_type(old)
    if now != was and not (was == "STRING_PIECE" and now == "STRING"):
        yield _option_violation(
            new, "ctype or features.(pb.cpp).string_type", now, was, "The field has another type in C++."
        )


def _compare_java_utf8_validation(new: FieldDeclaration, old: FieldDeclaration) -> Iterator[Violation]:
    if new.kind != _F.TYPE_STRING or old.kind != _F.TYPE_STRING:
        return
    now, was = java_utf8_validation(new), java_utf8_validation(old)
    if now != was:
        name = "java_string_check_utf8 or features.(pb.java).utf8_validation"
        yield _option_violation(
            new, name, now, was, "Java checks strings in another way, and refuses or accepts other data."
        )


def _compare_utf8_validation(new: FieldDeclaration, old: FieldDeclaration) -> Iterator[Violation]:
    if new.kind != _F.TYPE_STRING or old.kind != _F.TYPE_STRING:
        return
    now, was = (FeatureSet.Utf8Validation.Name(_utf8_feature(side)) for side in (new, old))
    if now != was:
        why = "Bytes that are no UTF-8 are accepted by one side and refused by the other."
        yield _option_violation(new, "features.utf8_validation", now, was, why)


def _utf8_feature(field: FieldDeclaration) -> FeatureSet.Utf8Validation.ValueType:
    value: FeatureSet.Utf8Validation.ValueType = field.features.utf8_validation  # type: ignore[assignment]  # a plain number
    return value


def _option_violation(field: FieldDeclaration, name: str, now: str, was: str, why: str) -> Violation:
    return Violation(field.full_name, f"{name} = {now}", f"{name} = {was}", why, f"Keep {was}.")


RULES: Rules[FieldDeclaration] = {
    "FIELD_SAME_TYPE": _compare_type,
    "FIELD_WIRE_COMPATIBLE_TYPE": _compare_wire_type,
    "FIELD_WIRE_JSON_COMPATIBLE_TYPE": _compare_wire_json_type,
    "FIELD_SAME_CARDINALITY": partial(_compare_cardinality, ()),
    "FIELD_WIRE_COMPATIBLE_CARDINALITY": partial(_compare_cardinality, (_SINGULAR, _PLURAL)),
    "FIELD_WIRE_JSON_COMPATIBLE_CARDINALITY": partial(_compare_cardinality, (_SINGULAR,)),
    "FIELD_SAME_NAME": _compare_name,
    "FIELD_SAME_JSON_NAME": _compare_json_name,
    "FIELD_SAME_DEFAULT": _compare_default,
    "FIELD_SAME_ONEOF": _compare_oneof,
    "FIELD_SAME_JSTYPE": _compare_jstype,
    "FIELD_SAME_CPP_STRING_TYPE": _compare_cpp_string_type,
    "FIELD_SAME_JAVA_UTF8_VALIDATION": _compare_java_utf8_validation,
    "FIELD_SAME_UTF8_VALIDATION": _compare_utf8_validation,
}
