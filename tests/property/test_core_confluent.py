"""The core against a small oracle of subjects, versions and ids as the Confluent registry documents them.

The oracle is written from the description alone (reference: "semantics that tests probe"), with lists and no indexes.
"""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st
from tests.property.core_machine import NAMES, SPACES, Node, document, stamp

from stele.core import commands as cmd
from stele.core import queries
from stele.core.model import Reference, SubjectKey
from stele.core.traversal import list_versions_of_entry
from stele.errors import (
    AlreadySoftDeleted,
    ContentNotFound,
    InUse,
    NotSoftDeleted,
    SteleError,
    SubjectNotFound,
    UnresolvedReference,
    VersionNotFound,
)


class Row(NamedTuple):
    """One schema record of the oracle."""

    key: SubjectKey
    version: int
    id: int
    text: int
    references: tuple[Reference, ...]
    deleted: bool


class Oracle:
    """A registry as a list of rows."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.last: dict[str, int] = {}

    def of(self, key: SubjectKey, *, deleted: bool = False) -> list[Row]:
        """Rows of a subject, ascending."""
        rows = [row for row in self.rows if row.key == key and (deleted or not row.deleted)]
        return sorted(rows, key=lambda row: row.version)

    def referring(self, row: Row, *, deleted: bool) -> list[Row]:
        """Rows that refer to this one."""
        name = (*row.key, row.version)
        return [
            other
            for other in self.rows
            if (deleted or not other.deleted)
            and any((r.namespace, r.subject, r.version_number) == name for r in other.references)
        ]

    def register(self, key: SubjectKey, text: int, references: tuple[Reference, ...]) -> tuple[int, int]:
        """(version, id)."""
        same = [
            row
            for row in self.rows
            if row.key.namespace == key.namespace and (row.text, row.references) == (text, references)
        ]
        mine = [row for row in same if row.key == key]
        if live := [row for row in mine if not row.deleted]:
            return max(row.version for row in live), live[0].id
        for reference in references:
            if not any(row.version == reference.version_number for row in self.of(reference.key)):
                raise UnresolvedReference("")
        version = 1 + max((row.version for row in self.of(key, deleted=True)), default=0)
        if not same:
            self.last[key.namespace] = self.last.get(key.namespace, 0) + 1
        number = same[0].id if same else self.last[key.namespace]
        for row in mine:
            if not self.referring(row, deleted=True):
                self.rows.remove(row)
        self.rows.append(Row(key, version, number, text, references, deleted=False))
        return version, number

    def delete_version(self, key: SubjectKey, version: int | None, *, permanent: bool) -> tuple[int, ...]:
        """Return the deleted version; None means the latest."""
        rows, live = self.of(key, deleted=True), self.of(key)
        if not rows:
            raise SubjectNotFound("")
        row = next((row for row in rows if row.version == version), None) if version else (live[-1] if live else None)
        if row is None:
            raise VersionNotFound("")
        if row.deleted and not permanent:
            raise AlreadySoftDeleted("")
        if not row.deleted and permanent:
            raise NotSoftDeleted("")
        self._remove([row], self.referring(row, deleted=permanent), permanent=permanent)
        return (row.version,)

    def delete_subject(self, key: SubjectKey, *, permanent: bool) -> tuple[int, ...]:
        """Return the deleted versions."""
        rows, live = self.of(key, deleted=True), self.of(key)
        if not rows:
            raise SubjectNotFound("")
        if not live and not permanent:
            raise AlreadySoftDeleted("")
        if live and permanent:
            raise NotSoftDeleted("")
        going = rows if permanent else live
        referring = [other for row in going for other in self.referring(row, deleted=permanent) if other.key != key]
        self._remove(going, referring, permanent=permanent)
        return tuple(row.version for row in going)

    def _remove(self, going: list[Row], referring: list[Row], *, permanent: bool) -> None:
        if referring:
            raise InUse("", 0)
        for row in going:
            self.rows.remove(row)
            if not permanent:
                self.rows.append(row._replace(deleted=True))


# --- one history, told to both --------------------------------------------------------------------------------------

keys = st.sampled_from([SubjectKey(space, name) for space in SPACES for name in NAMES[:2]])
references = st.just(()) | keys.flatmap(
    lambda key: st.integers(1, 2).map(lambda ordinal: (Reference("r", *key, ordinal),))
)
versions = st.none() | st.sampled_from([1, 1, 2, 3])
operations = st.lists(
    st.one_of(
        st.tuples(st.just("register"), keys, st.integers(0, 3), references),
        st.tuples(st.just("register"), keys, st.integers(0, 3), st.just(())),
        st.tuples(st.just("version"), keys, versions, st.booleans()),
        st.tuples(st.just("subject"), keys, st.just(0), st.booleans()),
    ),
    min_size=10,
    max_size=60,
)


def _to_oracle(oracle: Oracle, what: str, key: SubjectKey, number: int | None, more: object) -> object:
    try:
        if what == "register":
            assert number is not None
            assert isinstance(more, tuple)
            return oracle.register(key, number, more)
        if what == "version":
            return oracle.delete_version(key, number, permanent=bool(more))
        return oracle.delete_subject(key, permanent=bool(more))
    except SteleError as error:
        return type(error)


def _to_core(node: Node, at: int, what: str, key: SubjectKey, number: int | None, more: object) -> object:
    removal = cmd.DeleteMode.HARD if more else cmd.DeleteMode.SOFT
    command: cmd.Command = cmd.DeleteSubject(key, removal)
    if what == "register":
        assert number is not None
        assert isinstance(more, tuple)
        command = cmd.RegisterSchema(key, document(number), more, check=cmd.CompatibilityCheck.SKIP)
    elif what == "version":
        command = cmd.DeleteVersion(key, number, removal)
    outcome = node.execute(command, stamp(at))
    if isinstance(outcome, cmd.Registration):
        return outcome.version_number, outcome.schema_id
    return outcome.version_numbers if isinstance(outcome, cmd.DeletedVersions) else type(outcome)


def _list_versions(node: Node, key: SubjectKey, *, deleted: bool) -> list[tuple[int, int]]:
    rows = queries.list_versions(
        node.state.find_subject(key), queries.ACTIVE_OR_SOFT_DELETED if deleted else queries.ACTIVE_ONLY
    )
    return [(row.version_number, row.schema.schema_id) for row in rows]


def _behind_id(node: Node, space: str, number: int) -> tuple[bytes, list[tuple[SubjectKey, int, bool]]] | None:
    try:
        schema = queries.get_schema_entry(node.state, space, number)
    except ContentNotFound:
        return None
    uses = [
        (use.subject.key, use.version_number, use.state.value == "retired") for use in list_versions_of_entry(schema)
    ]
    return node.state.get_text(schema.content), sorted(uses)


@given(operations)
def test_the_core_does_what_the_oracle_does(drawn: list[tuple[str, SubjectKey, int | None, object]]) -> None:
    """Versions, ids, deletions, the schemas of ids, and every refusal agree after every operation."""
    node, oracle = Node([]), Oracle()
    for at, operation in enumerate(drawn, 1):
        assert _to_core(node, at, *operation) == _to_oracle(oracle, *operation)
        for space in SPACES:
            for name in NAMES[:2]:
                key = SubjectKey(space, name)
                assert _list_versions(node, key, deleted=False) == [(row.version, row.id) for row in oracle.of(key)]
                assert _list_versions(node, key, deleted=True) == [
                    (row.version, row.id) for row in oracle.of(key, deleted=True)
                ]
            for number in range(1, oracle.last.get(space, 0) + 2):
                rows = [row for row in oracle.rows if (row.key.namespace, row.id) == (space, number)]
                uses = sorted((row.key, row.version, row.deleted) for row in rows)
                wanted = (document(rows[0].text).text, uses) if rows else None
                assert _behind_id(node, space, number) == wanted
