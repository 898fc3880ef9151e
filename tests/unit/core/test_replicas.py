"""Registrations with a uid: replicas of versions of another registry, which replace nothing."""

from __future__ import annotations

import pytest
from tests.unit.core.box import Box, S

from stele.core import commands as cmd
from stele.core import queries
from stele.core.model import Mode, SettingsLevel, VersionState
from stele.errors import AlreadyExists, InvalidRequest, ReadOnly

UID = bytes(15) + b"\x07"
URI = "http://a.example/1"


def importing() -> Box:
    """Return a box with a subject in IMPORT mode."""
    box = Box()
    box.do(cmd.SetMode(SettingsLevel(*S), Mode.IMPORT))
    return box


def test_the_uid_is_kept() -> None:
    """The version has the given uid, and is found by it."""
    box = importing()
    registration = box.register(S, '"a"', uid=UID, version_number=3, schema_id=9, origin_uri=URI)
    assert (registration.uid, registration.version_number, registration.schema_id) == (7, 3, 9)
    version = queries.find_version_by_uid(box.state, 7)
    assert version is not None
    assert version.version_number == 3


def test_only_while_importing() -> None:
    """A uid is refused outside of IMPORT mode, and in IMPORT mode without both numbers."""
    with pytest.raises(ReadOnly):
        Box().register(S, '"a"', uid=UID, version_number=1)
    with pytest.raises(InvalidRequest):
        importing().register(S, '"a"', uid=UID, schema_id=1)


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"uid": bytes(15) + b"\x08"},
        {"uid": bytes(15) + b"\x08", "version_number": 2},
    ],
    ids=["uid", "number", "uri"],
)
def test_nothing_is_replaced(change: dict[str, object]) -> None:
    """An existing uid, number or URI refuses a replica, even one with the same text."""
    box = importing()
    first: dict[str, object] = {"uid": UID, "version_number": 1, "schema_id": 1, "origin_uri": URI}
    box.register(S, '"a"', **first)
    with pytest.raises(AlreadyExists):
        box.register(S, '"a"', **{**first, **change})


def test_a_uri_may_come_again_with_another_uid() -> None:
    """A subject that was deleted and created again at the source has the same URIs, and its replica can follow."""
    box = importing()
    box.register(S, '"a"', uid=UID, version_number=1, schema_id=1, origin_uri=URI)
    box.do(cmd.DeleteSubject(S, cmd.DeleteMode.END_INCARNATION))
    box.do(cmd.SetMode(SettingsLevel(*S), Mode.IMPORT))
    box.register(S, '"b"', uid=bytes(15) + b"\x08", version_number=1, schema_id=2, origin_uri=URI)
    version = queries.find_version_by_origin(box.state, URI)
    assert version is not None
    assert (version.uid, version.state) == (8, VersionState.ACTIVE)
