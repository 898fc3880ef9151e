"""Rules about two files of the same path: syntax, package, and the options that shape generated code."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from google.protobuf.descriptor_pb2 import FileOptions

from stele.formats.protobuf.buf.module import FileDeclaration
from stele.formats.protobuf.buf.note import Rules, Violation

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
"""Options of a file to the language whose generated code they change. An unset option counts as its default."""


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


RULES: Rules[FileDeclaration] = {
    "FILE_SAME_PACKAGE": _compare_package,
    "FILE_SAME_SYNTAX": _compare_syntax,
    **{f"FILE_SAME_{name.upper()}": partial(_compare_option, name) for name in _OPTIONS},
}
