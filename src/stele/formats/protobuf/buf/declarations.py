"""Rules about files, their syntax and options, and about two messages, enums or services of the same full name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial

from google.protobuf.descriptor_pb2 import (
    FeatureSet,
    FieldDescriptorProto,
    FileOptions,
    MethodDescriptorProto,
    MethodOptions,
)

from stele.formats.protobuf.buf.module import (
    EnumDeclaration,
    FieldDeclaration,
    FileDeclaration,
    MessageDeclaration,
    Module,
    ServiceDeclaration,
)
from stele.formats.protobuf.buf.rules import Rules, Violation, find_released_reservations
from stele.formats.protobuf.model import Ranges, format_ranges

_OPTIONS = {
    "cc_enable_arenas": "C++",
    "cc_generic_services": "C++",
    "csharp_namespace": "C#",
    "go_package": "Go",
    "java_generic_services": "Java",
    "java_multiple_files": "Java",
    "java_outer_classname": "Java",
    "java_package": "Java",
    "objc_class_prefix": "Objective-C",
    "optimize_for": "C++ and Java",
    "php_class_prefix": "PHP",
    "php_metadata_namespace": "PHP",
    "php_namespace": "PHP",
    "py_generic_services": "Python",
    "ruby_package": "Ruby",
    "swift_prefix": "Swift",
}
"""File options, and the language whose generated code each changes. An unset option counts as its default."""


def _compare_package(new: FileDeclaration, old: FileDeclaration) -> Iterator[Violation]:
    now, was = new.proto.package, old.proto.package
    if now != was:
        yield Violation(
            new.proto.name,
            f"package {now}" if now else "no package",
            f"package {was}" if was else "no package",
            "Every message gets another full name, so that data and requests that carry the name are not found.",
            f"Keep `package {was};`." if was else "Leave the package statement out.",
        )


def _compare_syntax(new: FileDeclaration, old: FileDeclaration) -> Iterator[Violation]:
    now, was = (file.proto.syntax or "proto2" for file in (new, old))
    if now != was:
        yield Violation(
            new.proto.name,
            f"syntax {now}",
            f"syntax {was}",
            "Presence, enums, checking of strings and JSON follow other rules in another syntax.",
            f"Keep the syntax {was}.",
        )


def _compare_option(name: str, new: FileDeclaration, old: FileDeclaration) -> Iterator[Violation]:
    now, was = (_format_option(file.proto.options, name) for file in (new, old))
    if now != was:
        yield Violation(
            new.proto.name,
            f"{name} = {now}",
            f"{name} = {was}",
            f"{_OPTIONS[name]} code generated from the file changes its names or its shape.",
            f"Keep `option {name} = {was};`.",
        )


def _format_option(options: FileOptions, name: str) -> str:
    value = getattr(options, name)
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, bool):
        return str(value).lower()
    return FileOptions.OptimizeMode.Name(value)


_Names = Callable[[FileDeclaration], Mapping[str, object]]

_DECLARATIONS: Mapping[str, _Names] = {
    "message": lambda file: file.messages,
    "enum": lambda file: file.enums,
    "extension": lambda file: file.extensions,
    "service": lambda file: file.services,
}


def _find_deleted_files(new: Module, old: Module) -> Iterator[Violation]:
    for path, file in old.files.items():
        if path not in new.files:
            yield Violation(
                file.proto.name,
                "",
                f"file {file.proto.name}",
                f"Whatever imports or includes {file.proto.name} finds no such file in the reader's schema.",
                f"Keep {file.proto.name}, if only to import publicly what it declared.",
            )


def _find_deleted_packages(new: Module, old: Module) -> Iterator[Violation]:
    for package in old.packages:
        if package not in new.packages:
            yield Violation(
                package,
                "",
                f"package {package}" if package else "files without a package",
                "Code generated for the package is used under its name, which the reader's schema no longer has.",
                f"Keep `package {package};` in some file." if package else "Keep a file without package statement.",
            )


def _find_deleted_in_file(kind: str, new: FileDeclaration, old: FileDeclaration) -> Iterator[Violation]:
    names = _DECLARATIONS[kind]
    return _find_missing(kind, names(new), old, names(old), f"file {old.proto.name}")


def _find_deleted_in_package(kind: str, new: Module, old: Module) -> Iterator[Violation]:
    """Report deleted messages, enums or extensions of a package.

    As in buf, only a package that still has some of the kind is checked.
    """
    names = _DECLARATIONS[kind]
    for package, files in old.packages.items():
        there = {name for file in new.packages.get(package, ()) for name in names(file)}
        if there or (kind == "service" and package in new.packages):
            for file in files:
                yield from _find_missing(kind, there, file, names(file), f"package {package or '(none)'}")


def _find_missing(
    kind: str, there: Collection[str], file: FileDeclaration, names: Mapping[str, object], place: str
) -> Iterator[Violation]:
    for name in names:
        if name not in there:
            yield Violation(
                file.full_name(name),
                "",
                f"{kind} {name}",
                f"Code and schemas that use {kind} {file.full_name(name)} no longer find it in {place}.",
                f"Keep {kind} {name}; mark it deprecated when it should no longer be used.",
            )


MODULE_RULES: Rules[Module] = {
    "FILE_NO_DELETE": _find_deleted_files,
    "PACKAGE_NO_DELETE": _find_deleted_packages,
    **{f"PACKAGE_{kind.upper()}_NO_DELETE": partial(_find_deleted_in_package, kind) for kind in _DECLARATIONS},
}
FILE_RULES: Rules[FileDeclaration] = {
    "FILE_SAME_PACKAGE": _compare_package,
    "FILE_SAME_SYNTAX": _compare_syntax,
    **{f"FILE_SAME_{name.upper()}": partial(_compare_option, name) for name in _OPTIONS},
    **{f"{kind.upper()}_NO_DELETE": partial(_find_deleted_in_file, kind) for kind in _DECLARATIONS},
}


_MAX_FIELD_NUMBER = (1 << 29) - 1


def _find_deleted_fields(unless: str, new: MessageDeclaration, old: MessageDeclaration) -> Iterator[Violation]:
    """Report deleted fields. `unless` names what may be reserved instead: number, name, or '' for nothing."""
    deleted_fields = [field for number, field in old.fields.items() if number not in new.fields]
    if not deleted_fields:
        return
    numbers, names = _reserved_field_numbers(new), set(new.proto.reserved_name)
    for field in deleted_fields:
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


def _reserved_field_numbers(message: MessageDeclaration) -> Ranges:
    """Return the reserved numbers; the ends of a message's ranges are exclusive in a descriptor."""
    return Ranges((span.start, span.end - 1) for span in message.proto.reserved_range)


def _find_released_fields(new: MessageDeclaration, old: MessageDeclaration) -> Iterator[Violation]:
    lost = _reserved_field_numbers(old).difference(_reserved_field_numbers(new))
    numbers = format_ranges(lost, _MAX_FIELD_NUMBER) if lost else ""
    return find_released_reservations("message", "field", new, old, numbers)


def _find_deleted_extension_ranges(new: MessageDeclaration, old: MessageDeclaration) -> Iterator[Violation]:
    if not old.proto.extension_range:
        return
    was, now = (Ranges((s.start, s.end - 1) for s in message.proto.extension_range) for message in (old, new))
    lost = was.difference(now)
    if lost:
        text = format_ranges(lost, _MAX_FIELD_NUMBER)
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
                "Generated code for the oneof, such as the accessor of the member that is set, is removed.",
                f"Keep oneof {oneof.name}.",
            )


def _compare_required_fields(new: MessageDeclaration, old: MessageDeclaration) -> Iterator[Violation]:
    """Report changes of `required` fields by their label.

    Changes of the feature LEGACY_REQUIRED of editions count as changes of cardinality.
    """
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


def _compare_message_json_format(new: MessageDeclaration, old: MessageDeclaration) -> Iterator[Violation]:
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


MESSAGE_RULES: Rules[MessageDeclaration] = {
    "FIELD_NO_DELETE": partial(_find_deleted_fields, ""),
    "FIELD_NO_DELETE_UNLESS_NUMBER_RESERVED": partial(_find_deleted_fields, "number"),
    "FIELD_NO_DELETE_UNLESS_NAME_RESERVED": partial(_find_deleted_fields, "name"),
    "RESERVED_MESSAGE_NO_DELETE": _find_released_fields,
    "EXTENSION_MESSAGE_NO_DELETE": _find_deleted_extension_ranges,
    "ONEOF_NO_DELETE": _find_deleted_oneofs,
    "MESSAGE_SAME_REQUIRED_FIELDS": _compare_required_fields,
    "MESSAGE_SAME_JSON_FORMAT": _compare_message_json_format,
    "MESSAGE_NO_REMOVE_STANDARD_DESCRIPTOR_ACCESSOR": _compare_descriptor_accessor,
}


_MAX_VALUE_NUMBER = (1 << 31) - 1


def _find_deleted_values(unless: str, new: EnumDeclaration, old: EnumDeclaration) -> Iterator[Violation]:
    """Report deleted numbers of enum values. `unless` names what may be reserved instead: number, name, or ''."""
    was, now = old.names_by_number(), new.names_by_number()
    deleted_values = {number: names for number, names in was.items() if number not in now}
    if not deleted_values:
        return
    numbers, reserved = _reserved_value_numbers(new), set(new.proto.reserved_name)
    for number, names in deleted_values.items():
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


def _reserved_value_numbers(enum: EnumDeclaration) -> Ranges:
    return Ranges((span.start, span.end) for span in enum.proto.reserved_range)


def _find_released_values(new: EnumDeclaration, old: EnumDeclaration) -> Iterator[Violation]:
    lost = _reserved_value_numbers(old).difference(_reserved_value_numbers(new))
    numbers = format_ranges(lost, _MAX_VALUE_NUMBER) if lost else ""
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


def _compare_enum_json_format(new: EnumDeclaration, old: EnumDeclaration) -> Iterator[Violation]:
    if old.features.json_format == FeatureSet.ALLOW != new.features.json_format:
        yield Violation(
            new.full_name,
            "json_format LEGACY_BEST_EFFORT",
            "json_format ALLOW",
            "JSON names of values are no longer sure to be unique, so that JSON may be read in another way.",
            "Keep `option features.json_format = ALLOW;`, the default of proto3 and editions.",
        )


ENUM_RULES: Rules[EnumDeclaration] = {
    "ENUM_VALUE_NO_DELETE": partial(_find_deleted_values, ""),
    "ENUM_VALUE_NO_DELETE_UNLESS_NUMBER_RESERVED": partial(_find_deleted_values, "number"),
    "ENUM_VALUE_NO_DELETE_UNLESS_NAME_RESERVED": partial(_find_deleted_values, "name"),
    "ENUM_VALUE_SAME_NAME": _compare_value_names,
    "RESERVED_ENUM_NO_DELETE": _find_released_values,
    "ENUM_SAME_TYPE": _compare_openness,
    "ENUM_SAME_JSON_FORMAT": _compare_enum_json_format,
}


_Part = Callable[[MethodDescriptorProto], str]


def _find_deleted_methods(new: ServiceDeclaration, old: ServiceDeclaration) -> Iterator[Violation]:
    for name in old.methods:
        if name not in new.methods:
            yield Violation(
                f"{new.full_name}.{name}",
                f"service {new.proto.name}",
                f"rpc {name}",
                f"Calls of {name} fail as unknown.",
                f"Keep rpc {name}; mark it deprecated when it should no longer be used.",
            )


def _compare_method_part(
    why: str, part: _Part, new: ServiceDeclaration, old: ServiceDeclaration
) -> Iterator[Violation]:
    """Report methods in which one part, compared as text, has changed."""
    for name, was in old.methods.items():
        now = new.methods.get(name)
        if now is not None and part(now) != part(was):
            yield Violation(
                f"{new.full_name}.{name}", part(now), part(was), why, f"Keep `{part(was)}`, or add another rpc."
            )


def _request_text(method: MethodDescriptorProto) -> str:
    return f"rpc {method.name} ({method.input_type.removeprefix('.')})"


def _response_text(method: MethodDescriptorProto) -> str:
    return f"rpc {method.name} returns ({method.output_type.removeprefix('.')})"


def _client_streaming_text(method: MethodDescriptorProto) -> str:
    return f"rpc {method.name} ({'stream' if method.client_streaming else 'unary'})"


def _server_streaming_text(method: MethodDescriptorProto) -> str:
    return f"rpc {method.name} returns ({'stream' if method.server_streaming else 'unary'})"


def _idempotency_text(method: MethodDescriptorProto) -> str:
    return f"idempotency_level = {MethodOptions.IdempotencyLevel.Name(method.options.idempotency_level)}"


_RETRIES = "Callers that retry, or send requests in the way of safe ones, rely on what the option promised."
_FRAMES = "One side sends a sequence of messages where the other expects a single one."

SERVICE_RULES: Rules[ServiceDeclaration] = {
    "RPC_NO_DELETE": _find_deleted_methods,
    "RPC_SAME_REQUEST_TYPE": partial(
        _compare_method_part, "Requests of one side are read as another message by the other.", _request_text
    ),
    "RPC_SAME_RESPONSE_TYPE": partial(
        _compare_method_part, "Answers of one side are read as another message by the other.", _response_text
    ),
    "RPC_SAME_CLIENT_STREAMING": partial(_compare_method_part, _FRAMES, _client_streaming_text),
    "RPC_SAME_SERVER_STREAMING": partial(_compare_method_part, _FRAMES, _server_streaming_text),
    "RPC_SAME_IDEMPOTENCY_LEVEL": partial(_compare_method_part, _RETRIES, _idempotency_text),
}
