"""What lint says about the changes from one version of a Protobuf file to the next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from google.protobuf.descriptor_pb2 import DescriptorProto, EnumDescriptorProto, FieldDescriptorProto

from stele.formats.lint import LintReport
from stele.formats.protobuf.buf.ranges import Ranges, format_ranges
from stele.formats.protobuf.model import ProtobufSchema

_MAX_FIELD = (1 << 29) - 1
_MAX_VALUE = (1 << 31) - 1
_NOTHING: frozenset[str] = frozenset()


class _NumberScope(NamedTuple):
    """A message or enum: what its numbers stand for (with the type of a field), and what it reserves."""

    word: str
    names: Mapping[int, frozenset[str]]
    types: Mapping[int, str]
    reserved: Ranges
    reserved_names: frozenset[str]


def check_changes(
    notes: LintReport, schema: ProtobufSchema, before: ProtobufSchema, ignored: Mapping[str, frozenset[str]]
) -> None:
    """Note numbers that were used again and deletions that leave nothing reserved; ignored is by full name."""
    old = _number_scopes(before)
    for name, scope in _number_scopes(schema).items():
        if name in old and scope.word == old[name].word:
            quiet = ignored.get(name, _NOTHING)
            _check_reused_numbers(notes, name, scope, old[name], quiet)
            _check_deletions(notes, name, scope, old[name], quiet)


def _check_reused_numbers(
    notes: LintReport, path: str, new: _NumberScope, old: _NumberScope, ignored: frozenset[str]
) -> None:
    fix = "Take a number that was never used."
    for number, names in new.names.items():
        first = next(iter(sorted(names)))
        was = old.names.get(number, _NOTHING)
        retyped = new.word == "enum" or new.types[number] != old.types.get(number)
        if was and was.isdisjoint(names) and retyped:
            before = ", ".join(sorted(was))
            why = f"The number {number} belonged to {before}: data written with it is taken for {first}."
        elif not was and number in old.reserved:
            before = f"reserved {number}"
            why = f"The number {number} was reserved: data written with it before is taken for {first}."
        elif not was and not old.reserved_names.isdisjoint(names):
            before = f'reserved "{first}"'
            why = f"The name {first} was reserved: JSON written with it before is taken for this one."
        else:
            continue
        notes.add_finding("NUMBER_REUSED", f"{path}.{first}", why, fix, shown=first, before=before, ignored=ignored)


def _check_deletions(
    notes: LintReport, path: str, new: _NumberScope, old: _NumberScope, ignored: frozenset[str]
) -> None:
    used = {name for names in new.names.values() for name in names}
    for number, names in old.names.items():
        if number in new.names:
            continue
        open_names = sorted(names - used - new.reserved_names)
        words = [str(number)] if number not in new.reserved else []
        words += [f'"{name}"' for name in open_names]
        if words:
            first = next(iter(sorted(names)))
            why = f"{first} = {number} is gone and could be given to something else, which old data would be taken for."
            fix = f"Add {' and '.join(f'`reserved {word};`' for word in words)} to the {new.word}."
            shown_before = f"{first} = {number}"
            notes.add_finding("RESERVED_ON_DELETE", f"{path}.{first}", why, fix, before=shown_before, ignored=ignored)
    lost = old.reserved.difference(Ranges([*new.reserved.ranges, *((number, number) for number in new.names)]))
    lost_names = sorted(old.reserved_names - new.reserved_names - used)
    if lost or lost_names:
        words = [format_ranges(lost, _MAX_VALUE if new.word == "enum" else _MAX_FIELD)] if lost else []
        words += [f'"{name}"' for name in lost_names[:5]]
        text = ", ".join(words)
        why = f"What was reserved is free again: {text}."
        fix = f"Keep {' and '.join(f'`reserved {word};`' for word in words)}."
        notes.add_finding("RESERVED_ON_DELETE", path, why, fix, before=f"reserved {text}", ignored=ignored)


def _number_scopes(schema: ProtobufSchema) -> dict[str, _NumberScope]:
    """Messages and enums of the file at any depth by full name."""
    found: dict[str, _NumberScope] = {}
    waiting: list[tuple[str, DescriptorProto]] = []

    def push_scope(prefix: str, messages: Iterable[DescriptorProto], enums: Iterable[EnumDescriptorProto]) -> None:
        waiting.extend((f"{prefix}{message.name}", message) for message in messages)
        found.update({f"{prefix}{enum.name}": _enum_scope(enum) for enum in enums})

    proto = schema.proto
    push_scope(f"{proto.package}." if proto.package else "", proto.message_type, proto.enum_type)
    while waiting:
        name, message = waiting.pop()
        if not message.options.map_entry:
            found[name] = _message_scope(message)
            push_scope(f"{name}.", message.nested_type, message.enum_type)
    return found


def _message_scope(node: DescriptorProto) -> _NumberScope:
    names = {field.number: frozenset({field.name}) for field in node.field}
    types = {field.number: _type_key(field) for field in node.field}
    reserved = Ranges((span.start, span.end - 1) for span in node.reserved_range)  # ends are exclusive here
    return _NumberScope("message", names, types, reserved, frozenset(node.reserved_name))


def _enum_scope(node: EnumDescriptorProto) -> _NumberScope:
    names: dict[int, frozenset[str]] = {}
    for value in node.value:
        names[value.number] = names.get(value.number, _NOTHING) | {value.name}
    reserved = Ranges((span.start, span.end) for span in node.reserved_range)  # and inclusive here
    return _NumberScope("enum", names, {}, reserved, frozenset(node.reserved_name))


def _type_key(field: FieldDescriptorProto) -> str:
    many = field.label == FieldDescriptorProto.LABEL_REPEATED
    return f"{field.type} {field.type_name} {many}"
