"""Rules about files, packages and what they declare: nothing of the writer's may be missing in the reader's."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial

from stele.formats.protobuf.buf.module import File, Module
from stele.formats.protobuf.buf.note import Note, Rules

_Names = Callable[[File], Mapping[str, object]]

_KINDS: Mapping[str, _Names] = {
    "message": lambda file: file.messages,
    "enum": lambda file: file.enums,
    "extension": lambda file: file.extensions,
    "service": lambda file: file.services,
}


def _files(new: Module, old: Module) -> Iterator[Note]:
    for path, file in old.files.items():
        if path not in new.files:
            yield Note(
                file.proto.name,
                "",
                f"file {file.proto.name}",
                f"Whatever imports or includes {file.proto.name} finds no such file in the reader's schema.",
                f"Keep {file.proto.name}, if only to import publicly what it declared.",
            )


def _packages(new: Module, old: Module) -> Iterator[Note]:
    for package in old.packages:
        if package not in new.packages:
            yield Note(
                package,
                "",
                f"package {package}" if package else "files without a package",
                "Code generated for the package is used under its name, which the reader's schema no longer has.",
                f"Keep `package {package};` in some file." if package else "Keep a file without package statement.",
            )


def _from_file(kind: str, new: File, old: File) -> Iterator[Note]:
    names = _KINDS[kind]
    return _missing(kind, names(new), old, names(old), f"file {old.proto.name}")


def _from_package(kind: str, new: Module, old: Module) -> Iterator[Note]:
    """As in buf, messages, enums and extensions are only missed in a package that still has some of the kind."""
    names = _KINDS[kind]
    for package, files in old.packages.items():
        there = {name for file in new.packages.get(package, ()) for name in names(file)}
        if there or (kind == "service" and package in new.packages):
            for file in files:
                yield from _missing(kind, there, file, names(file), f"package {package or '(none)'}")


def _missing(kind: str, there: Collection[str], file: File, names: Mapping[str, object], place: str) -> Iterator[Note]:
    for name in names:
        if name not in there:
            yield Note(
                file.full_name(name),
                "",
                f"{kind} {name}",
                f"Code and schemas that use {kind} {file.full_name(name)} no longer find it in {place}.",
                f"Keep {kind} {name}; mark it deprecated when it should no longer be used.",
            )


MODULE_RULES: Rules[Module] = {
    "FILE_NO_DELETE": _files,
    "PACKAGE_NO_DELETE": _packages,
    **{f"PACKAGE_{kind.upper()}_NO_DELETE": partial(_from_package, kind) for kind in _KINDS},
}
FILE_RULES: Rules[File] = {f"{kind.upper()}_NO_DELETE": partial(_from_file, kind) for kind in _KINDS}
