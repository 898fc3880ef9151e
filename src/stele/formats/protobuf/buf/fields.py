"""Rules about two fields with the same number of the same message, or two extensions of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from google.protobuf.descriptor_pb2 import FeatureSet, FieldDescriptorProto, FieldOptions

from stele.formats.protobuf.buf.defaults import default_of, same_default
from stele.formats.protobuf.buf.languages import cpp_string_type, java_utf8_validation
from stele.formats.protobuf.buf.module import Cardinality, Field
from stele.formats.protobuf.buf.note import Note, Rules
from stele.formats.protobuf.printer import usual_json_name

_F = FieldDescriptorProto
_LONGS = frozenset({_F.TYPE_INT64, _F.TYPE_SINT64, _F.TYPE_UINT64, _F.TYPE_FIXED64, _F.TYPE_SFIXED64})
_NAMED = frozenset({_F.TYPE_MESSAGE, _F.TYPE_GROUP, _F.TYPE_ENUM})

_Families = Mapping[int, str]


def _families(*families: tuple[str, tuple[int, ...]]) -> _Families:
    """Kinds to families; a kind that is not listed is a family of its own."""
    listed = {kind: name for name, kinds in families for kind in kinds}
    return {kind: listed.get(kind, name) for name, kind in _F.Type.items()}


_BITS = (
    ("32 bits", (_F.TYPE_FIXED32, _F.TYPE_SFIXED32)),
    ("64 bits", (_F.TYPE_FIXED64, _F.TYPE_SFIXED64)),
)
_WIRE = _families(
    ("varint", (_F.TYPE_INT32, _F.TYPE_INT64, _F.TYPE_UINT32, _F.TYPE_UINT64, _F.TYPE_BOOL)),
    ("zigzag", (_F.TYPE_SINT32, _F.TYPE_SINT64)),
    *_BITS,
)
_WIRE_JSON = _families(
    ("short varint", (_F.TYPE_INT32, _F.TYPE_UINT32)),
    ("long varint", (_F.TYPE_INT64, _F.TYPE_UINT64)),
    *_BITS,
)


# --- type -----------------------------------------------------------------------------------------------------------


def _type(new: Field, old: Field) -> Iterator[Note]:
    if new.kind != old.kind or new.type_name != old.type_name:
        yield _changed(new, old, f"Generated code for field {new.proto.number} has another type.")


def _wire_type(new: Field, old: Field) -> Iterator[Note]:
    if old.kind == _F.TYPE_STRING and new.kind == _F.TYPE_BYTES:
        return  # every string is also a sequence of bytes
    yield from _compatible(_WIRE, "", new, old)


def _wire_json_type(new: Field, old: Field) -> Iterator[Note]:
    yield from _compatible(_WIRE_JSON, " or JSON", new, old)


def _compatible(families: _Families, also: str, new: Field, old: Field) -> Iterator[Note]:
    if families[new.kind] != families[old.kind]:
        why = f"Binary{also} data of field {new.proto.number} is encoded in another way and would be misread."
        yield _changed(new, old, why)
    elif new.kind in _NAMED and new.type_name != old.type_name and not _widened(new, old):
        yield _changed(new, old, f"Data of {old.type_name} would be read as {new.type_name}, another type.")


def _widened(new: Field, old: Field) -> bool:
    """Whether an enum may stand for the other: the same local name, and all its values."""
    names = new.type_name, old.type_name
    same = len({name.rsplit(".", 1)[-1] for name in names}) == 1
    return new.kind == _F.TYPE_ENUM and same and new.module.widens(names[0], old.module, names[1])


def _changed(new: Field, old: Field, why: str) -> Note:
    fix = f"Keep `{old}`, and give the new field a number that was never used."
    return Note(new.full_name, str(new), str(old), why, fix)


# --- cardinality ----------------------------------------------------------------------------------------------------

_SINGULAR = frozenset({Cardinality.EXPLICIT, Cardinality.IMPLICIT})
_PLURAL = frozenset({Cardinality.REPEATED, Cardinality.MAP})


def _cardinality(alike: tuple[frozenset[Cardinality], ...], new: Field, old: Field) -> Iterator[Note]:
    """The cardinality changed to one that is in no set of alike ones with the former."""
    now, was = new.cardinality, old.cardinality
    if now is was or (new.in_entry and old.in_entry) or any(now in known and was in known for known in alike):
        return
    yield Note(
        new.full_name,
        now.value,
        was.value,
        f"Field {new.proto.number} holds another number of values, or tells absence from the default in another way.",
        f"Keep `{old}`, and give the new field a number that was never used.",
    )


# --- names, defaults, oneofs ----------------------------------------------------------------------------------------


def _name(new: Field, old: Field) -> Iterator[Note]:
    """A field is known by its name, an extension by its full name."""
    now, was = (side.full_name if side.owner is None else side.proto.name for side in (new, old))
    if now != was:
        yield Note(
            new.full_name,
            str(new),
            str(old),
            f"Code and JSON that say {was} do not find the field, which is called {now}.",
            f"Keep the name {was}.",
        )


def _json_name(new: Field, old: Field) -> Iterator[Note]:
    if new.owner is None:
        return  # the JSON name of an extension is its full name
    now, was = (side.proto.json_name or usual_json_name(side.proto.name) for side in (new, old))
    if now != was:
        yield Note(
            new.full_name,
            f'json_name = "{now}"',
            f'json_name = "{was}"',
            f'JSON written with "{was}" is read without field {new.proto.number}.',
            f'Add `[json_name = "{was}"]` to the field.',
        )


def _default(new: Field, old: Field) -> Iterator[Note]:
    if not same_default(new, old):
        yield Note(
            new.full_name,
            f"default {default_of(new)!r}",
            f"default {default_of(old)!r}",
            f"Data without field {new.proto.number} means one value to the writer and another to the reader.",
            "Keep the default.",
        )


def _oneof(new: Field, old: Field) -> Iterator[Note]:
    now, was = new.oneof, old.oneof
    if now != was:
        yield Note(
            new.full_name,
            f"in oneof {now}" if now else "in no oneof",
            f"in oneof {was}" if was else "in no oneof",
            "Of the members of a oneof only the last in the data is kept; of independent fields each is.",
            f"Keep the field in oneof {was}." if was else "Keep the field outside of oneofs.",
        )


# --- options and features of languages ------------------------------------------------------------------------------


def _jstype(new: Field, old: Field) -> Iterator[Note]:
    if new.kind not in _LONGS or old.kind not in _LONGS:
        return
    now, was = (FieldOptions.JSType.Name(side.proto.options.jstype) for side in (new, old))
    if now != was:
        yield _option(new, "jstype", now, was, "The field has another type in JavaScript.")


def _cpp_string_type(new: Field, old: Field) -> Iterator[Note]:
    texts = {_F.TYPE_STRING, _F.TYPE_BYTES}
    if new.kind not in texts or old.kind not in texts or (new.in_entry and old.in_entry):
        return
    now, was = cpp_string_type(new), cpp_string_type(old)
    if now != was and not (was == "STRING_PIECE" and now == "STRING"):
        yield _option(new, "ctype or features.(pb.cpp).string_type", now, was, "The field has another type in C++.")


def _java_utf8_validation(new: Field, old: Field) -> Iterator[Note]:
    if new.kind != _F.TYPE_STRING or old.kind != _F.TYPE_STRING:
        return
    now, was = java_utf8_validation(new), java_utf8_validation(old)
    if now != was:
        name = "java_string_check_utf8 or features.(pb.java).utf8_validation"
        yield _option(new, name, now, was, "Java checks strings in another way, and refuses or accepts other data.")


def _utf8_validation(new: Field, old: Field) -> Iterator[Note]:
    if new.kind != _F.TYPE_STRING or old.kind != _F.TYPE_STRING:
        return
    now, was = (FeatureSet.Utf8Validation.Name(_utf8(side)) for side in (new, old))
    if now != was:
        why = "Bytes that are no UTF-8 are accepted by one side and refused by the other."
        yield _option(new, "features.utf8_validation", now, was, why)


def _utf8(field: Field) -> FeatureSet.Utf8Validation.ValueType:
    value: FeatureSet.Utf8Validation.ValueType = field.features.utf8_validation  # type: ignore[assignment]  # a plain number
    return value


def _option(field: Field, name: str, now: str, was: str, why: str) -> Note:
    return Note(field.full_name, f"{name} = {now}", f"{name} = {was}", why, f"Keep {was}.")


RULES: Rules[Field] = {
    "FIELD_SAME_TYPE": _type,
    "FIELD_WIRE_COMPATIBLE_TYPE": _wire_type,
    "FIELD_WIRE_JSON_COMPATIBLE_TYPE": _wire_json_type,
    "FIELD_SAME_CARDINALITY": partial(_cardinality, ()),
    "FIELD_WIRE_COMPATIBLE_CARDINALITY": partial(_cardinality, (_SINGULAR, _PLURAL)),
    "FIELD_WIRE_JSON_COMPATIBLE_CARDINALITY": partial(_cardinality, (_SINGULAR,)),
    "FIELD_SAME_NAME": _name,
    "FIELD_SAME_JSON_NAME": _json_name,
    "FIELD_SAME_DEFAULT": _default,
    "FIELD_SAME_ONEOF": _oneof,
    "FIELD_SAME_JSTYPE": _jstype,
    "FIELD_SAME_CPP_STRING_TYPE": _cpp_string_type,
    "FIELD_SAME_JAVA_UTF8_VALIDATION": _java_utf8_validation,
    "FIELD_SAME_UTF8_VALIDATION": _utf8_validation,
}
