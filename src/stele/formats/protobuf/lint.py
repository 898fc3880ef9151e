"""Lint rules for Protobuf schemas; see `stele.formats.lint` for common rules and how to silence one.

Names follow the style guide of Protocol Buffers: messages, enums, services and methods UpperCamelCase, fields, oneofs
and packages lower_snake_case, enum values UPPER_SNAKE_CASE. Only the schema's own file is checked. Comments exist only
if the schema came as source text; otherwise missing documentation is not reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FeatureSet,
    FieldDescriptorProto,
    FileDescriptorProto,
)

from stele.core.findings import Finding
from stele.formats import lint as common
from stele.formats.graph import strongly_connected
from stele.formats.lint import LintReport
from stele.formats.protobuf.model import MAX_LOCATIONS, Path, ProtobufSchema, Ranges, SourceComments, format_ranges

_MAX_FIELD = (1 << 29) - 1
_MAX_VALUE = (1 << 31) - 1
_NOTHING: frozenset[str] = frozenset()


class _NumberScope(NamedTuple):
    """A message or enum: the names of its numbers (with field types), and its reserved numbers and names."""

    word: str
    names: Mapping[int, frozenset[str]]
    types: Mapping[int, str]
    reserved: Ranges
    reserved_names: frozenset[str]


def check_changes(
    notes: LintReport, schema: ProtobufSchema, before: ProtobufSchema, ignored: Mapping[str, frozenset[str]]
) -> None:
    """Report reused numbers, and deletions without a reservation. `ignored` has the silenced rules by full name."""
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
            why = f"The number {number} belonged to {before}: data written with it is read as {first}."
        elif not was and number in old.reserved:
            before = f"reserved {number}"
            why = f"The number {number} was reserved: data written with it before is read as {first}."
        elif not was and not old.reserved_names.isdisjoint(names):
            before = f'reserved "{first}"'
            why = f"The name {first} was reserved: JSON written with it before is read as the new one."
        else:
            continue
        notes.add_finding("NUMBER_REUSED", f"{path}.{first}", why, fix, current=first, before=before, ignored=ignored)


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
            why = f"{first} = {number} was removed, and another declaration could use it and misread old data."
            fix = f"Add {' and '.join(f'`reserved {word};`' for word in words)} to the {new.word}."
            shown_before = f"{first} = {number}"
            notes.add_finding("RESERVED_ON_DELETE", f"{path}.{first}", why, fix, before=shown_before, ignored=ignored)
    lost = old.reserved.difference(Ranges([*new.reserved.ranges, *((number, number) for number in new.names)]))
    lost_names = sorted(old.reserved_names - new.reserved_names - used)
    if lost or lost_names:
        words = [format_ranges(lost, _MAX_VALUE if new.word == "enum" else _MAX_FIELD)] if lost else []
        words += [f'"{name}"' for name in lost_names[:5]]
        text = ", ".join(words)
        why = f"The schema no longer reserves {text}."
        fix = f"Keep {' and '.join(f'`reserved {word};`' for word in words)}."
        notes.add_finding("RESERVED_ON_DELETE", path, why, fix, before=f"reserved {text}", ignored=ignored)


def _number_scopes(schema: ProtobufSchema) -> dict[str, _NumberScope]:
    """Return messages and enums of the file at any depth by full name."""
    scopes: dict[str, _NumberScope] = {}
    waiting: list[tuple[str, DescriptorProto]] = []

    def push_scope(prefix: str, messages: Iterable[DescriptorProto], enums: Iterable[EnumDescriptorProto]) -> None:
        waiting.extend((f"{prefix}{message.name}", message) for message in messages)
        scopes.update({f"{prefix}{enum.name}": _enum_scope(enum) for enum in enums})

    proto = schema.proto
    push_scope(f"{proto.package}." if proto.package else "", proto.message_type, proto.enum_type)
    while waiting:
        name, message = waiting.pop()
        if not message.options.map_entry:
            scopes[name] = _message_scope(message)
            push_scope(f"{name}.", message.nested_type, message.enum_type)
    return scopes


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


RULES: Final[Mapping[str, str]] = common.select_rules(
    *("CASE_CLASH", "DOC_REQUIRED", "ENUM_VALUE_PREFIX", "ENUM_ZERO_UNSPECIFIED", "LINT_INCOMPLETE"),
    *("NAMESPACE_REQUIRED", "NAMING", "NUMBER_REUSED", "RECURSIVE_TYPE", "REQUIRED_FIELD", "RESERVED_ON_DELETE"),
    *("UNBOUNDED_RECURSION", "UNUSED_IMPORT"),
)

_F = FieldDescriptorProto
_Types = tuple[Sequence[DescriptorProto], Sequence[EnumDescriptorProto]]
_UNSPECIFIED: Final = ("UNSPECIFIED", "UNKNOWN")
_SYNTAX: Final = (12,)
_PACKAGE: Final = (2,)


class _LintedType(NamedTuple):
    """A message or enum of the file: its full name, its path in the descriptor, and the rules silenced there."""

    name: str
    path: Path
    ignored: frozenset[str]
    top: bool


def lint(schema: ProtobufSchema, before: ProtobufSchema | None) -> list[Finding]:
    """Return the findings about the file, then its messages, enums, extensions and services."""
    return _Linter(schema).run_rules(before)


class _Linter:
    def __init__(self, schema: ProtobufSchema) -> None:
        self.schema = schema
        self.notes = LintReport()
        self.comments = SourceComments(schema)
        self.documented = 0 < len(schema.source.location) <= MAX_LOCATIONS
        self.messages: dict[str, tuple[_LintedType, DescriptorProto]] = {}

    def run_rules(self, before: ProtobufSchema | None) -> list[Finding]:
        proto = self.schema.proto
        root = proto.package or proto.name
        quiet = self._silenced_rules(_SYNTAX) | self._silenced_rules(_PACKAGE)
        self._check_file(proto, root, quiet)
        enums: dict[str, tuple[_LintedType, EnumDescriptorProto]] = {}
        for place, node in self._walk_types(proto, quiet):
            if not self.notes.count_declaration():
                break
            if isinstance(node, DescriptorProto):
                self.messages[place.name] = place, node
                self._check_message(place, node)
            else:
                enums[place.name] = place, node
                self._check_enum(place, node)
        for index, field in enumerate(proto.extension):
            self._check_field(_LintedType(proto.package, (), quiet, True), (7, index), field, "extension")
        self._check_services(proto, quiet)
        self._check_recursion()
        if before is not None:
            ignored = {name: place.ignored for name, (place, _) in {**self.messages, **enums}.items()}
            check_changes(self.notes, self.schema, before, ignored)
        return self.notes.list_findings(root)

    # --- the file ---------------------------------------------------------------------------------------------------

    def _check_file(self, proto: FileDescriptorProto, root: str, quiet: frozenset[str]) -> None:
        if not proto.package:
            why = "The file has no package: its names can clash with those of every other file without one."
            self.notes.add_finding("NAMESPACE_REQUIRED", root, why, "Add a `package` statement.", ignored=quiet)
        for part in proto.package.split(".") if proto.package else ():
            common.check_name(self.notes, root, part, "the package", common.SNAKE_NAME, quiet)
        for path in _find_unused_imports(self.schema):
            why = f"The file uses nothing of {path}."
            self.notes.add_finding(
                "UNUSED_IMPORT", path, why, f'Remove `import "{path}";`.', current=path, ignored=quiet
            )

    def _walk_types(
        self, proto: FileDescriptorProto, quiet: frozenset[str]
    ) -> Iterator[tuple[_LintedType, DescriptorProto | EnumDescriptorProto]]:
        """Yield messages and enums at any depth, outer ones first. Map entries are left out."""
        waiting: list[tuple[str, Path, frozenset[str], DescriptorProto | EnumDescriptorProto]] = []

        def push_types(scope: str, at: Path, tags: tuple[int, int], quiet: frozenset[str], inside: _Types) -> None:
            messages, enums = inside
            inner = [(f"{scope}{enum.name}", (*at, tags[1], i), quiet, enum) for i, enum in enumerate(enums)]
            waiting.extend(reversed(inner))
            nested = [(f"{scope}{each.name}", (*at, tags[0], i), quiet, each) for i, each in enumerate(messages)]
            waiting.extend(reversed(nested))

        push_types(
            f"{proto.package}." if proto.package else "", (), (4, 5), quiet, (proto.message_type, proto.enum_type)
        )
        while waiting:
            name, path, ignored, node = waiting.pop()
            if isinstance(node, DescriptorProto) and node.options.map_entry:
                continue
            ignored |= self._silenced_rules(path)
            yield _LintedType(name, path, ignored, len(path) == 2), node
            if isinstance(node, DescriptorProto):
                push_types(f"{name}.", path, (3, 4), ignored, (node.nested_type, node.enum_type))

    # --- declarations -----------------------------------------------------------------------------------------------

    def _check_message(self, place: _LintedType, node: DescriptorProto) -> None:
        what = f"the message {node.name}"
        common.check_name(self.notes, place.name, node.name, what, common.TYPE_NAME, place.ignored)
        self._check_documented(place.name, place.path, f"The message {node.name}", place.ignored)
        common.report_case_clashes(self.notes, (field.name for field in node.field), place.name, place.ignored)
        for index, field in enumerate(node.field):
            self._check_field(place, (*place.path, 2, index), field, "field")
        for index, field in enumerate(node.extension):
            self._check_field(place, (*place.path, 6, index), field, "extension")
        implied = {field.oneof_index for field in node.field if field.proto3_optional}
        for index, oneof in enumerate(node.oneof_decl):
            if index not in implied:
                path, name = (*place.path, 8, index), f"{place.name}.{oneof.name}"
                ignored = place.ignored | self._silenced_rules(path)
                common.check_name(self.notes, name, oneof.name, f"the oneof {oneof.name}", common.SNAKE_NAME, ignored)

    def _check_field(self, place: _LintedType, path: Path, field: FieldDescriptorProto, kind: str) -> None:
        if not self.notes.count_declaration():
            return
        name = f"{place.name}.{field.name}" if place.name else field.name
        ignored = place.ignored | self._silenced_rules(path)
        if field.type != _F.TYPE_GROUP:  # a group is named by its message, in lower case
            common.check_name(self.notes, name, field.name, f"the {kind} {field.name}", common.SNAKE_NAME, ignored)
        self._check_documented(name, path, f"The {kind} {field.name}", ignored)
        if _is_required(field):
            self.notes.add_finding(
                "REQUIRED_FIELD",
                name,
                f"{field.name} is required: no writer may ever leave it out, and no reader without it can be rolled"
                " out safely.",
                "Make it optional, and check it where the data is used.",
                current="required",
                ignored=ignored,
            )

    def _check_enum(self, place: _LintedType, node: EnumDescriptorProto) -> None:
        common.check_name(self.notes, place.name, node.name, f"the enum {node.name}", common.TYPE_NAME, place.ignored)
        self._check_documented(place.name, place.path, f"The enum {node.name}", place.ignored)
        prefix = common.restyle_name(node.name, "UPPER_SNAKE_CASE") + "_"
        for index, value in enumerate(node.value):
            if not self.notes.count_declaration():
                return
            path, name = (*place.path, 2, index), f"{place.name}.{value.name}"
            ignored = place.ignored | self._silenced_rules(path)
            common.check_name(self.notes, name, value.name, f"the value {value.name}", common.SYMBOL_NAME, ignored)
            if place.top and not value.name.upper().startswith(prefix):
                why = f"{value.name} shares its scope with the values of every other enum of the package."
                fix = f"Call it {prefix}{value.name}, or declare the enum inside a message."
                self.notes.add_finding("ENUM_VALUE_PREFIX", name, why, fix, current=value.name, ignored=ignored)
            if index == 0 and not value.name.endswith(_UNSPECIFIED):
                why = f"An unset field reads as {value.name}, as if a writer had chosen it."
                fix = f"Begin with {prefix}UNSPECIFIED = 0."
                self.notes.add_finding("ENUM_ZERO_UNSPECIFIED", name, why, fix, current=value.name, ignored=ignored)

    def _check_services(self, proto: FileDescriptorProto, quiet: frozenset[str]) -> None:
        for index, service in enumerate(proto.service):
            path, name = (6, index), self.schema.full_name(service.name)
            ignored = quiet | self._silenced_rules(path)
            common.check_name(self.notes, name, service.name, f"the service {service.name}", common.TYPE_NAME, ignored)
            self._check_documented(name, path, f"The service {service.name}", ignored)
            for at, method in enumerate(service.method):
                inner, full = (*path, 2, at), f"{name}.{method.name}"
                hidden = ignored | self._silenced_rules(inner)
                common.check_name(self.notes, full, method.name, f"the method {method.name}", common.TYPE_NAME, hidden)
                self._check_documented(full, inner, f"The method {method.name}", hidden)

    # --- comments ---------------------------------------------------------------------------------------------------

    def _silenced_rules(self, path: Path) -> frozenset[str]:
        comment = self.comments.comment_at(path)
        return common.ignored_rules_in_comment(comment) if comment else frozenset()

    def _check_documented(self, name: str, path: Path, what: str, ignored: frozenset[str]) -> None:
        if self.documented and not common.has_explanation(self.comments.comment_at(path)):
            common.report_missing_doc(self.notes, name, what, "Put a comment in front of it.", ignored)

    # --- recursion --------------------------------------------------------------------------------------------------

    def _check_recursion(self) -> None:
        for rule, required in (("RECURSIVE_TYPE", False), ("UNBOUNDED_RECURSION", True)):

            def list_edges(name: str, required: bool = required) -> Sequence[str]:
                return [inner for inner in self._field_messages(name, required=required) if inner in self.messages]

            for group in strongly_connected(self.messages, list_edges):
                place, _ = self.messages[group[0]]
                common.report_recursion(self.notes, rule, place.name, group, place.ignored)

    def _field_messages(self, name: str, *, required: bool) -> Iterator[str]:
        """Yield the messages in a message's fields, including the values of its maps."""
        message = self.messages[name][1]
        entries = {f".{name}.{each.name}": each for each in message.nested_type if each.options.map_entry}
        for field in message.field:
            if required and not _is_required(field):
                continue
            entry = entries.get(field.type_name)
            yield (entry.field[1] if entry is not None else field).type_name.removeprefix(".")


def _is_required(field: FieldDescriptorProto) -> bool:
    return field.label == _F.LABEL_REQUIRED or field.options.features.field_presence == FeatureSet.LEGACY_REQUIRED


# --- imports --------------------------------------------------------------------------------------------------------


def _find_unused_imports(schema: ProtobufSchema) -> Iterator[str]:
    """Yield imports of which no type is used. Public imports and those with extensions count as used."""
    proto = schema.proto
    files = {file.name: file for file in schema.files}
    public = {proto.dependency[index] for index in proto.public_dependency}
    used = set(_used_type_names(proto))
    for path in proto.dependency:
        if path in public or path not in files:
            continue
        reached, waiting = {path: files[path]}, [files[path]]
        while waiting:
            file = waiting.pop()
            for index in file.public_dependency:
                other = file.dependency[index]
                if other in files and other not in reached:
                    reached[other] = files[other]
                    waiting.append(files[other])
        if not any(_has_extensions(file) or not used.isdisjoint(_declared_names(file)) for file in reached.values()):
            yield path


def _used_type_names(proto: FileDescriptorProto) -> Iterator[str]:
    """Yield the full name of every type that the file uses."""
    waiting = list(proto.message_type)
    fields = list(proto.extension)
    while waiting:
        message = waiting.pop()
        fields += [*message.field, *message.extension]
        waiting += message.nested_type
    for field in fields:
        yield from (name for name in (field.type_name, field.extendee) if name)
    for service in proto.service:
        for method in service.method:
            yield from (method.input_type, method.output_type)


def _declared_names(file: FileDescriptorProto) -> Iterator[str]:
    prefix = f".{file.package}" if file.package else ""
    waiting = [(prefix, message) for message in file.message_type]
    yield from (f"{prefix}.{enum.name}" for enum in file.enum_type)
    while waiting:
        scope, message = waiting.pop()
        name = f"{scope}.{message.name}"
        yield name
        yield from (f"{name}.{enum.name}" for enum in message.enum_type)
        waiting += [(name, nested) for nested in message.nested_type]


def _has_extensions(file: FileDescriptorProto) -> bool:
    waiting = list(file.message_type)
    has_extension = bool(file.extension)
    while waiting and not has_extension:
        message = waiting.pop()
        has_extension = bool(message.extension)
        waiting += message.nested_type
    return has_extension
