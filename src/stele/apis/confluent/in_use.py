"""What a deletion tells of records that still need a version: in a header, for bodies are the API's own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from stele.apis.confluent.desk import Desk
from stele.core import queries
from stele.core.model import SubjectKey, Version
from stele.core.state import State
from stele.service.usage import DeletionWarning

WARNING: Final = "Stele-Warning"
"""Header with sentences in ASCII, of a bounded length; absent where no census saw records."""
_LONGEST: Final = 1000  # characters; proxies bear 4 KiB and more


class Doomed:
    """The versions a subject has before a deletion. Made first, asked for the header afterwards."""

    def __init__(self, state: State, subject: SubjectKey) -> None:
        self._rows: list[Version] = queries.list_versions(state.find_subject(subject), queries.ACTIVE_OR_SOFT_DELETED)

    def headers(self, desk: Desk, gone: Iterable[int]) -> dict[str, str]:
        """The header for the versions that went."""
        ordinals = set(gone)
        found = desk.usage.list_warnings(
            desk.registry.state, [row for row in self._rows if row.version_number in ordinals]
        )
        return {WARNING: _sentences(found)} if found else {}


def _sentences(warnings: list[DeletionWarning]) -> str:
    said = ""
    for place, warning in enumerate(warnings):
        more = ("; " if said else "") + warning.message.encode("ascii", "backslashreplace").decode()
        if len(said) + len(more) > _LONGEST:
            rest = f"and {len(warnings) - place} more"
            return f"{said}; {rest}" if said else f"{more[: _LONGEST - len(rest) - 5]}... {rest}"
        said += more
    return said
