"""What a compiler and a target are, and how they are found."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Final, Protocol

from stele.codegen.python import PythonCompiler
from stele.errors import InvalidRequest

COMPILERS: Final = "stele.compilers"
"""The group of entry points compilers are found by; the name is that of the language."""


class Compiler(Protocol):
    """Turns schemas into source code."""

    def compile(self, idl: str, schema_type: str) -> Mapping[str, bytes]:
        """Files by relative path, parted by `/`. schema_type is a type of schema (`AVRO`), or the name of a format.

        Raises `UnknownFormat`, `MalformedSchema`, `CannotConvert`.
        """
        ...


class Target(Protocol):
    """Takes source code: a folder, an artifact repository."""

    def upload(self, files: Mapping[str, bytes], context: str) -> None:
        """Keep files, all or none; context says as what. Raises `InvalidRequest` for files or a context it refuses."""
        ...


def get_compiler(language: str) -> Compiler:
    """The compiler for a language. Raises `InvalidRequest` for one nobody installed."""
    if language == PythonCompiler.language:
        return PythonCompiler()
    for point in entry_points(group=COMPILERS, name=language):
        compiler: Compiler = point.load()()
        return compiler
    known = ", ".join(sorted({PythonCompiler.language, *(point.name for point in entry_points(group=COMPILERS))}))
    raise InvalidRequest(f"no compiler for {language!r} is installed; there are compilers for {known}")


def publish_sources(files: Mapping[str, bytes], target: Target, context: str) -> None:
    """Hand files to a target. Raises `InvalidRequest` for none, and for paths that lead out of where they belong."""
    if not files:
        raise InvalidRequest("there are no files to publish")
    for path in files:
        parts = path.split("/")
        if any(part in {"", ".", ".."} or "\\" in part or "\0" in part for part in parts):
            raise InvalidRequest(f"{path!r} is no relative path of a file")
    target.upload(files, context)
