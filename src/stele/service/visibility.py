"""What dialects show of namespaces and subjects that other dialects made or emptied."""

from __future__ import annotations

from stele.core import queries
from stele.core.model import Namespace, Subject


def is_namespace_shown(namespace: Namespace) -> bool:
    """Whether a namespace was created or ever held something, and was not deleted.

    The default namespace, which always exists, counts as shown from the first thing put into it.
    """
    return not namespace.hidden and bool(namespace.explicit or namespace.highest_schema_id or namespace.subjects)


def is_subject_shown(subject: Subject, dialect: str) -> bool:
    """Whether a dialect shows a subject: not one whose versions were all deleted, unless that dialect created it."""
    created_here = dialect in (subject.dialect_data or {})
    return not subject.versions or created_here or queries.latest_version(subject) is not None
