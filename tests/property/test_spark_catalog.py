"""The tables of the Spark source agree with the registry: the journal, folded by the reader, is the state of a node."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from tests.property.core_machine import Node, execute_commands, sequences

from stele.client import JournalEntry
from stele.core import commands as cmd
from stele.core.events import decode_record
from stele.core.fold import apply_record
from stele.core.model import VersionState
from stele.core.state import State
from stele.service.journal import list_entries
from stele.spark.datasource.tables import History


def read_history(node: Node, until: int) -> History:
    """Return the first records of a node's log as the reader folds them, converted to JSON and back."""
    history = History()
    for seq, data in enumerate(node.log[:until], 1):
        for row in list_entries(seq, decode_record(data)):
            history.add(msgspec.json.decode(msgspec.json.encode(row), type=JournalEntry))
    return history


def state_of(node: Node, until: int) -> State:
    """The state after the first records."""
    state = State()
    for seq, data in enumerate(node.log[:until], 1):
        apply_record(state, seq, decode_record(data))
    return state


@given(sequences, st.floats(0, 1))
def test_the_tables_are_the_state(drawn: Sequence[cmd.Command], share: float) -> None:
    """At any sequence number the reader has the same subjects and versions, with the same ids, texts and states."""
    node = execute_commands(drawn)
    until = round(share * len(node.log))
    history, state = read_history(node, until), state_of(node, until)
    subjects = sorted((name, key) for name, space in state.namespaces.items() for key in space.subjects)
    assert [row[:2] for row in history.subjects()] == subjects
    versions = {
        (space.name, subject.key.name, version.version_number): version
        for space in state.namespaces.values()
        for subject in space.subjects.values()
        for version in subject.versions
    }
    history_versions = {
        (known.entry.namespace, known.entry.subject, known.entry.version): known for known in history.versions()
    }
    assert history_versions.keys() == versions.keys()
    for place, version in versions.items():
        known = history_versions[place]
        assert known.entry.schema_id == version.schema.schema_id
        assert known.sha256 == version.content.sha.hex()
        assert known.deleted == (version.state is VersionState.SOFT_DELETED)
        assert known.format == (version.kind.custom_format or version.kind.format)
        names = [reference.name for reference in version.schema.attachments.references]
        assert [reference["name"] for reference in known.entry.details.get("references", ())] == names
