"""Results of compatibility checks: findings, severities and verdicts.

One type for every format, dialect, page and command (see docs: "why verdicts come from named rulesets").
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

import msgspec


class Severity(Enum):
    """Severity of a finding."""

    ERROR = "error"
    """The reader cannot read the writer's data: the change is incompatible."""
    WARNING = "warning"
    """Readable, but probably not what the author meant."""
    UNKNOWN = "unknown"
    """No rule could decide. A change that is not known to be compatible is refused, unless a setting allows it."""


class Finding(msgspec.Struct, frozen=True):
    """One reason why data written with one schema cannot be read with another.

    rule     stable name of the rule, upper case (`READER_FIELD_MISSING_DEFAULT_VALUE`)
    path     where: a JSON Pointer into the reader's schema (Avro, JSON Schema), else a dotted name
    reader   what the reader's schema has there, short text
    writer   what the writer's schema has there, short text
    why      one sentence that explains the consequence
    fix      one sentence that says what the author can do
    witness  a document the writer allows and the reader refuses, as text, where one was found
    against  number of the version compared with (1-based; its position in a stateless check)
    level    see `Severity`
    """

    rule: str
    path: str
    reader: str = ""
    writer: str = ""
    why: str = ""
    fix: str = ""
    witness: str | None = None
    against: int | None = None
    level: Severity = Severity.ERROR

    @property
    def breaks(self) -> bool:
        """Whether this finding alone makes the change incompatible."""
        return self.level is not Severity.WARNING


class SourcePosition(NamedTuple):
    """A place in the text of a schema: line and column, both from 1, columns in characters."""

    line: int
    column: int


class WhenUndecided(Enum):
    """What happens to a change if no rule could decide."""

    REFUSE = "refuse"
    """It is refused: every accepted change is proved to be readable."""
    ALLOW = "allow"
    """It gets a warning: only a proved break refuses a change."""

    def weigh_findings(self, findings: Iterable[Finding]) -> tuple[Finding, ...]:
        """Return the findings, with undecided ones at the severity that this setting gives them."""
        if self is WhenUndecided.REFUSE:
            return tuple(findings)
        return tuple(
            msgspec.structs.replace(finding, level=Severity.WARNING) if finding.level is Severity.UNKNOWN else finding
            for finding in findings
        )


class Direction(Enum):
    """Which schema reads data of which."""

    BACKWARD = "backward"
    """The newer schema reads data of the older one."""
    FORWARD = "forward"
    """The older schema reads data of the newer one."""


class Verdict(Enum):
    """Overall result of findings."""

    COMPATIBLE = "compatible"
    INCOMPATIBLE = "incompatible"
    """A break is proved."""
    UNDECIDED = "undecided"
    """No break is proved, but no rule could exclude one."""

    @classmethod
    def from_findings(cls, findings: Iterable[Finding]) -> Verdict:
        """Return the verdict of all findings about one pair of schemas, or of several pairs together."""
        levels = {finding.level for finding in findings}
        if Severity.ERROR in levels:
            return cls.INCOMPATIBLE
        return cls.UNDECIDED if Severity.UNKNOWN in levels else cls.COMPATIBLE
