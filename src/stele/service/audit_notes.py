"""What the audit trail says beside the changes in the log: refusals, and uses of keys. It waits here to be written.

The newest registrations that were refused are remembered here, too: without a file of the trail nobody else has them.
"""

from __future__ import annotations

import time
from collections import deque
from pathlib import Path
from typing import Any, Final

from stele.core.audit_chain import AuditEntry
from stele.service.access import CALLER, Caller

_MOST: Final = 10_000
"""Notes that wait; more are dropped, and counted."""
REFUSED_REQUEST: Final = "refused"
"""Kind of notes about requests that were refused because of who sent them."""
REFUSED_REGISTRATION: Final = "registration_refused"
"""Kind of notes about schemas that the policy refused."""


class AuditNotes:
    """Notes of one process, taken by the writer of the audit trail; without one, only refused registrations are kept.

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
        """Whether somebody takes the notes."""
        self.dropped = 0
        """How many were dropped because too many waited."""
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
        """Note what the caller did, or wanted to do; details must not hold secrets."""
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
        """Return all notes that wait, and forget them."""
        taken = list(self._waiting)
        self._waiting.clear()
        return taken

    def give_back(self, notes: list[AuditEntry]) -> None:
        """Let notes wait again that could not be written."""
        room = _MOST - len(self._waiting)
        self.dropped += max(len(notes) - room, 0)
        self._waiting.extendleft(reversed(notes[: max(room, 0)]))
