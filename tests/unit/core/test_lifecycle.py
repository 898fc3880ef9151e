"""Soft and permanent deletion, reuse of numbers, and the rest of an ended incarnation."""

from __future__ import annotations

import pytest
from tests.unit.core.box import Box, S, T, doc, to

from stele.core import commands as cmd
from stele.core import queries
from stele.core.commands import CompatibilityCheck, DeleteMode, DeleteSubject, DeleteVersion, SubjectDefaults
from stele.core.events import BindingRemoved, IncarnationEnded, VersionRegistered
from stele.core.model import Binding, Mode, Numbering, SettingsLevel, SubjectKey, VersionState
from stele.core.policy import ALLOW_ANY
from stele.errors import (
    AlreadySoftDeleted,
    ContentNotFound,
    EncodingNotFound,
    InUse,
    InvalidRequest,
    NotSoftDeleted,
    PreconditionFailed,
    ReadOnly,
    SubjectNotFound,
    VersionNotFound,
)

NEVER_REUSE = SubjectDefaults(numbering=Numbering.NEVER_REUSE, policy=ALLOW_ANY)


def fill_box(count: int = 3, defaults: SubjectDefaults | None = None) -> Box:
    """Return a box whose subject has that many versions, with the texts v1, v2 …."""
    box = Box()
    for number in range(1, count + 1):
        box.register(S, f"v{number}", defaults=defaults or SubjectDefaults())
    return box


# --- soft -----------------------------------------------------------------------------------------------------------


def test_a_retired_version_is_hidden_but_readable_by_id() -> None:
    """A soft-deleted version is in no list, not the latest and not found by number, but readable by id and uid."""
    box = fill_box()
    box.retire(S, 3)
    newest = queries.latest_version(box.state.find_subject(S))
    assert newest is not None
    assert newest.version_number == 2
    assert [row.version_number for row in queries.list_versions(box.state.find_subject(S))] == [1, 2]
    with pytest.raises(VersionNotFound):
        queries.get_version(box.state, S, 3)
    assert queries.get_version(box.state, S, 3, queries.ACTIVE_OR_SOFT_DELETED).state is VersionState.SOFT_DELETED
    assert box.state.get_text(queries.get_schema_entry(box.state, "", 3).content) == b"v3"


def test_a_wholly_retired_subject_is_in_no_list() -> None:
    """A subject counts as deleted only when all its versions are soft-deleted."""
    box = fill_box(2)
    box.retire(S, 1)
    assert len(queries.list_subjects(box.state, box.state.namespaces.values())) == 1
    box.retire(S, 2)
    assert queries.list_subjects(box.state, box.state.namespaces.values()) == []
    assert len(queries.list_subjects(box.state, box.state.namespaces.values(), queries.SOFT_DELETED_ONLY)) == 1


def test_steps_out_of_order_are_told_apart() -> None:
    """Two soft deletions, a hard one before a soft one, and an unknown version each raise their own error."""
    box = fill_box(2)
    with pytest.raises(NotSoftDeleted):
        box.do(DeleteVersion(S, 1, DeleteMode.HARD))
    with pytest.raises(NotSoftDeleted):
        box.do(DeleteSubject(S, DeleteMode.HARD))
    with pytest.raises(NotSoftDeleted):
        box.do(DeleteVersion(S, None, DeleteMode.HARD))
    box.retire(S, 1)
    with pytest.raises(AlreadySoftDeleted):
        box.retire(S, 1)
    with pytest.raises(VersionNotFound):
        box.retire(S, 9)
    box.retire(S)
    with pytest.raises(AlreadySoftDeleted):
        box.retire(S)
    with pytest.raises(SubjectNotFound):
        box.retire(T)
    with pytest.raises(InvalidRequest):
        box.do(DeleteVersion(S, 1, DeleteMode.END_INCARNATION))


def test_deleting_tells_what_went() -> None:
    """The outcome lists the version numbers that this command deleted; None means the newest active one."""
    box = fill_box()
    assert box.do(DeleteVersion(S, None)) == cmd.DeletedVersions((3,))
    assert box.do(DeleteSubject(S)) == cmd.DeletedVersions((1, 2))
    assert box.do(DeleteSubject(S, DeleteMode.HARD)) == cmd.DeletedVersions((1, 2, 3))


def test_registering_again_keeps_the_id_and_takes_a_new_number() -> None:
    """A new version replaces the soft-deleted one of the same schema, under the same id."""
    box = fill_box(2)
    box.retire(S, 1)
    again = box.register(S, "v1", check=CompatibilityCheck.SKIP)
    assert (again.version_number, again.schema_id, again.created) == (3, 1, True)
    assert box.ordinals(S) == [2, 3]
    registered = box.events[-1]
    assert isinstance(registered, VersionRegistered)
    assert registered.replaces == (1,)


def test_a_retired_row_that_is_referred_to_stays() -> None:
    """Registering again does not remove a soft-deleted version while another one refers to it."""
    box = fill_box(2)
    box.register(T, "t", to(S, 1))
    box.retire(T)
    box.retire(S, 1)
    box.register(S, "v1", check=CompatibilityCheck.SKIP)
    assert box.ordinals(S) == [1, 2, 3]


def test_retired_numbers_are_never_given_again() -> None:
    """Under both numbering rules the next number is above those of soft-deleted versions."""
    for defaults in (SubjectDefaults(), NEVER_REUSE):
        box = fill_box(3, defaults)
        box.retire(S)
        assert box.register(S, "new").version_number == 4


# --- hard -----------------------------------------------------------------------------------------------------------


def test_purged_numbers_follow_the_rule_of_the_subject() -> None:
    """CONTINUE continues above the remaining numbers, NEVER_REUSE above all numbers ever assigned."""
    for defaults, expected in ((SubjectDefaults(), 2), (NEVER_REUSE, 4)):
        box = fill_box(3, defaults)
        box.purge(S, 2)
        box.purge(S, 3)
        assert box.register(S, "new", check=CompatibilityCheck.SKIP).version_number == expected


def test_a_fully_purged_subject_starts_again() -> None:
    """A subject is deleted with its last version, with its settings and mode; schema ids are not reused."""
    box = fill_box(2)
    box.do(cmd.ChangeSettings(SettingsLevel(*S), {"policy": ALLOW_ANY}))
    box.retire(S)
    assert box.state.settings_at(SettingsLevel(*S)) is not None, "a soft delete keeps the settings"
    box.do(DeleteSubject(S, DeleteMode.HARD))
    assert box.state.find_subject(S) is None
    assert box.state.settings_at(SettingsLevel(*S)) is None
    again = box.register(S, "v1")
    assert (again.version_number, again.schema_id) == (1, 3), "a purged id is not given again"


def test_a_purged_id_is_unknown() -> None:
    """An id is removed with its last version, and the text with its last id; another subject keeps both."""
    box = fill_box(1)
    box.register(T, "v1")
    box.purge(S)
    assert box.state.get_text(queries.get_schema_entry(box.state, "", 1).content) == b"v1"
    box.purge(T)
    with pytest.raises(ContentNotFound):
        queries.get_schema_entry(box.state, "", 1)
    assert box.state.contents == {}


def test_a_purged_text_leaves_memory() -> None:
    """The bytes of a purged content leave memory, packed or not, and the content is listed for erasure in the log."""
    for packed in (False, True):
        box = fill_box(1)
        content = queries.get_version(box.state, S, 1).content
        if packed:
            box.state.pack_texts(rest=True)
        box.purge(S)
        assert box.state.get_text(content) == b""
        assert box.state.erased == [(1, content.sha)]


def test_a_digest_finds_the_texts_that_are_left() -> None:
    """When one of two texts with the same digest is purged, the digest still finds the other."""
    box = Box()
    for key, text in ((S, "a"), (T, "a ")):
        box.do(cmd.RegisterSchema(key, doc(text, print=b"p" * 32)))
    first = queries.find_content_by_digest(box.state, "print", b"p" * 32)
    assert first is not None
    assert box.state.get_text(first) == b"a"
    box.purge(S)
    left = queries.find_content_by_digest(box.state, "print", b"p" * 32)
    assert left is not None
    assert box.state.get_text(left) == b"a "
    box.purge(T)
    assert queries.find_content_by_digest(box.state, "print", b"p" * 32) is None


# --- protection -----------------------------------------------------------------------------------------------------


def test_what_is_referred_to_cannot_go() -> None:
    """An active referrer prevents any deletion of its target, a soft-deleted one only purging."""
    box = fill_box(1)
    box.register(T, "t", to(S, 1))
    for removal in (DeleteMode.SOFT, DeleteMode.END_INCARNATION):
        with pytest.raises(InUse):
            box.do(DeleteSubject(S, removal))
    with pytest.raises(InUse):
        box.retire(S, 1)
    box.retire(T)
    box.retire(S)
    for command in (DeleteSubject(S, DeleteMode.HARD), DeleteVersion(S, 1, DeleteMode.HARD)):
        with pytest.raises(InUse):
            box.do(command)
    box.do(DeleteSubject(T, DeleteMode.HARD))
    box.do(DeleteSubject(S, DeleteMode.HARD))
    assert box.state.referrers == {}


def test_a_subject_may_refer_to_itself() -> None:
    """References inside a subject prevent the deletion of single versions, but not of the whole subject."""
    box = fill_box(1)
    box.register(S, "v2", to(S, 1))
    with pytest.raises(InUse):
        box.retire(S, 1)
    box.purge(S)
    assert box.state.find_subject(S) is None


def test_read_only_subjects_lose_nothing() -> None:
    """A read-only subject refuses deletions."""
    box = fill_box(1)
    box.do(cmd.SetMode(SettingsLevel(), Mode.READONLY))
    for removal in (DeleteMode.SOFT, DeleteMode.END_INCARNATION):
        with pytest.raises(ReadOnly):
            box.do(DeleteSubject(S, removal))
    with pytest.raises(ReadOnly):
        box.retire(S, 1)


# --- closing --------------------------------------------------------------------------------------------------------


def test_closing_starts_all_counters_again() -> None:
    """The next incarnation has another serial, no settings, and counts versions, kind versions and encodings from 1."""
    box = fill_box(3, NEVER_REUSE)
    box.do(cmd.ChangeSettings(SettingsLevel(*S), {"policy": ALLOW_ANY}))
    before = box.state.find_subject(S)
    assert before is not None
    box.do(cmd.AssignEncoding(S, 2))
    box.close(S)
    assert box.state.find_subject(S) is None
    assert box.state.settings_at(SettingsLevel(*S)) is None
    outcome = box.register(S, "new", defaults=NEVER_REUSE)
    after = box.state.find_subject(S)
    assert after is not None
    assert (outcome.version_number, outcome.schema_id) == (1, 4)
    assert (before.incarnation, after.incarnation) == (1, 2)
    assert after.serial > before.serial
    assert box.do(cmd.AssignEncoding(S, 1)) == cmd.EncodingOutcome(1)


def test_what_a_closed_incarnation_gave_out_still_resolves() -> None:
    """Written data can be read by id, uid and encoding id, unless the next incarnation reused the encoding id."""
    box = fill_box(2)
    uid = queries.get_version(box.state, S, 2).uid
    box.do(cmd.AssignEncoding(S, 1))
    box.do(cmd.AssignEncoding(S, 2))
    box.close(S)
    assert box.state.get_text(queries.get_schema_entry(box.state, "", 2).content) == b"v2"
    version = queries.find_version_by_uid(box.state, uid)
    assert version is not None
    assert version.state is VersionState.ARCHIVED
    assert queries.get_encoding(box.state, S, 2)[0].uid == uid
    box.register(S, "new")
    box.do(cmd.AssignEncoding(S, 1))
    assert box.state.get_text(queries.get_encoding(box.state, S, 1)[0].content) == b"new"
    assert queries.get_encoding(box.state, S, 2)[0].uid == uid
    with pytest.raises(EncodingNotFound):
        queries.get_encoding(box.state, S, 3)


def test_record_ids_outlive_what_they_were_given_to() -> None:
    """A record id always names the same version, never one of the next incarnation; after a purge, none."""
    box = fill_box(2)
    first = queries.get_version(box.state, S, 2)
    box.close(S)
    box.register(S, "new")
    again = queries.get_version(box.state, S, 1)
    assert queries.get_version_by_record_id(box.state, first.record_id) is first
    assert queries.get_version_by_record_id(box.state, again.record_id) is again
    assert first.record_id & 0x3FFF == 2
    assert first.record_id ^ 2 == first.subject.record_id != again.subject.record_id
    box.purge(S)
    for number in (again.record_id, again.subject.record_id, first.record_id | 7, -1, 2**70):
        with pytest.raises(ContentNotFound):
            queries.get_version_by_record_id(box.state, number)


def test_a_deletion_of_what_has_changed_is_refused() -> None:
    """A subject is deleted only while its newest version is the one the caller expects."""
    box = fill_box(2)
    for latest in (0, 1, 3):
        with pytest.raises(PreconditionFailed):
            box.do(cmd.DeleteSubject(S, cmd.DeleteMode.END_INCARNATION, expected_latest=latest))
    assert box.do(cmd.DeleteSubject(S, cmd.DeleteMode.END_INCARNATION, expected_latest=2)) == cmd.DeletedVersions(
        (1, 2)
    )


def test_the_same_text_after_closing_keeps_its_id() -> None:
    """The next incarnation registers a known text under its existing id, as a new version."""
    box = fill_box(2)
    box.close(S)
    again = box.register(S, "v2")
    assert (again.version_number, again.schema_id, again.created) == (1, 2, True)


def test_closing_ends_bindings_and_references() -> None:
    """The end of an incarnation removes the bindings to it, and its references no longer protect their targets."""
    box = Box()
    box.register(T, "t")
    box.register(S, "s", to(T))
    for topic, key in (("one", S), ("two", T)):
        box.do(cmd.AddBinding(Binding("c", "topic", topic, "value", key)))
    box.close(S)
    assert [type(event) for event in box.events] == [IncarnationEnded, BindingRemoved]
    assert [binding.resource for binding in box.state.bindings.values()] == ["two"]
    box.purge(T)
    assert box.state.bindings == {}


def test_purging_ends_bindings_to_what_is_gone() -> None:
    """A binding to a purged version is removed with it, one that follows the latest with the subject."""
    box = fill_box(2)
    box.do(cmd.AddBinding(Binding("c", "topic", "fixed", "value", S, 2)))
    box.do(cmd.AddBinding(Binding("c", "topic", "latest", "value", S)))
    box.purge(S, 2)
    assert [binding.resource for binding in box.state.bindings.values()] == ["latest"]
    box.purge(S)
    assert box.state.bindings == {}


def test_an_empty_subject_can_only_be_closed() -> None:
    """A subject without versions can be ended; soft or hard deletion finds nothing to delete."""
    box = Box()
    box.do(cmd.CreateSubject(S))
    with pytest.raises(SubjectNotFound):
        box.retire(S)
    box.close(S)
    with pytest.raises(SubjectNotFound):
        box.close(S)


def test_the_default_version_goes_with_its_version() -> None:
    """A deleted version is no longer the default, so a reused number is not the default by accident."""
    box = fill_box(2)
    box.do(cmd.ChangeSubject(S, default_version=2))
    box.retire(S, 2)
    subject = box.state.find_subject(S)
    assert subject is not None
    assert subject.default_version is None


def test_subjects_of_one_name_in_two_spaces_are_two() -> None:
    """Deleting a subject leaves the one of the same name in another namespace."""
    box = fill_box(1)
    other = SubjectKey("ctx", "s")
    box.register(other, "v1")
    box.purge(S)
    assert box.ordinals(other) == [1]


def test_a_closed_version_is_not_the_same_as_a_new_one() -> None:
    """A text that only an ended incarnation has is registered as a new version in the next one."""
    box = fill_box(2)
    box.close(S)
    for text in ("one", "two", "three"):
        box.register(S, text)
    again = box.register(S, "v2")
    assert (again.version_number, again.schema_id, again.created) == (4, 2, True)


def test_lane_numbers_follow_the_rule_of_the_subject() -> None:
    """Purged kind versions are reused exactly if the subject reuses purged version numbers."""
    for defaults, expected in ((SubjectDefaults(), 1), (NEVER_REUSE, 2)):
        box = Box()
        for text, lane in (("a", "A"), ("b", "B")):
            box.do(cmd.RegisterSchema(S, doc(text, type_name=lane), check=CompatibilityCheck.SKIP, defaults=defaults))
        box.purge(S, 2)
        box.do(cmd.RegisterSchema(S, doc("c", type_name="B"), check=CompatibilityCheck.SKIP))
        assert queries.get_version(box.state, S, None).kind_version == expected
