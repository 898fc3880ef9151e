"""Findings as the Confluent API words them: the messages of a compatibility check and of a refusal. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from stele.core import queries
from stele.core.chains import find_version
from stele.core.findings import Finding
from stele.core.findings import Level as Weight
from stele.core.model import Level, SubjectKey
from stele.core.state import State

_LONGEST = 10 * 1024
"""Characters of an old schema a message shows."""
_MOST = 1000
"""Findings a message lists: a schema of a megabyte can have tens of thousands."""
_FORMAT_CHANGED = "FORMAT_CHANGED"


def messages(state: State, key: SubjectKey, findings: Sequence[Finding], against: int | None) -> list[str]:
    """One message per finding, then the old version, its text, and the level in force."""
    found = [_message(finding) for finding in findings[:_MOST]]
    subject = state.subject(key)
    old = find_version(subject, against) if subject is not None and against is not None else None
    if old is not None:
        text = state.text(old.content).decode("utf-8", "replace")
        shown = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
        found += [f"{{oldSchemaVersion: {old.ordinal}}}", f"{{oldSchema: '{shown}'}}"]
    validates = queries.settings_for(state, Level(*key)).validate_fields
    level = queries.policy_for(state, key).nearest_name
    return [*found, f"{{validateFields: '{str(bool(validates)).lower()}', compatibility: '{level}'}}"]


def _message(finding: Finding) -> str:
    if finding.rule == _FORMAT_CHANGED:
        return finding.why
    doubt = "Not decided, hence refused: " if finding.level is Weight.UNKNOWN else ""
    description = f"{doubt}{finding.why.rstrip('.')}, at path '{finding.path or '/'}'. {finding.fix}".rstrip(" .")
    information = f"reader: {finding.reader}, writer: {finding.writer}"
    return f"{{errorType:'{finding.rule}', description:'{description}', additionalInfo:'{information}'}}"
