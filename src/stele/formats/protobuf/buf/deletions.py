"""Rules about files, packages and what they declare: nothing of the writer's may be missing in the reader's."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial

from stele.formats.protobuf.buf.module import FileDeclaration, Module
from stele.formats.protobuf.buf.note import Rules, Violation

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
FILE_RULES: Rules[FileDeclaration] = {
    f"{kind.upper()}_NO_DELETE": partial(_find_deleted_in_file, kind) for kind in _DECLARATIONS
}
