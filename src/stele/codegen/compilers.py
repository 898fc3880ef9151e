"""Interfaces of compilers and targets, and the lookup of compilers."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Final, Protocol

from stele.codegen.python import PythonCompiler
from stele.errors import InvalidRequest

COMPILERS: Final = "stele.compilers"
"""Entry point group of compilers. The name of an entry point is that of the language."""


class Compiler(Protocol):
    """Turns schemas into source code."""

    def compile(self, idl: str, schema_type: str) -> Mapping[str, bytes]:
        """Return the generated files by relative path, with `/` as separator.

        `schema_type` is a schema type (`AVRO`), or the name of a format. Raises `UnknownFormat`, `MalformedSchema`,
        `CannotConvert`.
        """
        ...


class Target(Protocol):
    """Receives source code: a folder, an artifact repository."""

    def upload(self, files: Mapping[str, bytes], context: str) -> None:
        """Store files, all or none. `context` identifies them, for example as a version.

        Raises `InvalidRequest` for files or a context that the target refuses.
        """
        ...


def get_compiler(language: str) -> Compiler:
    """Return the compiler for a language. Raises `InvalidRequest` if none is installed."""
    if language == PythonCompiler.language:
        return PythonCompiler()
    for point in entry_points(group=COMPILERS, name=language):
        compiler: Compiler = point.load()()
        return compiler
    known = ", ".join(sorted({PythonCompiler.language, *(point.name for point in entry_points(group=COMPILERS))}))
    raise InvalidRequest(f"no compiler for {language!r} is installed; there are compilers for {known}")


def publish_sources(files: Mapping[str, bytes], target: Target, context: str) -> None:
    """Upload files to a target. Raises `InvalidRequest` for no files, and for paths that are not relative."""
    if not files:
        raise InvalidRequest("there are no files to publish")
    for path in files:
        parts = path.split("/")
        if any(part in {"", ".", ".."} or "\\" in part or "\0" in part for part in parts):
            raise InvalidRequest(f"{path!r} is not a relative path of a file")
    target.upload(files, context)
