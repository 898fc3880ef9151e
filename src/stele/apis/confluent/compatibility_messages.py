"""Findings as the Confluent API words them: the messages of a compatibility check and of a refusal. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from stele.core import queries
from stele.core.findings import Finding
from stele.core.findings import Severity as Weight
from stele.core.model import SettingsLevel, SubjectKey
from stele.core.state import State
from stele.core.traversal import find_version

_LONGEST = 10 * 1024
"""Characters of an old schema a message shows."""
_MOST = 1000
"""Findings a message lists: a schema of a megabyte can have tens of thousands."""
_FORMAT_CHANGED = "FORMAT_CHANGED"
_DOUBLE_QUOTED = frozenset({"json", "protobuf"})
"""Formats whose messages stand in double quotes and end with the description."""


def format_messages(state: State, key: SubjectKey, findings: Sequence[Finding], against: int | None) -> list[str]:
    """One message per finding, then the old version and its text where texts were compared, and the level in force."""
    subject = state.find_subject(key)
    old = find_version(subject, against) if subject is not None and against is not None else None
    quote = '"' if old is not None and old.content.format in _DOUBLE_QUOTED else "'"
    found = [_format_finding(finding, quote) for finding in findings[:_MOST]]
    if old is not None and not any(finding.rule == _FORMAT_CHANGED for finding in findings):
        text = state.get_text(old.content).decode("utf-8", "replace")
        shown = f"'{text}'" if len(text) <= _LONGEST else f"<truncated> '{text[:_LONGEST]}...'"
        found += [f"{{oldSchemaVersion: {old.version_number}}}", f"{{oldSchema: {shown}}}"]
    validates = queries.settings_for(state, SettingsLevel(*key)).validate_fields
    level = queries.policy_for(state, key).nearest_name
    return [*found, f"{{validateFields: '{str(bool(validates)).lower()}', compatibility: '{level}'}}"]


def _format_finding(finding: Finding, quote: str) -> str:
    """One finding as clients take it apart: Avro's messages have one entry more than those of the other formats."""
    if finding.rule == _FORMAT_CHANGED:
        return finding.why
    doubt = "Not decided, hence refused: " if finding.level is Weight.UNKNOWN else ""
    description = f"{doubt}{finding.why.rstrip('.')}, at path '{finding.path or '/'}'. {finding.fix}".rstrip(" .")
    message = f"errorType:{quote}{finding.rule}{quote}, description:{quote}{description}{quote}"
    return f"{{{message}}}" if quote == '"' else f"{{{message}, additionalInfo:'{_additional_info(finding)}'}}"


def _additional_info(finding: Finding) -> str:
    """What clients read the offending name or size from; for other findings both sides."""
    match finding.rule:
        case "READER_FIELD_MISSING_DEFAULT_VALUE":
            return finding.reader
        case "MISSING_ENUM_SYMBOLS":
            return finding.writer
        case "NAME_MISMATCH":
            return f"expected: {finding.writer}"
        case "FIXED_SIZE_MISMATCH":
            return f"expected: {finding.writer}, found: {finding.reader}"
        case _:
            return f"reader: {finding.reader}, writer: {finding.writer}"
