"""Splits the files of a folder that define several types, so that every type has a subject of its own."""

from __future__ import annotations

import json

import msgspec

from stele.client import split_subject
from stele.errors import InvalidRequest, MalformedSchema
from stele.formats.capabilities import CanSplit, SplitDocument
from stele.formats.registry import get_format
from stele.review.files import SchemaFile
from stele.review.imports import list_exports
from stele.review.manifest import SubjectEntry
from stele.review.workspace import Workspace


def split_workspace(workspace: Workspace) -> Workspace:
    """Return a workspace in which each named type of a subject's file is a subject, too, with the name of the type.

    Such a type has the path `FILE#TYPE`. A type that several files define in the same way is one subject. Files of
    formats that do not define types by name, and files that are no schemas, stay as they are.
    Raises `InvalidRequest` for a type that is defined in two ways, or whose subject belongs to another file.
    """
    entries = workspace.manifest.subjects
    documents = {subject: _split_file(workspace.files[entry.path]) for subject, entry in entries.items()}
    whole = {
        entries[subject].path: msgspec.structs.replace(
            workspace.files[entries[subject].path], text=document.text, is_derived=bool(document.types)
        )
        for subject, document in documents.items()
    }
    defined = {(file.format, name): file for file in whole.values() for name in list_exports(file)}
    files, subjects = {**workspace.files, **whole}, dict(entries)
    for subject, document in documents.items():
        entry = entries[subject]
        for name, text in document.types.items():
            part = SchemaFile(f"{entry.path}#{name}", whole[entry.path].format, text, is_derived=True)
            known = defined.setdefault((part.format, name), part)
            if known is part:
                context = split_subject(subject).context
                own = f":.{context}:{name}" if context else name
                if own in subjects:
                    raise InvalidRequest(f"{entry.path} defines {name}, and {subjects[own].path} has its subject {own}")
                files[part.path] = part
                subjects[own] = SubjectEntry(part.path, part.format, normalize=entry.normalize)
            elif json.loads(known.text) != json.loads(text):
                raise InvalidRequest(f"{known.path.partition('#')[0]} and {entry.path} define {name} differently")
    manifest = msgspec.structs.replace(workspace.manifest, subjects=subjects)
    return Workspace(workspace.root, files, manifest, is_deep=workspace.is_deep)


def _split_file(file: SchemaFile) -> SplitDocument:
    fmt = get_format(file.format)
    if isinstance(fmt, CanSplit):
        try:
            return fmt.split_types(file.text.encode("utf-8", "surrogatepass"))
        except MalformedSchema:
            pass  # the review reports it
    return SplitDocument(file.text, {})
