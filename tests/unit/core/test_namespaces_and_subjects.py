"""Namespaces, subjects, codecs, encodings, bindings and collections."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.unit.core.box import Box, S, T

from stele.core import commands as cmd
from stele.core import queries
from stele.core.commands import (
    AddBinding,
    AddCodec,
    AssignEncoding,
    CreateNamespace,
    CreateSubject,
    DeleteNamespace,
    SubjectDefaults,
)
from stele.core.model import Binding, ComparisonScope, Mode, Numbering, SettingsLevel, SubjectKey
from stele.core.policy import DENY_ALL, POLICIES
from stele.errors import (
    AlreadyExists,
    BindingNotFound,
    CodecNotFound,
    EncodingNotFound,
    InvalidName,
    InvalidRequest,
    NamespaceNotFound,
    NotEmpty,
    PreconditionFailed,
    ReadOnly,
    SubjectNotFound,
    VersionNotFound,
)

CTX = SubjectKey("ctx", "s")


def list_namespaces(box: Box) -> list[str]:
    """Return the names of the namespaces that a list shows."""
    return [space.name for space in queries.visible_namespaces(box.state)]


# --- spaces ---------------------------------------------------------------------------------------------------------


def test_a_space_is_created_once_and_replaced_on_request() -> None:
    """A second creation of a namespace is an error; with replace it changes the description."""
    box = Box()
    box.do(CreateNamespace("ctx", description="one"))
    assert list_namespaces(box) == ["", "ctx"]
    with pytest.raises(AlreadyExists):
        box.do(CreateNamespace("ctx"))
    box.do(CreateNamespace("ctx", replace=True, description="two", labels={"l": "1"}))
    space = box.state.find_namespace("ctx")
    assert space is not None
    assert (space.description, space.labels, space.epoch) == ("two", {"l": "1"}, 2)


def test_a_space_is_shown_from_its_first_subject_on() -> None:
    """Registering or creating a subject makes its namespace visible; the default one always is."""
    for command in (CreateSubject(CTX), cmd.RegisterSchema(CTX, None)):
        box = Box()
        assert list_namespaces(box) == [""]
        if isinstance(command, CreateSubject):
            box.do(command)
        else:
            box.register(CTX, "a")
        assert list_namespaces(box) == ["", "ctx"]


def test_only_an_empty_space_can_be_deleted() -> None:
    """Subjects, even soft-deleted and empty ones, keep their namespace; the default one is never deleted."""
    box = Box()
    box.register(CTX, "a")
    box.retire(CTX)
    with pytest.raises(NotEmpty):
        box.do(DeleteNamespace("ctx"))
    box.do(cmd.DeleteSubject(CTX, cmd.DeleteMode.HARD))
    box.do(DeleteNamespace("ctx"))
    assert list_namespaces(box) == [""]
    with pytest.raises(NamespaceNotFound):
        box.do(DeleteNamespace("ctx"))
    with pytest.raises(NotEmpty):
        box.do(DeleteNamespace(""))


def test_a_deleted_space_never_gives_an_id_twice() -> None:
    """A deleted namespace loses its settings, but keeps its counters and the ids of ended subjects."""
    box = Box()
    box.register(CTX, "a")
    box.register(CTX, "b")
    box.do(cmd.ChangeSettings(SettingsLevel("ctx"), {"policy": DENY_ALL}))
    box.close(CTX)
    box.do(DeleteNamespace("ctx"))
    assert box.state.settings_at(SettingsLevel("ctx")) is None
    assert box.state.get_text(queries.get_schema_entry(box.state, "ctx", 1).content) == b"a"
    again = box.register(CTX, "c")
    assert (again.version_number, again.schema_id) == (1, 3)
    subject = box.state.find_subject(CTX)
    assert subject is not None
    assert subject.incarnation == 2


def test_a_deleted_space_can_be_created_again() -> None:
    """A command, or a first subject, creates a deleted namespace again: it is visible and new."""
    for again in (CreateNamespace("ctx"), CreateSubject(CTX)):
        box = Box()
        box.do(CreateNamespace("ctx", description="old"))
        box.do(DeleteNamespace("ctx"))
        assert list_namespaces(box) == [""]
        box.do(again)
        assert list_namespaces(box) == ["", "ctx"]
        space = box.state.find_namespace("ctx")
        assert space is not None
        assert (space.description, space.hidden) == ("", False)
        assert space.at == 1000 + box.state.seq
        box.do(CreateNamespace("ctx", replace=True))


# --- subjects -------------------------------------------------------------------------------------------------------


def test_a_created_subject_keeps_what_its_dialect_says() -> None:
    """Numbering, scope, policy and format are fixed at creation; a second creation is an error."""
    box = Box()
    defaults = SubjectDefaults(Numbering.NEVER_REUSE, ComparisonScope.SCHEMA_KIND, DENY_ALL, "avro")
    box.do(CreateSubject(S, defaults, description="d", labels={"l": "1"}, dialect_data={"x": 1}))
    subject = box.state.find_subject(S)
    assert subject is not None
    assert (subject.numbering, subject.comparison_scope, subject.default_policy) == (
        Numbering.NEVER_REUSE,
        ComparisonScope.SCHEMA_KIND,
        DENY_ALL,
    )
    assert (subject.format, subject.description, subject.dialect_data) == ("avro", "d", {"x": 1})
    with pytest.raises(AlreadyExists):
        box.do(CreateSubject(S))
    box.register(S, "a", defaults=SubjectDefaults(Numbering.CONTINUE))
    assert subject.numbering is Numbering.NEVER_REUSE, "later dialects change nothing"


def test_an_empty_subject_has_no_versions_to_read() -> None:
    """An empty subject exists, but no list of subjects with versions shows it."""
    box = Box()
    box.do(CreateSubject(S))
    assert queries.list_subjects(box.state, box.state.namespaces.values()) == []
    with pytest.raises(SubjectNotFound):
        queries.get_version(box.state, S, None)
    assert box.register(S, "a").version_number == 1


def test_the_policy_of_a_creation_is_younger_than_the_settings() -> None:
    """The policy of a subject's creation replaces one in settings that existed before the subject."""
    box = Box()
    box.do(cmd.ChangeSettings(SettingsLevel(*S), {"policy": POLICIES["FULL"], "normalize": True}))
    box.do(cmd.CreateSubject(S, SubjectDefaults(policy=DENY_ALL)))
    assert queries.policy_for(box.state, S) == DENY_ALL
    assert queries.settings_for(box.state, SettingsLevel(*S)).normalize


def test_changing_a_subject_replaces_its_description() -> None:
    """The descriptive attributes are those of the last change; a default version must be active."""
    box = Box()
    with pytest.raises(SubjectNotFound):
        box.do(cmd.ChangeSubject(S))
    box.register(S, "a")
    with pytest.raises(VersionNotFound):
        box.do(cmd.ChangeSubject(S, default_version=2))
    box.do(cmd.ChangeSubject(S, "d", {"l": "1"}, default_version=1))
    box.do(cmd.ChangeSubject(S, "e"))
    subject = box.state.find_subject(S)
    assert subject is not None
    assert (subject.description, subject.labels, subject.default_version) == ("e", None, None)


# --- codecs and encodings -------------------------------------------------------------------------------------------


def test_a_codec_is_added_once() -> None:
    """The same codec again changes nothing; other properties under a known name are refused."""
    box = Box()
    box.register(S, "a")
    box.do(AddCodec(S, "gzip", {"level": "9"}))
    box.do(AddCodec(S, "gzip", {"level": "9"}))
    assert box.events == ()
    with pytest.raises(AlreadyExists):
        box.do(AddCodec(S, "gzip"))
    subject = box.state.find_subject(S)
    assert subject is not None
    assert subject.codecs == {"gzip": {"level": "9"}}


def test_a_pair_of_version_and_codec_has_one_encoding_for_ever() -> None:
    """Encoding ids count from 1; the same pair gets the same id; a codec must be known, except the empty one."""
    box = Box()
    box.register(S, "a")
    box.register(S, "b")
    box.do(AddCodec(S, "gzip"))
    pairs = [(2, "gzip"), (1, ""), (2, "gzip"), (2, ""), (1, "")]
    assert [box.do(AssignEncoding(S, *pair)) for pair in pairs] == [cmd.EncodingOutcome(n) for n in (1, 2, 1, 3, 2)]
    version, codec = queries.get_encoding(box.state, S, 1)
    assert (version.version_number, codec) == (2, "gzip")
    with pytest.raises(CodecNotFound):
        box.do(AssignEncoding(S, 1, "snappy"))
    with pytest.raises(VersionNotFound):
        box.do(AssignEncoding(S, 3))
    with pytest.raises(SubjectNotFound):
        box.do(AssignEncoding(T, 1))


def test_a_retired_version_keeps_its_encodings_and_gets_none() -> None:
    """A soft-deleted version keeps its encoding ids and gets no new ones (the Pravega rule)."""
    box = Box()
    box.register(S, "a")
    box.register(S, "b")
    box.do(AddCodec(S, "gzip"))
    box.do(AssignEncoding(S, 2))
    box.retire(S, 2)
    assert box.do(AssignEncoding(S, 2)) == cmd.EncodingOutcome(1)
    assert queries.get_encoding(box.state, S, 1)[0].version_number == 2
    with pytest.raises(VersionNotFound):
        box.do(AssignEncoding(S, 2, "gzip"))


def test_an_encoding_is_never_redirected() -> None:
    """When a purged number is reused, its old encoding id has no version, instead of naming the new one."""
    box = Box()
    box.register(S, "a")
    box.register(S, "b")
    box.do(AssignEncoding(S, 2))
    box.purge(S, 2)
    assert box.register(S, "c").version_number == 2
    with pytest.raises(EncodingNotFound, match="purged"):
        queries.get_encoding(box.state, S, 1)
    assert box.do(AssignEncoding(S, 2)) == cmd.EncodingOutcome(2)
    assert box.state.get_text(queries.get_encoding(box.state, S, 2)[0].content) == b"c"


def test_unknown_encodings_are_not_found() -> None:
    """Numbers that were not assigned, and unknown subjects, each have their error."""
    box = Box()
    box.register(S, "a")
    for number in (0, -1, 1):
        with pytest.raises(EncodingNotFound):
            queries.get_encoding(box.state, S, number)
    with pytest.raises(SubjectNotFound):
        queries.get_encoding(box.state, T, 1)


# --- bindings -------------------------------------------------------------------------------------------------------


def binding(key: SubjectKey, ordinal: int | None = None, *, frozen: bool = False) -> Binding:
    """Return the binding of one topic."""
    return Binding("c", "topic", "t", "value", key, ordinal, frozen=frozen)


def test_a_resource_is_bound_to_one_subject_at_a_time() -> None:
    """A later binding replaces the first, the same one again writes nothing, and removal deletes it."""
    box = Box()
    box.register(S, "a")
    box.register(T, "a")
    box.do(AddBinding(binding(S)))
    box.do(AddBinding(binding(S)))
    assert box.events == ()
    box.do(AddBinding(binding(T, 1)))
    assert box.state.bindings == {binding(T).key: binding(T, 1)}
    box.do(cmd.RemoveBinding(binding(T).key))
    with pytest.raises(BindingNotFound):
        box.do(cmd.RemoveBinding(binding(T).key))


def test_a_binding_needs_its_subject_and_version() -> None:
    """A binding to an unknown subject or version is refused."""
    box = Box()
    with pytest.raises(SubjectNotFound):
        box.do(AddBinding(binding(S)))
    box.register(S, "a")
    with pytest.raises(VersionNotFound):
        box.do(AddBinding(binding(S, 2)))


def test_a_frozen_binding_does_not_move() -> None:
    """A frozen binding can be repeated and removed, but not changed."""
    box = Box()
    box.register(S, "a")
    box.do(AddBinding(binding(S, frozen=True)))
    box.do(AddBinding(binding(S, frozen=True)))
    with pytest.raises(InvalidRequest):
        box.do(AddBinding(binding(S, 1)))
    box.do(cmd.RemoveBinding(binding(S).key))


def test_a_registration_binds_what_it_makes() -> None:
    """Bindings are written in one record with their new version; a text that existed before binds nothing."""
    box = Box()
    binding = Binding("kafka", "topic", "t", "value", T)
    box.register(S, "a", bindings=(binding,))
    assert len(box.events) == 3
    bound = queries.bindings_of(box.state, [S])
    assert [(row.resource, row.version_number) for row in bound] == [("t", 1)]
    box.register(S, "b", bindings=(replace(binding, resource="u"),))
    box.register(S, "a", bindings=(replace(binding, resource="w"),))
    assert {(row.resource, row.version_number) for row in queries.bindings_of(box.state, [S])} == {("t", 1), ("u", 2)}
    with pytest.raises(InvalidName):
        box.register(S, "c", bindings=(replace(binding, resource="\0"),))
    assert box.ordinals(S) == [1, 2]


def test_bindings_change_together_on_what_was_seen() -> None:
    """Bindings are added and removed together, unless related ones changed since the caller saw them."""
    box = Box()
    box.register(S, "a")
    box.register(T, "a")
    one, two = Binding("c", "topic", "t", "value", S, resource_id="1"), Binding("c", "topic", "t", "key", S)
    other = Binding("d", "topic", "u", "value", S)
    box.do(cmd.ChangeBindings((one, two), expected=frozenset()))
    assert box.state.bindings == {one.key: one, two.key: two}
    with pytest.raises(PreconditionFailed):
        box.do(cmd.ChangeBindings((other,), expected=frozenset()))
    moved = Binding("e", "topic", "v", "value", T, resource_id="1")
    with pytest.raises(PreconditionFailed):
        box.do(cmd.ChangeBindings((moved,), expected=frozenset()))
    with pytest.raises(BindingNotFound):
        box.do(cmd.ChangeBindings((other,), (other.key,)))
    assert other.key not in box.state.bindings
    box.do(cmd.ChangeBindings((other,), (one.key,), frozenset({one, two})))
    assert box.state.bindings == {two.key: two, other.key: other}
    with pytest.raises(PreconditionFailed):
        box.do(cmd.ChangeBindings((), (two.key,), frozenset({two})))
    with pytest.raises(InvalidName):
        box.do(cmd.ChangeBindings((Binding("c", "topic", "t\n", "value", S),)))


def test_deletions_on_what_was_seen_bound() -> None:
    """A deletion with expected bindings is refused when there are others."""
    box = Box()
    box.register(S, "a")
    box.do(AddBinding(binding(S)))
    for command in (
        cmd.DeleteSubject(S, expected_bindings=frozenset()),
        cmd.DeleteVersion(S, 1, expected_bindings=frozenset()),
    ):
        with pytest.raises(PreconditionFailed):
            box.do(command)
    box.do(cmd.DeleteVersion(S, 1, expected_bindings=frozenset({binding(S)})))
    box.do(cmd.DeleteSubject(S, cmd.DeleteMode.HARD, frozenset({binding(S)})))
    assert box.state.bindings == {}


# --- collections ----------------------------------------------------------------------------------------------------


def test_documents_are_changed_all_or_none_on_what_was_seen() -> None:
    """A change decided on an older revision is refused; one without effect writes nothing and keeps the revision."""
    box = Box()
    box.do(cmd.ChangeItems("keys", {("a",): b"1", ("a", "b"): b"2"}, 0))
    assert box.state.collections["keys"].revision == 1
    box.do(cmd.ChangeItems("keys", {("a",): b"1", ("c",): None}))
    assert box.events == ()
    with pytest.raises(PreconditionFailed):
        box.do(cmd.ChangeItems("keys", {("a",): None}, 0))
    box.do(cmd.ChangeItems("keys", {("a",): None, ("c",): b"3"}, 1))
    assert box.state.collections["keys"].items == {("a", "b"): b"2", ("c",): b"3"}
    with pytest.raises(InvalidName):
        box.do(cmd.ChangeItems("keys", {("a\n",): b"1"}))


def test_read_only_stops_every_command_that_writes() -> None:
    """READONLY refuses every command that writes, but still answers repeated commands."""
    box = Box()
    box.register(S, "a")
    box.do(AddCodec(S, "gzip"))
    box.do(AssignEncoding(S, 1))
    box.do(AddBinding(binding(S)))
    box.do(cmd.SetMode(SettingsLevel(), Mode.READONLY))
    refused: list[cmd.Command] = [
        CreateNamespace("ctx"),
        CreateSubject(T),
        cmd.ChangeSubject(S),
        AddCodec(S, "snappy"),
        AssignEncoding(S, 1, "gzip"),
        AddBinding(binding(S, 1)),
        cmd.RemoveBinding(binding(S).key),
        cmd.ChangeItems("keys", {("a",): b"1"}),
    ]
    for command in refused:
        with pytest.raises(ReadOnly):
            box.do(command)
    for command in (AddCodec(S, "gzip"), AssignEncoding(S, 1), AddBinding(binding(S))):
        box.do(command)
        assert box.events == ()
