"""Which subjects records of the log are about: what indexes of subjects have to look at again."""

from __future__ import annotations

from typing import Final

from stele.core.model import SubjectKey
from stele.service.journal import list_entries
from stele.service.registry import Registry

_MOST_RECORDS: Final = 2000
"""Records behind the log after which it costs less to look at all subjects again."""
_WITHOUT_SUBJECTS: Final = frozenset(
    {
        "binding_removed",
        "ids_skipped",
        "item_changed",
        "item_removed",
        "mode_changed",
        "namespace_created",
        "ruleset_adopted",
    }
)
"""Kinds of changes of more than a subject that no index of subjects shows."""


async def find_changed_subjects(registry: Registry, after: int, until: int) -> set[SubjectKey] | None:
    """Return the subjects that some records are about.

    Args:
        registry: Whose log it is.
        after: Sequence number of the last record that is known.
        until: Sequence number of the last record to look at.

    Returns:
        Their keys; None where that may be any subject, or there are too many records to look at.
    """
    if until - after > _MOST_RECORDS:
        return None
    changed: set[SubjectKey] = set()
    while after < until:
        records = await registry.read_log(after, until - after)
        if not records:
            return None
        for seq, record in records:
            after = seq
            for entry in list_entries(seq, record):
                if entry.subject is not None:
                    changed.add(SubjectKey(entry.namespace or "", entry.subject))
                elif entry.kind not in _WITHOUT_SUBJECTS:
                    return None
    return changed
