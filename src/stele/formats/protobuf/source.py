"""Tells apart the shapes in which a Protobuf schema arrives, and reads the ones that are not text."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.message import DecodeError

_BASE64 = re.compile(rb"[A-Za-z0-9+/=\s]{8,}")
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f]")


def read_descriptors(document: bytes) -> Sequence[FileDescriptorProto]:
    """The descriptors in a document, the schema's own last; empty when the document is source text.

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
    """The set's files, the one that no other file imports last (the last such one, as compilers write it)."""
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
