"""Lint rules for Thrift documents; see `stele.formats.lint` for common rules and how to silence one.

Names follow the Apache project's own files and generators: types, services and enums UpperCamelCase, fields and methods
lowerCamelCase or lower_snake_case, enum values and constants UPPER_SNAKE_CASE; typedefs are free. Documentation
is a `/** … */` comment: the language keeps no other. Included documents are not checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from stele.core.findings import Finding
from stele.formats import lint as common
from stele.formats.graph import strongly_connected
from stele.formats.lint import LintReport
from stele.formats.thrift.grammar import TokenKind, tokenize
from stele.formats.thrift.printer import describe_field, format_type
from stele.formats.thrift.schema import (
    Const,
    ContainerType,
    Include,
    Requiredness,
    ThriftEnum,
    ThriftField,
    ThriftNamespace,
    ThriftSchema,
    ThriftService,
    ThriftStruct,
    ThriftType,
    ThriftUnit,
    Typedef,
    TypeName,
)

RULES: Final[Mapping[str, str]] = common.select_rules(
    *("CASE_CLASH", "DOC_REQUIRED", "ENUM_VALUE_EXPLICIT", "ENUM_ZERO_UNSPECIFIED", "FIELD_ID_EXPLICIT"),
    *("LINT_INCOMPLETE", "NAMESPACE_REQUIRED", "NAMING", "NUMBER_REUSED", "RECURSIVE_TYPE", "REQUIREDNESS_DECLARED"),
    *("REQUIRED_FIELD", "UNBOUNDED_RECURSION", "UNUSED_IMPORT"),
)

_UNSPECIFIED: Final = ("UNSPECIFIED", "UNKNOWN", "UNDEFINED", "NONE", "INVALID", "UNSET", "DEFAULT")


def lint_schema(schema: ThriftSchema, before: ThriftSchema | None) -> list[Finding]:
    """Return the findings, in the order of the document."""
    linter = _Linter(schema.unit)
    linter.lint_headers()
    for definition in schema.unit.document.definitions:
        if not linter.notes.count_declaration():
            break
        match definition:
            case ThriftStruct():
                linter.lint_struct(definition)
            case ThriftEnum():
                linter.lint_enum(definition)
            case ThriftService():
                linter.lint_service(definition)
            case Const():
                linter.lint_name(definition.name, definition.name, "constant", common.SYMBOL_NAME, definition.doc)
            case _:
                pass
    linter.lint_recursion()
    if before is not None:
        linter.lint_changes(before.unit)
    return linter.notes.list_findings("")


class _Linter:
    def __init__(self, unit: ThriftUnit) -> None:
        self.unit = unit
        self.notes = LintReport()
        self.quiet = frozenset[str]().union(
            *(common.ignored_rules_in_comment(header.doc) for header in unit.document.headers if header.doc)
        )

    def lint_headers(self) -> None:
        """Check namespaces and includes."""
        headers = self.unit.document.headers
        if not any(isinstance(header, ThriftNamespace) for header in headers):
            why = "The document has no namespace: generated code is placed in the global namespace."
            fix = "Add `namespace * my.package`."
            self.notes.add_finding("NAMESPACE_REQUIRED", "", why, fix, ignored=self.quiet)
        includes = [header for header in headers if isinstance(header, Include)]
        if includes and self.unit.text:
            used = {
                token.text.partition(".")[0]
                for token in tokenize(self.unit.text)
                if _qualify_kind(token.kind, token.text)
            }
            for include in includes:
                if include.prefix.partition(".")[0] not in used:
                    why = f"Nothing of {include.path} is used here."
                    fix = f'Remove `include "{include.path}"`.'
                    ignored = self._ignored_rules(include.doc)
                    self.notes.add_finding(
                        "UNUSED_IMPORT", include.path, why, fix, current=include.path, ignored=ignored
                    )

    # --- definitions ------------------------------------------------------------------------------------------------

    def lint_struct(self, node: ThriftStruct) -> None:
        """Check a struct, union or exception with its fields."""
        ignored = self.lint_name(node.name, node.name, node.kind, common.TYPE_NAME, node.doc)
        self.lint_doc(node.name, f"The {node.kind} {node.name}", node.doc, ignored)
        common.report_case_clashes(self.notes, (field.name for field in node.fields), node.name, ignored)
        for field in node.fields:
            if not self.notes.count_declaration():
                break
            self.lint_field(f"{node.name}.{field.name}", field, ignored, node.kind)

    def lint_field(self, path: str, field: ThriftField, ignored: frozenset[str], kind: str) -> None:
        """Check a field of a struct. `kind` is the kind of the enclosing definition."""
        ignored |= common.ignored_rules_in_comment(field.doc) if field.doc else frozenset()
        common.check_name(self.notes, path, field.name, f"the field {field.name}", common.CAMEL_NAME, ignored)
        self.lint_doc(path, f"The field {field.name}", field.doc, ignored)
        self.lint_field_id(path, field, ignored)
        if kind == "union":
            return
        if field.requiredness is Requiredness.REQUIRED:
            why = f"{field.name} is required: no writer may ever leave it out, and no reader may drop it."
            fix = "Make it optional, and check it where the data is used."
            self.notes.add_finding("REQUIRED_FIELD", path, why, fix, current=describe_field(field), ignored=ignored)
        elif field.requiredness is Requiredness.DEFAULT and kind == "struct":
            why = f"{field.name} is neither optional nor required: every language treats that in another way."
            fix = "Write `optional`."
            self.notes.add_finding(
                "REQUIREDNESS_DECLARED", path, why, fix, current=describe_field(field), ignored=ignored
            )

    def lint_field_id(self, path: str, field: ThriftField, ignored: frozenset[str]) -> None:
        """Check that a field or argument has an explicit id."""
        if field.implicit:
            why = f"{field.name} has no id and is counted as {field.id}: moving it changes what data means."
            self.notes.add_finding(
                "FIELD_ID_EXPLICIT", path, why, "Write an id before it.", current=describe_field(field), ignored=ignored
            )

    def lint_enum(self, node: ThriftEnum) -> None:
        """Check an enum with its values."""
        ignored = self.lint_name(node.name, node.name, "enum", common.TYPE_NAME, node.doc)
        self.lint_doc(node.name, f"The enum {node.name}", node.doc, ignored)
        for value in node.values:
            if not self.notes.count_declaration():
                break
            path = f"{node.name}.{value.name}"
            quiet = ignored | (common.ignored_rules_in_comment(value.doc) if value.doc else frozenset())
            common.check_name(self.notes, path, value.name, f"the value {value.name}", common.SYMBOL_NAME, quiet)
            current = f"{value.name} = {value.number}"
            if value.implicit:
                why = f"{value.name} has no number and is counted as {value.number}: moving it changes what data means."
                self.notes.add_finding(
                    "ENUM_VALUE_EXPLICIT", path, why, f"Write {current}.", current=current, ignored=quiet
                )
            if value.number == 0 and not value.name.upper().endswith(_UNSPECIFIED):
                why = f"In several languages a field that is not set reads as {value.name}, as if it were set."
                fix = "Begin with UNSPECIFIED = 0, or with 1."
                self.notes.add_finding("ENUM_ZERO_UNSPECIFIED", path, why, fix, current=current, ignored=quiet)

    def lint_service(self, node: ThriftService) -> None:
        """Check a service with its methods and their arguments."""
        ignored = self.lint_name(node.name, node.name, "service", common.TYPE_NAME, node.doc)
        self.lint_doc(node.name, f"The service {node.name}", node.doc, ignored)
        for function in node.functions:
            if not self.notes.count_declaration():
                break
            path = f"{node.name}.{function.name}"
            quiet = ignored | (common.ignored_rules_in_comment(function.doc) if function.doc else frozenset())
            common.check_name(self.notes, path, function.name, f"the method {function.name}", common.CAMEL_NAME, quiet)
            self.lint_doc(path, f"The method {function.name}", function.doc, quiet)
            for field in (*function.arguments, *function.throws):
                self.lint_field_id(f"{path}.{field.name}", field, quiet)

    # --- helpers ----------------------------------------------------------------------------------------------------

    def lint_name(self, path: str, name: str, kind: str, styles: common.Styles, doc: str) -> frozenset[str]:
        """Check a name of the document's own scope. Return the rules silenced there."""
        ignored = self._ignored_rules(doc)
        common.check_name(self.notes, path, name, f"the {kind} {name}", styles, ignored)
        return ignored

    def lint_doc(self, path: str, what: str, doc: str, ignored: frozenset[str]) -> None:
        """Check that a declaration has documentation."""
        if not (doc and common.has_explanation(doc)):
            common.report_missing_doc(self.notes, path, what, "Put a comment `/** … */` in front of it.", ignored)

    def _ignored_rules(self, doc: str) -> frozenset[str]:
        return self.quiet | common.ignored_rules_in_comment(doc) if doc else self.quiet

    # --- the whole document -----------------------------------------------------------------------------------------

    def lint_recursion(self) -> None:
        """Report structs inside themselves. Includes cannot be circular, so only this document can have cycles."""
        structs = {struct.name: struct for struct in self.unit.structs}
        for rule, demanded in (("RECURSIVE_TYPE", False), ("UNBOUNDED_RECURSION", True)):

            def edges(name: str, demanded: bool = demanded) -> list[str]:
                return [inner for inner in self._inner_structs(structs[name], demanded=demanded) if inner in structs]

            for group in strongly_connected(structs, edges):
                ignored = self._ignored_rules(structs[group[0]].doc)
                common.report_recursion(self.notes, rule, group[0], group, ignored)

    def _inner_structs(self, struct: ThriftStruct, *, demanded: bool) -> Iterator[str]:
        """Yield the names of structs in a struct's fields. With `demanded`: only those that every value contains."""
        for field in struct.fields:
            if not demanded or (field.requiredness is Requiredness.REQUIRED and struct.kind != "union"):
                yield from self._struct_names(field.type, inside=not demanded)

    def _struct_names(self, kind: ThriftType, *, inside: bool) -> Iterator[str]:
        waiting = [kind]
        while waiting:
            at = waiting.pop()
            if isinstance(at, ContainerType):
                waiting += reversed(at.items) if inside else ()
            elif isinstance(at, TypeName) and "." not in at.name:
                definition = self.unit.types.get(at.name)
                if isinstance(definition, Typedef):
                    waiting.append(definition.type)
                elif isinstance(definition, ThriftStruct):
                    yield definition.name

    def lint_changes(self, old: ThriftUnit) -> None:
        """Report field ids and enum numbers that were reused for something else."""
        for name, definition in self.unit.types.items():
            was = old.types.get(name)
            ignored = self._ignored_rules(definition.doc)
            if isinstance(definition, ThriftStruct) and isinstance(was, ThriftStruct):
                fields = {field.id: field for field in was.fields}
                for field in definition.fields:
                    other = fields.get(field.id)
                    if other and other.name != field.name and format_type(other.type) != format_type(field.type):
                        self._lint_reuse(f"{name}.{field.name}", field.id, field.name, other.name, ignored)
            elif isinstance(definition, ThriftEnum) and isinstance(was, ThriftEnum):
                values = {value.number: value.name for value in was.values}
                current_values = {(value.name, value.number) for value in definition.values}
                for value in definition.values:
                    earlier = values.get(value.number, value.name)
                    if earlier != value.name and (earlier, value.number) not in current_values:
                        self._lint_reuse(f"{name}.{value.name}", value.number, value.name, earlier, ignored)

    def _lint_reuse(self, path: str, number: int, name: str, before: str, ignored: frozenset[str]) -> None:
        why = f"The number {number} belonged to {before}: data written with it is taken for {name}."
        fix = "Take a number that was never used."
        self.notes.add_finding("NUMBER_REUSED", path, why, fix, current=name, before=before, ignored=ignored)


def _qualify_kind(kind: TokenKind, text: str) -> bool:
    return kind is TokenKind.NAME and "." in text
