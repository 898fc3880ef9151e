"""Folds the records of a `_schemas` topic into a registry. A later record replaces an earlier one.

Records come in the order of their offsets. Compaction may have removed any record that a later one replaced.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from stele.errors import InvalidRequest
from stele.migrate import model
from stele.migrate.dependency_order import sort_by_dependency
from stele.migrate.extras import MigratedAssociation, MigratedDek, MigratedKek, RegistryExtras
from stele.migrate.model import DEFAULT_CONTEXT, DEFAULT_LEVEL, Dump, DumpVersion
from stele.migrate.topic_records import (
    AssociationValue,
    DekValue,
    DeleteValue,
    KekValue,
    Key,
    ModeValue,
    Record,
    SchemaValue,
    read_key,
    read_value,
)
from stele.protocol.confluent import Config


def read_topic_records(records: Iterable[Record]) -> Dump:
    """Return the registry in a topic. Raises `InvalidRequest` with the name of the first malformed record."""
    folding = _Folding()
    for record in records:
        folding.add_record(record)
    return folding.build_dump()


class _Folding:
    """The state of the registry after the records so far."""

    def __init__(self) -> None:
        self._versions: dict[tuple[str, int], DumpVersion] = {}
        self._numbers: dict[str, set[int]] = {}
        self._places: dict[tuple[str, int], str] = {}
        self._ids: dict[tuple[str, int], dict[tuple[str, int], str]] = {}
        """By context and id: the versions that have it, with the digest of their content."""
        self._highest: dict[str, int] = {}
        self._configs: dict[str, Config] = {}
        self._modes: dict[str, str] = {}
        self._contexts = {DEFAULT_CONTEXT}
        self._written: dict[tuple[str, str, int], int | None] = {}
        """The seq of the newest record about each object. Tombstones of earlier records have no effect."""
        self._keks: dict[Any, MigratedKek] = {}
        self._deks: dict[Any, MigratedDek] = {}
        self._associations: dict[Any, MigratedAssociation] = {}
        self._left_out: Counter[str] = Counter()
        self._kinds: dict[str, Callable[[Record, Key], None]] = {
            "SCHEMA": self._fold_schema,
            "CONFIG": self._fold_config,
            "MODE": self._fold_mode,
            "DELETE_SUBJECT": self._delete_subject,
            "CLEAR_SUBJECT": self._clear_subject,
            "CONTEXT": self._fold_context,
            "ASSOC": self._fold_association,
            "KEK": self._fold_kek,
            "DEK": self._fold_dek,
        }

    def add_record(self, record: Record) -> None:
        """Fold one record."""
        key = read_key(record)
        if key.keytype == "NOOP":
            return
        if key.keytype not in self._kinds:
            self._left_out[f"records of kind {key.keytype} are not carried over"] += 1
            return
        if record.value is None:
            self._apply_tombstone(record, key)
        elif key.seq is not None and record.offset is not None and key.seq != record.offset:
            # Another node was faster. The writer of this record has detected that and written it again.
            self._left_out["records out of their order are ignored"] += 1
        else:
            self._kinds[key.keytype](record, key)

    def build_dump(self) -> Dump:
        """Return the registry after all records."""
        versions = sort_by_dependency(self._versions.values(), lambda key: self._places[key])
        present: dict[str, int] = {}
        for row in versions:
            present[row.context] = max(row.id, present.get(row.context, 0))
        notes = [f"{count} {what}" for what, count in sorted(self._left_out.items())]
        return Dump(
            versions,
            dict(sorted(self._configs.items())),
            {
                level: mode
                for level, mode in sorted(self._modes.items())
                if (level, mode) != (DEFAULT_LEVEL, "READWRITE")
            },
            tuple(sorted(self._contexts | set(present))),
            {name: most for name, most in sorted(self._highest.items()) if most > present.get(name, most)},
            tuple(notes),
            RegistryExtras(*(tuple(row for _, row in sorted(rows.items())) for rows in self._live_extras)),  # type: ignore[arg-type]  # in its order
        )

    @property
    def _live_extras(self) -> tuple[dict[Any, MigratedKek], dict[Any, MigratedDek], dict[Any, MigratedAssociation]]:
        return self._keks, self._deks, self._associations

    # --- versions -----------------------------------------------------------------------------------------------------

    def _fold_schema(self, record: Record, key: Key) -> None:
        name = self._version_key(record, key)
        value = read_value(record, SchemaValue)
        if not 0 < value.id <= 2**31 - 1:
            raise InvalidRequest(f"{record.place}: {value.id} is not the id of a schema")
        row = model.normalize_version(
            *name,
            value.id,
            value.schema,
            schema_type=value.schema_type,
            references=value.references,
            metadata=value.metadata,
            rule_set=value.rule_set,
            deleted=bool(value.deleted),
            ts=record.ts,
        )
        digest = row.content_digest()
        holders = self._ids.setdefault((row.context, row.id), {})
        if any(known != digest for holder, known in holders.items() if holder != name):
            self._left_out["versions whose id belongs to another schema are ignored"] += 1
            return
        self._drop_version(name)
        self._versions[name] = row
        self._numbers.setdefault(row.subject, set()).add(row.version)
        self._ids.setdefault((row.context, row.id), {})[name] = digest
        self._places[name] = record.place
        self._highest[row.context] = max(row.id, self._highest.get(row.context, 0))
        self._written["SCHEMA", *name] = key.seq

    def _drop_version(self, name: tuple[str, int]) -> None:
        row = self._versions.pop(name, None)
        if row is None:
            return
        self._numbers[row.subject].discard(row.version)
        holders = self._ids[row.context, row.id]
        del holders[name]
        if not holders:
            del self._ids[row.context, row.id]

    def _delete_subject(self, record: Record, key: Key) -> None:
        last = read_value(record, DeleteValue).version
        subject = key.subject or ""
        for number in self._numbers.get(subject, ()):
            if number <= last:
                row = self._versions[subject, number]
                self._versions[subject, number] = _is_deleted(row)

    def _clear_subject(self, record: Record, key: Key) -> None:
        subject = key.subject or ""
        for number in sorted(self._numbers.get(subject, ())):
            if self._versions[subject, number].deleted:
                self._drop_version((subject, number))

    # --- levels -------------------------------------------------------------------------------------------------------

    def _fold_config(self, record: Record, key: Key) -> None:
        level = key.subject or DEFAULT_LEVEL
        self._configs[level] = model.normalize_config(read_value(record, Config))
        self._written["CONFIG", level, 0] = key.seq

    def _fold_mode(self, record: Record, key: Key) -> None:
        level = key.subject or DEFAULT_LEVEL
        self._modes[level] = read_value(record, ModeValue).mode.upper()
        self._written["MODE", level, 0] = key.seq

    def _fold_context(self, record: Record, key: Key) -> None:
        self._contexts.add(key.context or DEFAULT_CONTEXT)

    # --- beside the schemas -------------------------------------------------------------------------------------------

    def _fold_association(self, record: Record, key: Key) -> None:
        value = read_value(record, AssociationValue)
        self._associations[_key_name(key)] = MigratedAssociation(
            subject=value.subject,
            guid=value.guid,
            resource_name=key.resource_name,
            resource_namespace=key.resource_namespace,
            resource_id=value.resource_id,
            resource_type=key.resource_type,
            association_type=key.association_type,
            lifecycle=value.lifecycle,
            frozen=value.frozen,
        )

    def _fold_kek(self, record: Record, key: Key) -> None:
        value = read_value(record, KekValue)
        self._keks[_key_name(key)] = MigratedKek(
            name=key.name,
            kms_type=value.kms_type,
            kms_key_id=value.kms_key_id,
            kms_props=value.kms_props or None,
            doc=value.doc,
            shared=value.shared,
            ts=record.ts,
            deleted=value.deleted,
        )

    def _fold_dek(self, record: Record, key: Key) -> None:
        subject, number = self._version_key(record, key)
        value = read_value(record, DekValue)
        material, deleted = value.encrypted_key_material, value.deleted
        self._deks[_key_name(key)] = MigratedDek(
            key.kek_name, subject, number, key.algorithm, material, ts=record.ts, deleted=deleted
        )

    # --- tombstones ---------------------------------------------------------------------------------------------------

    def _apply_tombstone(self, record: Record, key: Key) -> None:
        level = key.subject or DEFAULT_LEVEL
        match key.keytype:
            case "SCHEMA":
                name = self._version_key(record, key)
                if self._last_word(key, *name):
                    self._drop_version(name)
            case "CONFIG" if self._last_word(key, level):
                self._configs.pop(level, None)
            case "MODE" if self._last_word(key, level):
                self._modes.pop(level, None)
            case "CONTEXT":
                self._contexts.discard(key.context or "")
            case "ASSOC" | "KEK" | "DEK":
                for rows in self._live_extras:
                    rows.pop(_key_name(key), None)

    def _last_word(self, key: Key, subject: str, version: int = 0) -> bool:
        """Return whether the record that a tombstone is for is the newest one about its object."""
        written = self._written.get((key.keytype, subject, version))
        return key.seq is None or written is None or key.seq == written

    @staticmethod
    def _version_key(record: Record, key: Key) -> tuple[str, int]:
        if key.version is None or not 0 < key.version <= 2**31 - 1:
            raise InvalidRequest(f"{record.place}: the key of a schema needs the number of a version")
        return key.subject or "", key.version


def _key_name(key: Key) -> tuple[Any, ...]:
    """Return the members of a key besides its kind, in a sortable order."""
    resource = (key.resource_namespace, key.resource_type, key.resource_name, key.association_type)
    return key.keytype, *resource, key.name, key.kek_name, key.subject or "", key.algorithm, key.version or 0


def _is_deleted(row: DumpVersion) -> DumpVersion:
    return msgspec.structs.replace(row, deleted=True)
