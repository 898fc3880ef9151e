"""Walks along the chains of the model: from a number to its version, from a content to its entries."""

from __future__ import annotations

from collections.abc import Iterator

from stele.core.model import Content, SchemaEntry, SchemaKind, Subject, Version


def find_version(subject: Subject, version_number: int) -> Version | None:
    """Return the version of that number in this incarnation, in any state.

    Versions are stored in ascending order.
    """
    rows = subject.versions
    if 0 < version_number <= len(rows) and rows[version_number - 1].version_number == version_number:
        return rows[version_number - 1]
    low, high = 0, len(rows)
    while low < high:
        middle = (low + high) // 2
        if rows[middle].version_number < version_number:
            low = middle + 1
        else:
            high = middle
    return rows[low] if low < len(rows) and rows[low].version_number == version_number else None


def next_kind_version(subject: Subject | None, schema_kind: SchemaKind, version_number: int) -> int:
    """Return the number of a new version in its kind.

    It is the version number while the subject has one kind, else one above the highest of the kind.
    """
    if (
        subject is None
        or subject.kind is None
        or (subject.kind == schema_kind and subject.highest_kind_versions is None)
    ):
        return version_number
    return 1 if subject.highest_kind_versions is None else subject.highest_kind_versions.get(schema_kind, 0) + 1


def list_formats_of_text(content: Content | None) -> Iterator[Content]:
    """Yield the content, and the contents of the same text in other formats."""
    while content is not None:
        yield content
        content = content.same_text_in_other_format


def list_entries(content: Content) -> list[SchemaEntry]:
    """Return every schema id of a content, in all namespaces, newest first."""
    entries, schema = [], content.newest_entry
    while schema is not None:
        entries.append(schema)
        schema = schema.older_entry
    return entries


def list_versions_of_entry(schema: SchemaEntry) -> list[Version]:
    """Return every version with a schema id, newest first."""
    versions, version = [], schema.newest_version
    while version is not None:
        versions.append(version)
        version = version.older_version
    return versions


def find_creator(version: Version) -> str:
    """Return the name of the caller who registered a version, '' for an anonymous caller."""
    return version.attributes.created_by if version.attributes is not None else ""


def list_versions_in_subject(subject: Subject | None, schema: SchemaEntry) -> list[Version]:
    """Return the versions of a subject with a schema id, ascending, by the shorter of two ways."""
    if subject is None:
        return []
    versions: list[Version] = []
    use = schema.newest_version
    for _ in subject.versions:
        if use is None:
            return sorted(versions, key=lambda row: row.version_number)
        if use.subject is subject:
            versions.append(use)
        use = use.older_version
    return [row for row in subject.versions if row.schema is schema]
