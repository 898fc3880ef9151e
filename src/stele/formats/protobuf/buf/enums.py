"""Rules about two enums of the same full name."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from google.protobuf.descriptor_pb2 import FeatureSet

from stele.formats.protobuf.buf.module import EnumDeclaration
from stele.formats.protobuf.buf.rules import Rules, Violation, find_released_reservations
from stele.formats.protobuf.number_ranges import Ranges, format_ranges

_MAX_NUMBER = (1 << 31) - 1


def _find_deleted_values(unless: str, new: EnumDeclaration, old: EnumDeclaration) -> Iterator[Violation]:
    """Report numbers that are gone; unless says what may be reserved instead: number, name, or '' for nothing."""
    was, now = old.names_by_number(), new.names_by_number()
    gone = {number: names for number, names in was.items() if number not in now}
    if not gone:
        return
    numbers, reserved = _reserved_numbers(new), set(new.proto.reserved_name)
    for number, names in gone.items():
        if (unless == "number" and number in numbers) or (unless == "name" and names <= reserved):
            continue
        yield _deleted_value(unless, new, number, sorted(names))


def _deleted_value(unless: str, new: EnumDeclaration, number: int, names: list[str]) -> Violation:
    quoted = ", ".join(f'"{name}"' for name in names)
    why = {
        "": f"Code and data that use value {number} no longer find it.",
        "number": f"Number {number} can be given to another meaning, which would misread existing data.",
        "name": f"The name {quoted} can be given to another number, which would misread existing JSON.",
    }[unless]
    fix = {
        "": "Keep the value; mark it deprecated when it should no longer be used.",
        "number": f"Add `reserved {number};` to the enum.",
        "name": f"Add `reserved {quoted};` to the enum.",
    }[unless]
    writer = ", ".join(f"{name} = {number}" for name in names)
    return Violation(f"{new.full_name}.{names[0]}", f"enum {new.full_name}", writer, why, fix)


def _reserved_numbers(enum: EnumDeclaration) -> Ranges:
    return Ranges((span.start, span.end) for span in enum.proto.reserved_range)


def _find_released_reservations(new: EnumDeclaration, old: EnumDeclaration) -> Iterator[Violation]:
    lost = _reserved_numbers(old).difference(_reserved_numbers(new))
    numbers = format_ranges(lost, _MAX_NUMBER) if lost else ""
    return find_released_reservations("enum", "value", new, old, numbers)


def _compare_value_names(new: EnumDeclaration, old: EnumDeclaration) -> Iterator[Violation]:
    now = new.names_by_number()
    for number, was in old.names_by_number().items():
        if number in now and not was <= now[number]:
            lost = ", ".join(sorted(was - now[number]))
            yield Violation(
                f"{new.full_name}.{min(now[number])}",
                f"{number} is {', '.join(sorted(now[number]))}",
                f"{number} is {', '.join(sorted(was))}",
                f"JSON and code that say {lost} are no longer understood.",
                f"Keep {lost} = {number}; a further name is possible with `option allow_alias = true;`.",
            )


def _compare_openness(new: EnumDeclaration, old: EnumDeclaration) -> Iterator[Violation]:
    now, was = ("closed" if enum.features.enum_type == FeatureSet.CLOSED else "open" for enum in (new, old))
    if now != was:
        yield Violation(
            new.full_name,
            f"{now} enum",
            f"{was} enum",
            "A number without a name is a value of an open enum, but an unknown field where the enum is closed.",
            f"Keep the enum {was}: `option features.enum_type = {was.upper()};` says so in editions.",
        )


def _compare_json_format(new: EnumDeclaration, old: EnumDeclaration) -> Iterator[Violation]:
    if old.features.json_format == FeatureSet.ALLOW != new.features.json_format:
        yield Violation(
            new.full_name,
            "json_format LEGACY_BEST_EFFORT",
            "json_format ALLOW",
            "JSON names of values are no longer sure to be unique, so that JSON may be read in another way.",
            "Keep `option features.json_format = ALLOW;`, the default of proto3 and editions.",
        )


RULES: Rules[EnumDeclaration] = {
    "ENUM_VALUE_NO_DELETE": partial(_find_deleted_values, ""),
    "ENUM_VALUE_NO_DELETE_UNLESS_NUMBER_RESERVED": partial(_find_deleted_values, "number"),
    "ENUM_VALUE_NO_DELETE_UNLESS_NAME_RESERVED": partial(_find_deleted_values, "name"),
    "ENUM_VALUE_SAME_NAME": _compare_value_names,
    "RESERVED_ENUM_NO_DELETE": _find_released_reservations,
    "ENUM_SAME_TYPE": _compare_openness,
    "ENUM_SAME_JSON_FORMAT": _compare_json_format,
}
