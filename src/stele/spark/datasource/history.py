"""What subjects and versions there were after some changes: the journal, folded. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from stele.client import JournalEntry
from stele.spark.datasource.tables import Row, to_timestamp


@dataclass(frozen=True, slots=True)
class KnownVersion:
    """A version: the change that registered it, and whether it was (soft-)deleted since."""

    entry: JournalEntry
    deleted: bool = False

    @property
    def format(self) -> str:
        """Name of the format, as the registry calls it."""
        return str(self.entry.details.get("format", ""))

    @property
    def sha256(self) -> str:
        """Digest of the text, in hexadecimal."""
        return str(self.entry.details.get("sha256", ""))

    def row(self, text: str | None) -> Row:
        """As a row of the table versions."""
        entry, details = self.entry, self.entry.details
        references = [
            (each.get("name"), each.get("namespace"), each.get("subject"), each.get("version"))
            for each in details.get("references", ())
        ]
        return (
            entry.namespace,
            entry.subject,
            entry.version,
            entry.schema_id,
            self.format,
            details.get("type", ""),
            text,
            references,
            self.deleted,
            to_timestamp(details.get("registered_at", entry.at)),
            entry.actor,
            entry.via,
            self.sha256,
            entry.seq,
        )


@dataclass(slots=True)
class _Subject:
    versions: dict[int, KnownVersion] = field(default_factory=dict)
    seq: int = 0


class History:
    """Subjects and their versions; `add` the changes in order."""

    def __init__(self) -> None:
        self._subjects: dict[tuple[str, str], _Subject] = {}

    def add(self, entry: JournalEntry) -> None:
        """Take note of a change."""
        if entry.namespace is None or entry.subject is None:
            return
        key = entry.namespace, entry.subject
        if entry.kind in {"subject_created", "registered"} and key not in self._subjects:
            self._subjects[key] = _Subject()
        subject = self._subjects.get(key)
        if subject is None:
            return
        subject.seq = entry.seq
        number = entry.version
        if entry.kind == "registered" and number is not None:
            subject.versions[number] = KnownVersion(entry)
        elif entry.kind == "soft_deleted" and number in subject.versions:
            subject.versions[number] = replace(subject.versions[number], deleted=True)
        elif entry.kind == "purged":
            if number is not None:
                subject.versions.pop(number, None)
            if not subject.versions:
                del self._subjects[key]
        elif entry.kind == "subject_closed":
            del self._subjects[key]

    def versions(self) -> Iterator[KnownVersion]:
        """All versions by namespace, subject and number."""
        for _, subject in sorted(self._subjects.items()):
            for _, known in sorted(subject.versions.items()):
                yield known

    def subjects(self) -> Iterator[Row]:
        """All subjects by name, as rows of the table subjects."""
        for (namespace, name), subject in sorted(self._subjects.items()):
            live = [known for _, known in sorted(subject.versions.items()) if not known.deleted]
            latest = live[-1] if live else None
            yield (
                namespace,
                name,
                latest.format if latest else None,
                len(live),
                latest.entry.version if latest else None,
                latest.entry.schema_id if latest else None,
                bool(subject.versions) and not live,
                subject.seq,
            )
