"""Finds the subjects that records of the log change, so that indexes of subjects can be updated."""

from __future__ import annotations

from typing import Final

from stele.core.model import SubjectKey
from stele.service.journal import list_entries
from stele.service.registry import Registry

_MOST_RECORDS: Final = 2000
"""Number of new records above which it costs less to read all subjects again."""
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
"""Kinds of changes that concern no single subject and that no index of subjects shows."""


async def find_changed_subjects(registry: Registry, after: int, until: int) -> set[SubjectKey] | None:
    """Return the subjects that some records change.

    Args:
        registry: Registry whose log is read.
        after: Sequence number of the last record that is known.
        until: Sequence number of the last record to read.

    Returns:
        Their keys; None if any subject may have changed, or if there are too many records to read.
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
