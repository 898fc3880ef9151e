"""Rules about two messages of the same full name."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from google.protobuf.descriptor_pb2 import FeatureSet, FieldDescriptorProto

from stele.formats.protobuf.buf.module import FieldDeclaration, MessageDeclaration
from stele.formats.protobuf.buf.rules import Rules, Violation, find_released_reservations
from stele.formats.protobuf.number_ranges import Ranges, format_ranges

_MAX_NUMBER = (1 << 29) - 1


def _find_deleted_fields(unless: str, new: MessageDeclaration, old: MessageDeclaration) -> Iterator[Violation]:
    """Report fields that are gone; unless says what may be reserved instead: number, name, or '' for nothing."""
    gone = [field for number, field in old.fields.items() if number not in new.fields]
    if not gone:
        return
    numbers, names = _reserved_numbers(new), set(new.proto.reserved_name)
    for field in gone:
        number, name = field.proto.number, field.proto.name
        if (unless == "number" and number in numbers) or (unless == "name" and name in names):
            continue
        yield _deleted_field(unless, new, field)


def _deleted_field(unless: str, new: MessageDeclaration, field: FieldDeclaration) -> Violation:
    number, name = field.proto.number, field.proto.name
    why = {
        "": f"Code and data that use field {name} = {number} no longer find it.",
        "number": f"Number {number} can be given to a field of another type, which would misread existing data.",
        "name": f'Name "{name}" can be given to another field, which would misread existing JSON.',
    }[unless]
    fix = {
        "": "Keep the field; mark it deprecated when it should no longer be used.",
        "number": f"Add `reserved {number};` to the message.",
        "name": f'Add `reserved "{name}";` to the message.',
    }[unless]
    return Violation(field.full_name, f"message {new.full_name}", str(field), why, fix)


def _reserved_numbers(message: MessageDeclaration) -> Ranges:
    """Return the ends of a message's ranges are exclusive in a descriptor."""
    return Ranges((span.start, span.end - 1) for span in message.proto.reserved_range)


def _find_released_reservations(new: MessageDeclaration, old: MessageDeclaration) -> Iterator[Violation]:
    lost = _reserved_numbers(old).difference(_reserved_numbers(new))
    numbers = format_ranges(lost, _MAX_NUMBER) if lost else ""
    return find_released_reservations("message", "field", new, old, numbers)


def _find_deleted_extension_ranges(new: MessageDeclaration, old: MessageDeclaration) -> Iterator[Violation]:
    if not old.proto.extension_range:
        return
    was, now = (Ranges((s.start, s.end - 1) for s in message.proto.extension_range) for message in (old, new))
    lost = was.difference(now)
    if lost:
        text = format_ranges(lost, _MAX_NUMBER)
        yield Violation(
            new.full_name,
            f"message {new.proto.name}",
            f"extensions {text}",
            "Extensions with these numbers no longer compile, and data that has them is no longer understood.",
            f"Add `extensions {text};` to the message.",
        )


def _find_deleted_oneofs(new: MessageDeclaration, old: MessageDeclaration) -> Iterator[Violation]:
    if not old.proto.oneof_decl:
        return
    implied = {field.oneof_index for field in old.proto.field if field.proto3_optional}
    names = {oneof.name for oneof in new.proto.oneof_decl}
    for index, oneof in enumerate(old.proto.oneof_decl):
        if index not in implied and oneof.name not in names:
            yield Violation(
                f"{new.full_name}.{oneof.name}",
                f"message {new.proto.name}",
                f"oneof {oneof.name}",
                "Generated code for the oneof, such as the question which member is set, is gone.",
                f"Keep oneof {oneof.name}.",
            )


def _compare_required_fields(new: MessageDeclaration, old: MessageDeclaration) -> Iterator[Violation]:
    """Only the label counts, not the feature LEGACY_REQUIRED of editions, whose changes are changes of cardinality."""
    now, was = (
        {number for number, item in side.fields.items() if item.proto.label == FieldDescriptorProto.LABEL_REQUIRED}
        for side in (new, old)
    )
    for number in sorted(was - now):
        yield Violation(
            old.fields[number].full_name,
            str(new.fields.get(number, f"message {new.proto.name}")),
            str(old.fields[number]),
            f"The writer's side demands field {number}, and may get messages without it from the reader's.",
            "Keep the field required.",
        )
    for number in sorted(now - was):
        yield Violation(
            new.fields[number].full_name,
            str(new.fields[number]),
            str(old.fields.get(number, f"message {old.proto.name}")),
            f"Data may lack field {number}, which the reader's schema demands, so that it is refused as incomplete.",
            "Make the field optional.",
        )


def _compare_json_format(new: MessageDeclaration, old: MessageDeclaration) -> Iterator[Violation]:
    if old.features.json_format == FeatureSet.ALLOW != new.features.json_format:
        yield Violation(
            new.full_name,
            "json_format LEGACY_BEST_EFFORT",
            "json_format ALLOW",
            "JSON names of fields are no longer sure to be unique, so that JSON may be read in another way.",
            "Keep `option features.json_format = ALLOW;`, the default of proto3 and editions.",
        )


def _compare_descriptor_accessor(new: MessageDeclaration, old: MessageDeclaration) -> Iterator[Violation]:
    if new.proto.options.no_standard_descriptor_accessor and not old.proto.options.no_standard_descriptor_accessor:
        yield Violation(
            new.full_name,
            "no_standard_descriptor_accessor = true",
            "no_standard_descriptor_accessor = false",
            "Generated code loses the method `descriptor()`, to make room for a field of that name.",
            "Leave the option out.",
        )


RULES: Rules[MessageDeclaration] = {
    "FIELD_NO_DELETE": partial(_find_deleted_fields, ""),
    "FIELD_NO_DELETE_UNLESS_NUMBER_RESERVED": partial(_find_deleted_fields, "number"),
    "FIELD_NO_DELETE_UNLESS_NAME_RESERVED": partial(_find_deleted_fields, "name"),
    "RESERVED_MESSAGE_NO_DELETE": _find_released_reservations,
    "EXTENSION_MESSAGE_NO_DELETE": _find_deleted_extension_ranges,
    "ONEOF_NO_DELETE": _find_deleted_oneofs,
    "MESSAGE_SAME_REQUIRED_FIELDS": _compare_required_fields,
    "MESSAGE_SAME_JSON_FORMAT": _compare_json_format,
    "MESSAGE_NO_REMOVE_STANDARD_DESCRIPTOR_ACCESSOR": _compare_descriptor_accessor,
}
