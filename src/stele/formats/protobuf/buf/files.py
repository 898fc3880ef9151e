"""Rules about files and packages: syntax, options that shape generated code, and declarations that are gone."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial

from google.protobuf.descriptor_pb2 import FileOptions

from stele.formats.protobuf.buf.module import FileDeclaration, Module
from stele.formats.protobuf.buf.rules import Rules, Violation

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
    """As in buf, messages, enums and extensions are only missed in a package that still has some of the kind."""
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
RULES: Rules[FileDeclaration] = {
    "FILE_SAME_PACKAGE": _compare_package,
    "FILE_SAME_SYNTAX": _compare_syntax,
    **{f"FILE_SAME_{name.upper()}": partial(_compare_option, name) for name in _OPTIONS},
    **{f"{kind.upper()}_NO_DELETE": partial(_find_deleted_in_file, kind) for kind in _DECLARATIONS},
}
