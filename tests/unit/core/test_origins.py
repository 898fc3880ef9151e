"""Versions named by a URI, described subjects, media types, and namespaces deleted with their subjects."""

from __future__ import annotations

from typing import Any

import pytest
from tests.property.core_machine import decide_and_fold, document, stamp

from stele.core import commands as cmd
from stele.core import queries
from stele.core.events import LogRecord
from stele.core.fold import apply_record
from stele.core.model import Reference, SubjectKey, VersionState
from stele.core.policy import ALLOW_ANY
from stele.core.state import State
from stele.errors import AlreadyExists, InUse, NamespaceNotFound, NotEmpty

A, B = SubjectKey("ö", "a"), SubjectKey("ö", "b")
OPEN = cmd.SubjectDefaults(policy=ALLOW_ANY)


def run(state: State, command: cmd.Command) -> Any:
    """Decide and fold one command, and return its outcome."""
    by = stamp(state.seq + 1)
    decision = decide_and_fold(state, command, by)
    apply_record(state, state.seq + 1, LogRecord(by, decision.events))
    return decision.outcome


def register(key: SubjectKey, number: int, **more: Any) -> cmd.RegisterSchema:
    """Return a registration in a subject that accepts anything."""
    return cmd.RegisterSchema(key, document(number), defaults=OPEN, **more)


def test_a_uri_names_one_document() -> None:
    """A known URI returns its version or refuses another document, even if it is deleted; a purge frees the URI."""
    state = State()
    first = run(state, register(A, 0, origin_uri="u:1"))
    assert run(state, register(A, 0, origin_uri="u:1")) == cmd.Registration(
        A, 1, first.schema_id, first.uid, created=False
    )
    for other in (register(A, 1, origin_uri="u:1"), register(B, 0, origin_uri="u:1")):
        with pytest.raises(AlreadyExists):
            run(state, other)
    assert run(state, register(A, 0, origin_uri="u:2")).version_number == 2, (
        "equal texts under two URIs are two versions"
    )
    version = queries.find_version_by_origin(state, "u:1")
    assert version is not None
    assert version.version_number == 1
    run(state, cmd.DeleteVersion(A, 1))
    assert queries.find_version_by_origin(state, "u:1") is None
    with pytest.raises(AlreadyExists, match="deleted"):
        run(state, register(B, 3, origin_uri="u:1"))
    again = run(state, register(A, 0, origin_uri="u:1"))
    assert again.created
    for mode in (cmd.DeleteMode.SOFT, cmd.DeleteMode.HARD):
        run(state, cmd.DeleteVersion(A, again.version_number, mode=mode))
    assert run(state, register(B, 3, origin_uri="u:1")).created


def test_typed_equality_tells_media_types_apart() -> None:
    """A text is equal only with its media type; one that was stored without a media type equals any."""
    state = State()
    for media_type, ordinal in (("a/a", 1), ("b/b", 2), ("a/a", 1), ("", 3), ("c/c", 3)):
        command = register(A, 0, media_type=media_type, equality=cmd.Equality.TEXT_AND_TYPE)
        assert run(state, command).version_number == ordinal, media_type


def test_a_registration_describes_its_subject() -> None:
    """The subject's description in a registration is merged in, with a new version and without one."""
    state = State()
    run(state, register(A, 0, subject_update=cmd.SubjectUpdate("told", {"x": {"a": 1, "b": 2}})))
    run(state, register(A, 0, subject_update=cmd.SubjectUpdate(None, {"x": {"b": None}, "y": {"c": 3}})))
    subject = state.find_subject(A)
    assert subject is not None
    assert (subject.description, subject.dialect_data) == ("told", {"x": {"a": 1}, "y": {"c": 3}})
    assert subject.changed_at == stamp(2).at
    assert len(subject.versions) == 1


def test_a_space_goes_with_its_subjects() -> None:
    """A namespace is deleted with all its subjects or not at all: references from elsewhere prevent it."""
    state = State()
    run(state, cmd.CreateNamespace("ö", format="avro"))
    first = run(state, register(A, 0))
    inner = run(state, register(B, 2, references=(Reference("r", *A, 1),)))
    run(state, register(SubjectKey("", "x"), 3, references=(Reference("r", *B, 1),)))
    with pytest.raises(NotEmpty):
        run(state, cmd.CreateNamespace("ö", replace=True, format="json"))
    for command in (cmd.EndIncarnations("ö"), cmd.DeleteNamespace("ö", cmd.SubjectsPresent.END_INCARNATIONS)):
        with pytest.raises(InUse):
            run(state, command)
    run(state, cmd.DeleteSubject(SubjectKey("", "x"), cmd.DeleteMode.END_INCARNATION))
    run(state, cmd.EndIncarnations("ö"))
    run(state, cmd.CreateNamespace("ö", replace=True, format=""))
    again = run(state, register(A, 0))
    run(state, cmd.DeleteNamespace("ö", cmd.SubjectsPresent.END_INCARNATIONS))
    for uid in (first.uid, inner.uid, again.uid):
        version = queries.find_version_by_uid(state, uid)
        assert version is not None, "data written then can still be read"
        assert version.state is VersionState.ARCHIVED
    with pytest.raises(NamespaceNotFound):
        run(state, cmd.EndIncarnations("ö"))
    with pytest.raises(NotEmpty):
        run(state, cmd.DeleteNamespace("", cmd.SubjectsPresent.END_INCARNATIONS))
