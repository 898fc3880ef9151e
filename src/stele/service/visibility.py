"""Decides whether dialects show namespaces and subjects that other dialects created or emptied."""

from __future__ import annotations

from stele.core import queries
from stele.core.model import Namespace, Subject


def is_namespace_shown(namespace: Namespace) -> bool:
    """Return whether a namespace was created or ever had any content, and was not deleted.

    The default namespace, which always exists, is shown as soon as it has content.
    """
    return not namespace.hidden and bool(namespace.explicit or namespace.highest_schema_id or namespace.subjects)


def is_subject_shown(subject: Subject, dialect: str) -> bool:
    """Return whether a dialect shows a subject.

    A subject whose versions were all deleted is shown only by the dialect that created it.
    """
    created_here = dialect in (subject.dialect_data or {})
    return not subject.versions or created_here or queries.latest_version(subject) is not None
