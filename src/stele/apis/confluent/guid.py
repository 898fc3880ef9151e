"""GUIDs of schemas. A GUID depends on the content only, so a schema has the same GUID in every registry.

A GUID is an MD5 in the form of a UUID. It covers the text, then each reference (name, subject, version as big-endian
int32), then metadata and rule set, each after a byte 1 if present. The layout is that of the public client entities of
the Confluent registry.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from itertools import islice
from uuid import UUID

from stele.apis.confluent.names import qualify_subject
from stele.core.metadata import DataRule, DataRuleSet, Metadata
from stele.core.model import Reference, SchemaEntry
from stele.core.state import State
from stele.service.time_slices import TimeSlices

_ONE = b"\x01"


def reference_subject(reference: Reference, space: str) -> str:
    """Return how a schema of a namespace names the subject that it refers to: unqualified in the same namespace."""
    if reference.namespace == space:
        return reference.subject
    return qualify_subject(reference.key) if reference.namespace else f":.:{reference.subject}"


def compute_guid(state: State, schema: SchemaEntry) -> str:
    """Return the GUID of a registered schema, in the usual form with hyphens."""
    attached = schema.attachments
    md = hashlib.md5(state.get_text(schema.content), usedforsecurity=False)
    for reference in attached.references:
        md.update(reference.name.encode())
        md.update(reference_subject(reference, schema.namespace).encode())
        md.update(reference.version_number.to_bytes(4, "big", signed=True))
    if attached.metadata is not None or attached.rule_set is not None:
        for piece in (*_hash_metadata(attached.metadata), *_hash_rule_set(attached.rule_set)):
            md.update(piece if isinstance(piece, bytes) else piece.encode())
    digits = md.hexdigest()  # `UUID` takes ten times as long, which slows lists down.
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def _hash_metadata(metadata: Metadata | None) -> Iterator[bytes | str]:
    if metadata is None:
        return
    yield _ONE
    for path, tags in sorted((metadata.tags or {}).items()):
        yield path
        yield from sorted(tags)
    for name, value in sorted((metadata.properties or {}).items()):
        yield name
        yield value
    yield from sorted(metadata.sensitive or ())


def _hash_rule_set(rule_set: DataRuleSet | None) -> Iterator[bytes | str]:
    if rule_set is None:
        return
    yield _ONE
    for rules in (rule_set.migration_rules, rule_set.domain_rules, rule_set.encoding_rules):
        for rule in rules or ():
            yield from _hash_rule(rule)
    yield rule_set.enable_at or ""


def _hash_rule(rule: DataRule) -> Iterator[bytes | str]:
    yield from (rule.name or "", rule.doc or "", rule.kind, rule.mode, rule.type or "")
    yield from sorted(rule.tags or ())
    for name, value in sorted((rule.params or {}).items()):
        yield name
        yield value
    yield from (rule.expr or "", rule.on_success or "", rule.on_failure or "")
    if rule.disabled:
        yield _ONE


class GuidIndex:
    """Finds schemas by GUID.

    The index is built at the first look-up and then updated with new schemas. Without look-ups it costs nothing.
    """

    def __init__(self) -> None:
        self._state: State | None = None
        self._purges = 0
        self._counted: dict[str, int] = {}
        self._known: dict[tuple[str, int], SchemaEntry] = {}
        self._found: dict[str, list[SchemaEntry]] = {}

    async def hash_new_entries(self, state: State, slices: TimeSlices) -> None:
        """Do most of the work of the next `find_schemas` in advance, in time slices so that other requests can run."""
        self._follow_state(state)
        async for row in slices.iterate(row for rows in self._list_new_entries(state) for row in rows):
            if self._is_present(state, row):
                self._add_entry(state, row)

    def find_schemas(self, state: State, guid: UUID) -> list[SchemaEntry]:
        """Return all present schemas with a GUID: those of the default namespace first, then by namespace."""
        self._catch_up(state)
        rows = [row for row in self._found.get(str(guid), ()) if self._is_present(state, row)]
        return sorted(rows, key=lambda row: row.namespace)

    def _catch_up(self, state: State) -> None:
        self._follow_state(state)
        for rows in self._list_new_entries(state):
            for row in rows:
                self._add_entry(state, row)
        self._counted = {space.name: len(space.schema_entries) for space in state.namespaces.values()}

    def _follow_state(self, state: State) -> None:
        """Drop cached entries that the state no longer contains."""
        if state is not self._state:
            self.__init__()  # type: ignore[misc]  # everything cached belongs to the previous state
            self._state = state
        if state.purges != self._purges:
            # Positions have shifted: scan all entries, hash only new ones.
            self._purges = state.purges
            self._forget_entries(lambda row: not self._is_present(state, row))
            self._counted.clear()

    def _list_new_entries(self, state: State) -> Iterator[Iterator[SchemaEntry]]:
        """Yield the entries that are not indexed yet, namespace by namespace."""
        for space in state.namespaces.values():
            done = self._counted.get(space.name, 0)
            if done < len(space.schema_entries):
                yield islice(space.schema_entries.values(), done, None)

    def _add_entry(self, state: State, row: SchemaEntry) -> None:
        key = (row.namespace, row.schema_id)
        if self._known.get(key) is not row:
            self._known[key] = row
            self._found.setdefault(compute_guid(state, row), []).append(row)

    def _forget_entries(self, is_forgotten: Callable[[SchemaEntry], bool]) -> None:
        self._known = {key: row for key, row in self._known.items() if not is_forgotten(row)}
        remaining = {guid: [row for row in rows if not is_forgotten(row)] for guid, rows in self._found.items()}
        self._found = {guid: rows for guid, rows in remaining.items() if rows}

    @staticmethod
    def _is_present(state: State, row: SchemaEntry) -> bool:
        space = state.find_namespace(row.namespace)
        return space is not None and space.schema_entries.get(row.schema_id) is row
