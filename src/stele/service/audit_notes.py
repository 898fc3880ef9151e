"""Notes for the audit trail that are not in the log: refused requests and uses of keys. They wait here to be written.

The newest refused registrations are also kept here: without a file of the trail they are recorded nowhere else.
"""

from __future__ import annotations

import time
from collections import deque
from pathlib import Path
from typing import Any, Final

from stele.core.audit_chain import AuditEntry
from stele.service.access import CALLER, Caller

_MOST: Final = 10_000
"""Maximum number of waiting notes. Further notes are dropped and counted."""
REFUSED_REQUEST: Final = "refused"
"""Kind of notes about requests that were refused because of their caller."""
REFUSED_REGISTRATION: Final = "registration_refused"
"""Kind of notes about schemas that the policy refused."""


class AuditNotes:
    """Notes of one process. The writer of the audit trail takes them; without one, only refused registrations are kept.

    Args:
        most_entries: Refused registrations that are remembered, the newest ones.
        text_bytes: Length up to which the text of a refused registration is noted; 0: never.
    """

    def __init__(self, most_entries: int = 0, text_bytes: int = 0) -> None:
        self.text_bytes = text_bytes
        self.file: Path | None = None
        """File of the audit trail; None: there is none."""
        self.recent: deque[AuditEntry] = deque(maxlen=most_entries)
        """The newest refused registrations, oldest first, where there is no file."""
        self.is_on = False
        """Whether a writer takes the notes."""
        self.dropped = 0
        """Number of notes that were dropped because too many waited."""
        self._waiting: deque[AuditEntry] = deque()

    def note(
        self,
        kind: str,
        *,
        namespace: str | None = None,
        subject: str | None = None,
        caller: Caller | None = None,
        **details: Any,
    ) -> None:
        """Note what the caller did or tried to do. `details` must not hold secrets."""
        is_remembered = kind == REFUSED_REGISTRATION and self.file is None
        if not self.is_on and not is_remembered:
            return
        who = CALLER.get() if caller is None else caller
        entry = AuditEntry(
            time.time_ns() // 1_000_000,
            kind,
            who.principal.name,
            who.address,
            who.agent,
            who.request_id,
            who.dialect,
            namespace=namespace,
            subject=subject,
            details={name: value for name, value in details.items() if value not in (None, "")},
        )
        if is_remembered:
            self.recent.append(entry)
        if not self.is_on:
            return
        if len(self._waiting) >= _MOST:
            self.dropped += 1
            return
        self._waiting.append(entry)

    def take_notes(self) -> list[AuditEntry]:
        """Return and remove all waiting notes."""
        taken = list(self._waiting)
        self._waiting.clear()
        return taken

    def give_back(self, notes: list[AuditEntry]) -> None:
        """Put notes that could not be written back in the queue."""
        room = _MOST - len(self._waiting)
        self.dropped += max(len(notes) - room, 0)
        self._waiting.extendleft(reversed(notes[: max(room, 0)]))
