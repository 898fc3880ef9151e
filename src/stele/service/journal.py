"""The journal of a registry: rows that say who changed what, when and through which API, from the first log record on.

A row has names, numbers and settings, selected member by member. It never has the text of a schema, a document of
another collection (keys, subscriptions), properties, rules or labels, because any of these may be secret or purged.
Clients request texts by their SHA-256. A purged text is not returned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import msgspec

from stele.core import events as ev
from stele.core.access import REGISTRY_RESOURCE, Operation, level_resource
from stele.core.model import Reference, Settings, SettingsLevel
from stele.core.policy_json import PolicyJson
from stele.service.access import AccessControl
from stele.service.registry import Registry

MOST_RECORDS: Final = 1000
"""Maximum number of log records that one page covers."""

MOST_TEXTS: Final = 100
"""Maximum number of texts in one request."""

_ENOUGH: Final = 4 * 1024 * 1024
"""Bytes of texts after which an answer gets no more."""


class JournalEntry(msgspec.Struct, frozen=True):
    """One change. The record `seq` of the log has one or more, counted from 0 by `part`: all of them or none.

    at       milliseconds since 1970 UTC
    actor    name of the caller that made it, '' for an anonymous caller
    via      the API through which it was made
    kind     what happened: `registered`, `soft_deleted`, `purged`, `subject_created`, `settings_changed` …
    namespace    '' is the default one; null where the change is one of the whole registry
    schema_id      id of the schema in its namespace
    details  further values, by kind
    """

    seq: int
    part: int
    at: int
    actor: str
    via: str
    kind: str
    namespace: str | None = None
    subject: str | None = None
    version: int | None = None
    schema_id: int | None = None
    details: dict[str, Any] = {}


class JournalPage(msgspec.Struct, frozen=True):
    """Changes in order.

    next is the last record that was read, end the last record of the log. A client reads further pages until both are
    equal.
    """

    entries: list[JournalEntry]
    next: int
    end: int


class SchemaText(msgspec.Struct, frozen=True):
    """A registered text, by the SHA-256 of its bytes (hex).

    text is null if the text is not UTF-8; base64 has its bytes then.
    """

    sha256: str
    text: str | None
    base64: bytes | None = None


class TextsAnswer(msgspec.Struct, frozen=True):
    """Those of the requested texts that exist.

    omitted lists further texts that exist. The answer is full, so request them again.
    """

    texts: list[SchemaText]
    omitted: list[str]


async def read_page(
    registry: Registry, after: int, limit: int, namespace: str | None = None, subject: str | None = None
) -> JournalPage:
    """Return the changes of at most limit records after `after`, optionally of one namespace or subject name only.

    Everything that was durable when this was called is in the journal: `end` is a barrier. A limit of 0 returns only
    `end`. A caller that may not export everything gets only the changes that it may read. Raises `StoreError`.
    """
    end = (await registry.fresh_state()).seq
    limit = min(limit, end - after)
    if limit <= 0:
        return JournalPage([], after, end)
    records = await registry.read_log(after, limit)
    entries = [entry for seq, record in records for entry in list_entries(seq, record)]
    is_shown = _make_entry_filter(registry.access)
    wanted = [
        entry
        for entry in entries
        if (namespace is None or entry.namespace == namespace)
        and (subject is None or entry.subject == subject)
        and is_shown(entry)
    ]
    return JournalPage(wanted, records[-1][0] if records else after, end)


def _make_entry_filter(access: AccessControl) -> Callable[[JournalEntry], bool]:
    """Return a test of whether the caller may see a change.

    It may see changes of namespaces and subjects that it may read. A caller that may export the registry sees all
    changes.
    """
    if access.is_open or access.allows(Operation.EXPORT, REGISTRY_RESOURCE):
        return lambda entry: True

    def is_shown(entry: JournalEntry) -> bool:
        if entry.namespace is None:
            return False
        level = SettingsLevel(entry.namespace, entry.subject)
        return access.allows(Operation.READ, level_resource(level))

    return is_shown


async def read_texts(registry: Registry, shas: Iterable[bytes]) -> TextsAnswer:
    """Return registered texts by SHA-256, without those that were purged or that the caller may not read."""
    state = await registry.fresh_state()
    texts: list[SchemaText] = []
    omitted: list[str] = []
    size = 0
    for sha in dict.fromkeys(shas):
        content = state.contents.get(sha)
        is_hidden = content is None or not registry.access.can_read_content(content)
        text = b"" if content is None or is_hidden else state.get_text(content)
        if text and size >= _ENOUGH:
            omitted.append(sha.hex())
        elif text:
            size += len(text)
            texts.append(_text_entry(sha, text))
    return TextsAnswer(texts, omitted)


def _text_entry(sha: bytes, text: bytes) -> SchemaText:
    try:
        return SchemaText(sha.hex(), text.decode())
    except UnicodeDecodeError:
        return SchemaText(sha.hex(), None, text)


# --- rows of a record -----------------------------------------------------------------------------------------------


class _Row(msgspec.Struct, frozen=True):
    kind: str
    namespace: str | None = None
    subject: str | None = None
    version: int | None = None
    schema_id: int | None = None
    details: dict[str, Any] = {}


def list_entries(seq: int, record: ev.LogRecord) -> list[JournalEntry]:
    """Return the changes that a log record makes."""
    rows = (row for event in record.events for row in _ROWS[type(event)](event))
    stamp = record.metadata
    return [
        JournalEntry(seq, part, stamp.at, stamp.actor, stamp.via, **msgspec.structs.asdict(row))
        for part, row in enumerate(rows)
    ]


def _without_empty(**details: Any) -> dict[str, Any]:
    """Return the details that have a value."""
    return {name: value for name, value in details.items() if value not in (None, "", (), [], {})}


def _namespace_rows(kind: str) -> Callable[[Any], Iterator[_Row]]:
    def rows(event: Any) -> Iterator[_Row]:
        yield _Row(kind, event.namespace, details=_without_empty(format=getattr(event, "format", "")))

    return rows


def _subject_rows(kind: str, *members: str) -> Callable[[Any], Iterator[_Row]]:
    def rows(event: Any) -> Iterator[_Row]:
        yield _Row(
            kind,
            event.key.namespace,
            event.key.name,
            details=_without_empty(**{member: getattr(event, member) for member in members}),
        )

    return rows


def _registration_rows(event: ev.VersionRegistered) -> Iterator[_Row]:
    details = _without_empty(
        format=event.custom_format or event.format,
        type=event.type,
        sha256=event.sha.hex(),
        references=[_reference_details(reference) for reference in event.references],
        registered_at=event.at,
    )
    yield _Row("registered", event.key.namespace, event.key.name, event.version_number, event.schema_id, details)
    replaced_numbers = sorted(set(event.replaces) - {event.version_number})
    namespace, name = event.key
    yield from (
        _Row("purged", namespace, name, ordinal, details={"by": event.version_number}) for ordinal in replaced_numbers
    )


def _reference_details(reference: Reference) -> dict[str, Any]:
    return {
        "name": reference.name,
        "namespace": reference.namespace,
        "subject": reference.subject,
        "version": reference.version_number,
    }


def _version_rows(kind: str) -> Callable[[Any], Iterator[_Row]]:
    """Return a function that yields one row for each version of an event.

    An event without versions, about the subject alone, gives one row without a number.
    """

    def rows(event: Any) -> Iterator[_Row]:
        yield from (
            _Row(kind, event.key.namespace, event.key.name, ordinal) for ordinal in event.version_numbers or (None,)
        )

    return rows


def _settings_rows(event: ev.SettingsChanged) -> Iterator[_Row]:
    own = event.settings or Settings()
    names = [name for name, value in msgspec.structs.asdict(own).items() if value is not None]
    policy = None if own.policy is None else msgspec.to_builtins(PolicyJson.from_policy(own.policy))
    yield _row_at_level(event.level, "settings_changed", set=names, policy=policy, ruleset=own.ruleset, alias=own.alias)


def _mode_rows(event: ev.ModeChanged) -> Iterator[_Row]:
    yield _row_at_level(event.level, "mode_changed", mode=event.mode and event.mode.value)


def _row_at_level(level: SettingsLevel, kind: str, **details: Any) -> _Row:
    return _Row(kind, level.namespace, level.subject, details=_without_empty(**details))


def _binding_added_rows(event: ev.BindingAdded) -> Iterator[_Row]:
    binding = event.binding
    names = ("cluster", "resource_type", "resource", "role", "lifecycle")
    details = _without_empty(**{name: getattr(binding, name) for name in names})
    yield _Row(
        "binding_added", binding.subject.namespace, binding.subject.name, binding.version_number, details=details
    )


def _binding_removed_rows(event: ev.BindingRemoved) -> Iterator[_Row]:
    cluster, resource_type, resource, role = event.key
    details = _without_empty(cluster=cluster, resource_type=resource_type, resource=resource, role=role)
    yield _Row("binding_removed", details=details)


def _item_rows(event: ev.ItemsChanged) -> Iterator[_Row]:
    """Yield which documents of a collection were written or removed, without their content."""
    for key, document in event.changes:
        kind = "item_removed" if document is None else "item_changed"
        yield _Row(kind, details={"collection": event.collection, "key": list(key)})


def _encoding_rows(event: ev.EncodingAssigned) -> Iterator[_Row]:
    details = _without_empty(encoding=event.encoding, codec=event.codec)
    yield _Row("encoding_assigned", event.key.namespace, event.key.name, details=details)


def _ruleset_rows(event: ev.RulesetAdopted) -> Iterator[_Row]:
    yield _Row("ruleset_adopted", details={"format": event.format, "ruleset": f"{event.name}@{event.version}"})


def _skip_rows(event: ev.IdsSkipped) -> Iterator[_Row]:
    yield _Row("ids_skipped", details={"schema_ids": event.schema_ids, "numbers": event.numbers})


_ROWS: Final[dict[type, Callable[[Any], Iterator[_Row]]]] = {
    ev.NamespaceCreated: _namespace_rows("namespace_created"),
    ev.NamespaceChanged: _namespace_rows("namespace_changed"),
    ev.NamespaceDeleted: _namespace_rows("namespace_deleted"),
    ev.SubjectCreated: _subject_rows("subject_created", "incarnation", "format"),
    ev.SubjectChanged: _subject_rows("subject_changed", "default_version"),
    ev.IncarnationEnded: _subject_rows("subject_closed"),
    ev.VersionRegistered: _registration_rows,
    ev.VersionsSoftDeleted: _version_rows("soft_deleted"),
    ev.VersionsPurged: _version_rows("purged"),
    ev.SettingsChanged: _settings_rows,
    ev.ModeChanged: _mode_rows,
    ev.CodecAdded: _subject_rows("codec_added", "name"),
    ev.EncodingAssigned: _encoding_rows,
    ev.BindingAdded: _binding_added_rows,
    ev.BindingRemoved: _binding_removed_rows,
    ev.ItemsChanged: _item_rows,
    ev.RulesetAdopted: _ruleset_rows,
    ev.IdsSkipped: _skip_rows,
}
"""Functions that make the rows of each type of event."""
