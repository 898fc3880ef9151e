"""Transactions: several commands, each decided on the result of those before, all or none."""

from __future__ import annotations

import pytest
from tests.unit.core.box import Box, S, T, doc

from stele.core import commands as cmd
from stele.core import queries
from stele.core.commands import DeleteMode, DeleteVersion, RegisterSchema, SeenNamespace, SeenSubject, Transaction
from stele.core.decide import decide
from stele.core.decide.transaction import see_namespace, see_subject
from stele.core.events import EventMetadata, VersionRegistered
from stele.core.model import SettingsLevel
from stele.core.policy import ALLOW_ANY, POLICIES
from stele.core.snapshot import dump_state
from stele.errors import Incompatible, PreconditionFailed, VersionNotFound


def test_commands_see_what_came_before_them() -> None:
    """A later command builds on an earlier one; outcomes are in order, and every version has its own uid."""
    box = Box()
    commands = (
        RegisterSchema(S, doc("a")),
        RegisterSchema(S, doc("b"), version_number=2),
        DeleteVersion(S, 1),
        RegisterSchema(T, doc("a")),
    )
    outcome = box.do(Transaction(commands))
    assert isinstance(outcome, cmd.TransactionOutcome)
    assert [getattr(each, "version_number", None) for each in outcome.outcomes] == [1, 2, None, 1]
    assert [row.version_number for row in queries.list_versions(box.state.find_subject(S))] == [2]
    uids = [event.uid for event in box.events if isinstance(event, VersionRegistered)]
    assert len(set(uids)) == 3
    assert all(queries.find_version_by_uid(box.state, int.from_bytes(uid, "big")) for uid in uids)


def test_one_refusal_refuses_all() -> None:
    """A command that is refused leaves the state byte for byte as it was."""
    box = Box()
    box.register(S, "a")
    queries.find_version_by_uid(box.state, 1)
    before = dump_state(box.state)
    with pytest.raises(VersionNotFound):
        box.do(Transaction((RegisterSchema(T, doc("b")), DeleteVersion(S, 9, DeleteMode.SOFT))))
    assert dump_state(box.state) == before
    assert box.state.find_subject(T) is None
    assert not box.state.is_drafting


def test_deciding_changes_nothing() -> None:
    """The draft of a transaction is rolled back, also within another draft and with indexes built in it."""
    box = Box()
    box.register(S, "a")
    box.state.begin_draft()
    before = dump_state(box.state)
    command = Transaction((RegisterSchema(T, doc("b")),))
    events = decide(box.state, command, EventMetadata(b"u" * 16, 5)).events
    assert len(events) == 2
    assert dump_state(box.state) == before
    assert box.state.is_drafting
    box.state.roll_back()
    assert not box.state.is_drafting


def test_all_verdicts_are_asked_for_at_once() -> None:
    """The missing verdicts of all commands are requested together; a refusal of one command refuses all."""
    box = Box(refuses=lambda reader, writer: reader == b"bad")
    box.do(cmd.ChangeSettings(SettingsLevel(), {"policy": POLICIES["BACKWARD"]}))
    box.register(S, "a")
    box.register(T, "x")
    box.do(Transaction((RegisterSchema(S, doc("b")), RegisterSchema(S, doc("c")), RegisterSchema(T, doc("y")))))
    assert [pair[:2] for pair in box.asked] == [("b", "a"), ("c", "b"), ("y", "x")]
    with pytest.raises(Incompatible):
        box.do(Transaction((RegisterSchema(S, doc("d")), RegisterSchema(T, doc("bad")))))
    assert box.ordinals(S) == [1, 2, 3]


def test_conditions() -> None:
    """A transaction fails if a namespace or subject, or its absence, is not as the caller saw it."""
    box = Box()
    none = SeenSubject(S)
    box.do(Transaction((RegisterSchema(S, doc("a")),), (SeenNamespace("n"),), (none,)))
    subject = see_subject(box.state, none)
    assert subject.uid is not None
    box.do(Transaction((RegisterSchema(S, doc("b")),), subjects=(subject,)))
    for stale in (none, subject):
        with pytest.raises(PreconditionFailed):
            box.do(Transaction((RegisterSchema(S, doc("c")),), subjects=(stale,)))
    box.do(cmd.CreateNamespace("n"))
    there = see_namespace(box.state, "n")
    box.do(cmd.CreateNamespace("n", replace=True, description="x"))
    for old in (SeenNamespace("n"), there):
        with pytest.raises(PreconditionFailed):
            box.do(Transaction((RegisterSchema(T, doc("c")),), namespaces=(old,)))


def test_lineage() -> None:
    """A registration with a lineage is compared only with its ancestors, the closest one first."""
    box = Box()
    for text in "abcd":
        box.register(S, text, policy=ALLOW_ANY)
    box.do(cmd.ChangeSettings(SettingsLevel(*S), {"policy": POLICIES["BACKWARD_TRANSITIVE"]}))
    box.register(S, "e", lineage=(3, 1))
    assert [pair[:2] for pair in box.asked] == [("e", "c"), ("e", "a")]
    box.asked.clear()
    box.do(cmd.ChangeSettings(SettingsLevel(*S), {"policy": POLICIES["BACKWARD"]}))
    box.register(S, "f", lineage=(2, 1))
    assert [pair[:2] for pair in box.asked] == [("f", "b")]
    box.asked.clear()
    box.register(S, "g", lineage=())
    assert box.asked == []
