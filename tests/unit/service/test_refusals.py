"""The number of registrations that were refused today."""

from __future__ import annotations

import asyncio

from stele.service.audit_notes import REFUSED_REGISTRATION, REFUSED_REQUEST, AuditNotes
from stele.service.refusals import RefusalCounter


def test_a_day_ends_at_midnight_utc() -> None:
    """Refused registrations count until midnight UTC; refused requests never do."""
    notes = AuditNotes(most_entries=10)
    for kind in (REFUSED_REGISTRATION, REFUSED_REGISTRATION, REFUSED_REQUEST):
        notes.note(kind, schema={})
    noted_at = notes.recent[0].at / 1000
    midnight = noted_at // 86_400 * 86_400 + 86_400

    def count_at(moment: float) -> int:
        return asyncio.run(RefusalCounter(notes, lambda: moment).count_today())

    assert (count_at(noted_at), count_at(midnight - 0.001), count_at(midnight)) == (2, 2, 0)


def test_a_number_is_good_for_a_while() -> None:
    """The entries are read again after `HOLDS` seconds, not before."""
    notes = AuditNotes(most_entries=10)
    notes.note(REFUSED_REGISTRATION, schema={})
    moment = start = notes.recent[0].at / 1000 // 86_400 * 86_400 + 43_200
    counter = RefusalCounter(notes, lambda: moment)
    assert asyncio.run(counter.count_today()) == 1
    notes.note(REFUSED_REGISTRATION, schema={})
    moment = start + RefusalCounter.HOLDS - 0.001
    assert asyncio.run(counter.count_today()) == 1
    moment = start + RefusalCounter.HOLDS
    assert asyncio.run(counter.count_today()) == 2
