"""Drafts: changes that are decided on top of one another, and rolled back."""

from __future__ import annotations

from tests.unit.core.box import Box, S, T, doc

from stele.core import commands as cmd
from stele.core import queries
from stele.core.decide import decide
from stele.core.events import EventMetadata
from stele.core.fold import apply_event

DIGEST = b"p" * 32


def decide_in_draft(box: Box, command: cmd.Command) -> None:
    """Decide and fold within the draft."""
    stamp = EventMetadata(b"draft" * 3 + b".", 1)
    for event in decide(box.state, command, stamp).events:
        apply_event(box.state, event, stamp, box.state.seq + 1)


def test_an_index_built_in_a_draft_forgets_the_draft() -> None:
    """An index of digests or uids that was built in a draft has nothing that was rolled back."""
    box = Box()
    box.do(cmd.RegisterSchema(S, doc("a", print=DIGEST)))
    box.state.begin_draft()
    decide_in_draft(box, cmd.RegisterSchema(T, doc("b", print=b"q" * 32)))
    version = queries.get_version(box.state, T, 1)
    assert queries.find_content_by_digest(box.state, "print", b"q" * 32) is version.content
    assert queries.find_version_by_uid(box.state, version.uid) is version
    uid = version.uid
    box.state.roll_back()
    assert queries.find_content_by_digest(box.state, "print", b"q" * 32) is None
    assert queries.find_version_by_uid(box.state, uid) is None
    assert queries.find_content_by_digest(box.state, "print", DIGEST) is not None


def test_a_purge_in_a_draft_keeps_the_text() -> None:
    """Only a durable purge erases: after a rollback the text is still there, packed or not."""
    for packed in (False, True):
        box = Box()
        box.register(S, "a")
        box.state.pack_texts(rest=packed)
        box.retire(S)
        box.state.begin_draft()
        decide_in_draft(box, cmd.DeleteSubject(S, cmd.DeleteMode.HARD))
        assert box.state.contents == {}
        box.state.roll_back()
        assert box.state.get_text(queries.get_schema_entry(box.state, "", 1).content) == b"a"
        assert box.state.erased == []
