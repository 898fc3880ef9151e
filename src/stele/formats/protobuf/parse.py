"""Parsing: turns a document (source text or descriptors) and its references into a compiled schema."""

from __future__ import annotations

import base64
import binascii
import re
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from cachetools import LRUCache
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.message import DecodeError

from stele.errors import MalformedSchema
from stele.formats.protobuf.compiler import CompilerPool, builtin_sources, error_from_messages, find_refused_place
from stele.formats.protobuf.compiler_worker import PROCESSOR_LIMIT
from stele.formats.protobuf.confluent_text import print_tree
from stele.formats.protobuf.lenient import (
    KeptOptions,
    LenientSources,
    drop_statement,
    is_read_without_compiler,
    link_sources,
)
from stele.formats.protobuf.model import ProtobufSchema
from stele.formats.protobuf.source_tree import FileNode, SourceError, parse_source

_BASE64 = re.compile(rb"[A-Za-z0-9+/=\s]{8,}")
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f]")


def read_descriptors(document: bytes) -> Sequence[FileDescriptorProto]:
    """Return the descriptors in a document, the schema's own last; empty when the document is source text.

    Descriptors come as a FileDescriptorProto or a FileDescriptorSet, serialized, in base64 or as plain bytes. No source
    text can be mistaken for either: base64 has no semicolon and no brace, and every descriptor with a declaration has
    control characters, which source text must not have.
    """
    if _BASE64.fullmatch(document):
        try:
            return _read_serialized(base64.b64decode(b"".join(document.split()), validate=True))
        except binascii.Error:
            return ()
    return _read_serialized(document) if document[:1] == b"\n" and _CONTROL.search(document) else ()


def _read_serialized(data: bytes) -> Sequence[FileDescriptorProto]:
    for kind in (_read_set, _read_file):
        try:
            files = kind(data)
        except DecodeError:
            continue
        if files and all(_is_plausible(file) for file in files):
            return files
    return ()


def _read_file(data: bytes) -> list[FileDescriptorProto]:
    return [FileDescriptorProto.FromString(data)]


def _read_set(data: bytes) -> list[FileDescriptorProto]:
    """Return the files of the set. Last is the file that no other file imports; of several such files, the last one."""
    files = list(FileDescriptorSet.FromString(data).file)
    imported = {name for file in files for name in file.dependency}
    roots = [file for file in files if file.name not in imported]
    if roots:
        files.remove(roots[-1])
        files.append(roots[-1])
    return files


def _is_plausible(file: FileDescriptorProto) -> bool:
    declares = file.message_type or file.enum_type or file.service or file.extension or file.dependency
    return bool(declares or file.syntax or file.package)


DEFAULT_NAME = "default.proto"
"""Import path of a document without a name."""
_MOST_LEFT_OUT = 20
"""Most statements that are left out, one by one, of a text that the compiler refuses."""
MAX_BYTES = 4 << 20
"""Limit for a document together with its references, in bytes."""
MAX_DECLARATIONS = 30_000
"""Most declarations of one file: messages, fields, oneofs, enums, values, ranges, reserved names, services, methods.

Printing and comparing take up to 0.1 ms for each. (The largest published files, of Google's advertising interface, have
about a tenth.)
"""
MAX_ALL_DECLARATIONS = 90_000
"""Most declarations of a file together with its imports."""
CACHE_BYTES = 64 << 20
"""Approximate memory limit of the cache of parsed schemas, in bytes."""
_SCHEMA_BYTES = 16 << 10
_BYTES_PER_BYTE = 24
"""Memory of a schema in bytes, per byte of its serialized descriptors and positions. Measured."""

_SAFE_NAME = re.compile(r"(?!.*(^|/)\.{0,2}(/|$))[^\x00-\x1f\x7f\\:]{1,512}")

_Key = tuple[bytes, str, tuple[tuple[str, bytes], ...], bool]
"""Cache key: text, name, references, and whether they must compile unchanged."""


class _CachedSchema(NamedTuple):
    """A schema with the approximate memory size of it and its sources, in bytes."""

    schema: ProtobufSchema
    size: int


class SchemaCache:
    """Cache of schemas by their sources. Drops the least recently used ones beyond a number of bytes. Thread-safe."""

    def __init__(self, capacity: int) -> None:
        self._schemas: LRUCache[_Key, _CachedSchema] = LRUCache(capacity, getsizeof=lambda cached: cached.size)
        self._lock = threading.Lock()

    def find_schema(self, key: _Key) -> ProtobufSchema | None:
        """Return the schema of some sources, None when it is not cached."""
        with self._lock:
            cached = self._schemas.get(key)
        return None if cached is None else cached.schema

    def store_schema(self, key: _Key, schema: ProtobufSchema) -> None:
        """Cache a schema unless it alone is larger than the cache."""
        texts = len(key[0]) + sum(len(text) for _, text in key[2])
        size = _SCHEMA_BYTES + texts + _BYTES_PER_BYTE * schema.size
        with self._lock, suppress(ValueError):
            self._schemas[key] = _CachedSchema(schema, size)


_CACHE = SchemaCache(CACHE_BYTES)
_COMPILER = CompilerPool()


def parse(text: bytes, references: Mapping[str, bytes], *, name: str = "", strict: bool = True) -> ProtobufSchema:
    """Compile one document.

    The document is `.proto` source text (proto2, proto3, editions), or a FileDescriptorProto or FileDescriptorSet,
    serialized, with or without base64. So are the references, which map import paths to documents. name is the
    document's own import path; a path that no import could name is replaced by `DEFAULT_NAME`. Equal arguments return
    the same object. strict=False accepts what Confluent's registry accepts, undeclared types, and fields and enum
    values that clash: see `lenient`.
    Raises `MalformedSchema` with line and column, `UnresolvedReference` for an import that is neither built in nor
    among the references.
    """
    sources = text, name, tuple(references.items())
    schema = _CACHE.find_schema((*sources, True))
    if schema is None and not strict:
        schema = _CACHE.find_schema((*sources, False))
    if schema is None:
        document = _Document(text, references, name)
        compiles = True
        try:
            schema = document.compile()
        except MalformedSchema:
            schema = None if strict else document.compile_leniently()
            if schema is None:
                raise
            compiles = False
        _CACHE.store_schema((*sources, compiles), schema)
    return schema


class _Document:
    """One document with its references, ready for the compiler. Raises `MalformedSchema` when they are too large."""

    def __init__(self, text: bytes, references: Mapping[str, bytes], name: str) -> None:
        if len(text) + sum(map(len, references.values())) > MAX_BYTES:
            raise MalformedSchema(f"the schema and its references are larger than {MAX_BYTES} bytes")
        descriptors = read_descriptors(text)
        self._main = _own_name(name, descriptors)
        self._references = dict(references)
        self._texts, self._known = _split_references(references)
        self._texts.pop(self._main, None)
        self._source = b"" if descriptors else text
        self._sent = descriptors[-1] if descriptors else None
        if descriptors:
            own = FileDescriptorProto()
            own.CopyFrom(descriptors[-1])
            own.name = self._main
            self._known = [own, *self._known, *descriptors[:-1]]
        else:
            self._texts[self._main] = text

    def compile(self) -> ProtobufSchema:
        """Compile the schema by the rules of the compiler. Raises `MalformedSchema`."""
        return self._build_schema(_compile_files(self._main, self._texts, self._known))

    def compile_leniently(self) -> ProtobufSchema | None:
        """Compile the schema as far as its names resolve. Return None when it has other errors."""
        linked: LenientSources | None = None
        for kept_options in KeptOptions:
            linked = link_sources(self._main, self._texts, self._known, kept_options)
            if linked is None or (kept_options is KeptOptions.NONE and not self._is_read_without_compiler(linked)):
                return None
            with suppress(MalformedSchema):
                files = _compile_files(self._main, linked.texts, ())
                return self._build_schema(files, self._note_lost_options(linked, kept_options))
        return None if linked is None else self._compile_reduced(linked)

    def _is_read_without_compiler(self, linked: LenientSources) -> bool:
        return is_read_without_compiler(linked.texts[self._main].decode("utf-8", "surrogateescape"))

    @staticmethod
    def _note_lost_options(linked: LenientSources, kept_options: KeptOptions) -> LenientSources:
        """Return the sources, marked as rejected if options of descriptor.proto had to be dropped.

        They are dropped only if the compiler refuses one, which is an error like others.
        """
        if kept_options is not KeptOptions.NONE:
            return linked
        return linked._replace(rejected=(*linked.rejected, "options"))

    def _compile_reduced(self, linked: LenientSources) -> ProtobufSchema | None:
        """Compile the schema without the statements that the compiler refuses. Return None when that takes too long.

        If dropping statements does not help soon, only the package is compiled. The text is stored unchanged.
        """
        text = linked.texts[self._main].decode("utf-8", "surrogateescape")
        file = parse_source(text)
        shell = print_tree(FileNode(syntax=file.syntax, package=file.package))
        others = [(path, other) for path, other in linked.texts.items() if path != self._main]
        for turn in range(_MOST_LEFT_OUT + 1):
            own = text.encode("utf-8", "surrogateescape")
            outcome = _COMPILER.compile_file(self._main, [*others, (self._main, own)], b"")
            if outcome is None:
                return None
            if outcome.ok:
                rejected = (*linked.rejected, "statements")
                files = list(FileDescriptorSet.FromString(outcome.descriptors).file)
                return self._build_schema(files, linked._replace(rejected=rejected, is_partial=True))
            place = find_refused_place(outcome.messages, self._main)
            shorter = drop_statement(text, *place) if place is not None and turn < _MOST_LEFT_OUT - 1 else None
            text = shell if shorter is None else shorter
        return None

    def _build_schema(
        self, files: Sequence[FileDescriptorProto], linked: LenientSources | None = None
    ) -> ProtobufSchema:
        _check_limits(files)
        try:
            return ProtobufSchema(
                files,
                self._source,
                sent=self._sent,
                is_partial=linked is not None and linked.is_partial,
                unresolved=linked.unresolved if linked is not None else (),
                rejected=linked.rejected if linked is not None else (),
                references=self._references,
            )
        except TypeError as error:  # the run-time library refuses what the compiler took
            raise MalformedSchema(f"the descriptor cannot be used: {error}") from error


def _check_limits(files: Sequence[FileDescriptorProto]) -> None:
    """Raise `MalformedSchema` for files that would take too long to print and compare."""
    left = MAX_ALL_DECLARATIONS
    for file in reversed(files):
        count = _count_declarations(file, left)
        if file is files[-1] and count > MAX_DECLARATIONS:
            raise MalformedSchema(f"the file has more than {MAX_DECLARATIONS} declarations")
        left -= count
        if left < 0:
            raise MalformedSchema(f"the file and its imports have more than {MAX_ALL_DECLARATIONS} declarations")


def _count_declarations(file: FileDescriptorProto, most: int) -> int:
    """Return the number of declarations of a file, at any depth. Counting stops soon after `most`."""
    count = len(file.extension) + sum(1 + len(service.method) for service in file.service)
    enums = list(file.enum_type)
    messages = list(file.message_type)
    while messages and count <= most:
        message = messages.pop()
        count += 1 + len(message.field) + len(message.oneof_decl) + len(message.extension)
        count += len(message.extension_range) + len(message.reserved_range) + len(message.reserved_name)
        messages += message.nested_type
        enums += message.enum_type
    return count + sum(1 + len(e.value) + len(e.reserved_range) + len(e.reserved_name) for e in enums)


def _own_name(name: str, descriptors: Sequence[FileDescriptorProto]) -> str:
    """Return the import path of the document, never one that looks like an option or argument file of the compiler."""
    candidates = (name, descriptors[-1].name if descriptors else "")
    return next((c for c in candidates if _SAFE_NAME.fullmatch(c) and (c[0].isalnum() or c[0] == "_")), DEFAULT_NAME)


def _split_references(references: Mapping[str, bytes]) -> tuple[dict[str, bytes], list[FileDescriptorProto]]:
    """Return the references as source texts and as descriptors, without names that no import statement may use."""
    texts: dict[str, bytes] = {}
    known: list[FileDescriptorProto] = []
    for path, document in references.items():
        if not _SAFE_NAME.fullmatch(path):
            continue
        descriptors = read_descriptors(document)
        if descriptors:
            own = FileDescriptorProto()
            own.CopyFrom(descriptors[-1])
            own.name = path
            known += [own, *descriptors[:-1]]
        else:
            texts[path] = document
    return texts, known


def _compile_files(
    main: str, texts: Mapping[str, bytes], known: Sequence[FileDescriptorProto]
) -> list[FileDescriptorProto]:
    descriptor_set = FileDescriptorSet(file=known).SerializeToString() if known else b""
    outcome = _COMPILER.compile_file(main, list(texts.items()), descriptor_set)
    if outcome is None:
        why = f"the Protobuf compiler crashed on the schema, or needed more than {PROCESSOR_LIMIT:g} s"
        raise MalformedSchema(why, expected="a smaller schema, with fewer repeated names and numbers")
    if not outcome.ok:
        raise error_from_messages(outcome.messages, main, texts.get(main, b""))
    return list(FileDescriptorSet.FromString(outcome.descriptors).file)


def list_imports(text: bytes) -> list[str]:
    """Return the import paths of a document, built-in files left out."""
    descriptors = read_descriptors(text)
    if descriptors:
        paths = list(descriptors[-1].dependency)
    else:
        try:
            paths = [each.path for each in parse_source(text.decode("utf-8", "replace")).imports]
        except SourceError as error:
            raise MalformedSchema(str(error)) from None
    return [path for path in dict.fromkeys(paths) if path not in builtin_sources()]
