"""Ids that a registry skips after a restore, because its original may have assigned them."""

from __future__ import annotations

import pytest
from tests.unit.core.box import Box, S, T

from stele.core import commands as cmd
from stele.core import queries
from stele.core.commands import SubjectDefaults
from stele.core.model import Mode, Numbering, SettingsLevel, SubjectKey
from stele.core.snapshot import dump_state, load_state
from stele.errors import EncodingNotFound

NEVER_REUSE = SubjectDefaults(numbering=Numbering.NEVER_REUSE)


@pytest.mark.parametrize("reload", [False, True])
def test_skipped_ids_are_never_given(reload: bool) -> None:
    """Skipped are schema ids in old and new namespaces, serials, encoding ids, and numbers that are never reused."""
    box = Box()
    box.register(S, "a", defaults=NEVER_REUSE)
    box.register(T, "t")
    box.do(cmd.AssignEncoding(S, 1, ""))
    serial = box.state.serial
    box.do(cmd.SkipIds(1000, 10))
    if reload:
        loaded = load_state(dump_state(box.state))
        assert loaded is not None
        box.state = loaded
    new = box.register(S, "b")
    assert (new.schema_id, new.version_number) == (1003, 12)
    assert box.register(T, "u").version_number == 2
    assert box.register(SubjectKey("other", "x"), "x").schema_id == 1001
    assert box.state.serial == serial + 1001
    second = box.do(cmd.AssignEncoding(S, 12, ""))
    assert second == cmd.EncodingOutcome(12)
    assert box.do(cmd.AssignEncoding(T, 1, "")) == cmd.EncodingOutcome(11)
    assert queries.get_encoding(box.state, S, 1)[0].version_number == 1
    assert queries.get_encoding(box.state, S, 12)[0].version_number == 12
    for number in (2, 11):
        with pytest.raises(EncodingNotFound):
            queries.get_encoding(box.state, S, number)


def test_skipping_takes_nothing_away_and_no_mode_forbids_it() -> None:
    """Existing content is read as before, and ids are skipped even in a read-only registry."""
    box = Box()
    box.register(S, "a")
    box.do(cmd.SetMode(SettingsLevel(), Mode.READONLY))
    box.do(cmd.SkipIds(1000, 10))
    assert queries.get_schema_entry(box.state, "", 1).content.sha
    assert box.ordinals(S) == [1]
