"""Logs of earlier releases, interpreted by the rules of this release."""

from __future__ import annotations

import pytest
from tests.unit.core.box import S, doc
from tests.unit.service.test_registry import put, record

from stele.core import queries
from stele.core.events import (
    Event,
    EventMetadata,
    IncarnationEnded,
    LogRecord,
    SubjectCreated,
    VersionRegistered,
    encode_record,
)
from stele.core.model import Numbering
from stele.service.registry import Registry
from stele.storage.memory import MemoryLog


def _write_incarnation(incarnation: int, versions: int, via: str) -> list[bytes]:
    """Return the records of an earlier release for a subject that was created, got versions, and was deleted."""
    uid = bytes([incarnation]) * 16
    events: list[Event] = [SubjectCreated(S, uid, incarnation, incarnation, Numbering.NEVER_REUSE)]
    for number in range(1, versions + 1):
        text = f"text {incarnation} {number}"
        uid = bytes([incarnation * 16 + number]) * 16
        schema_id = incarnation * 10 + number
        events.append(VersionRegistered(S, uid, number, number, schema_id, doc(text).sha, "avro", text=text.encode()))
    events.append(IncarnationEnded(S))
    return [encode_record(LogRecord(EventMetadata(uid, 1, via=via), (event,))) for event in events]


@pytest.mark.parametrize(("via", "expected"), [("cncf", 4), ("pravega", 1)])
@pytest.mark.parametrize("lives", [(3,), (3, 1)])
async def test_numbers_in_uris_go_on(via: str, expected: int, lives: tuple[int, ...]) -> None:
    """A CNCF schema of an old log never reuses a number, even if the old release restarted at 1."""
    log = MemoryLog()
    for incarnation, versions in enumerate(lives, 1):
        assert await log.append(await log.head(), _write_incarnation(incarnation, versions, via))
    registry = await Registry.open(log)
    assert queries.next_version_number(registry.state, S) == expected
    assert (await put(registry, record("a"), S)).version_number == expected
    await registry.close()
