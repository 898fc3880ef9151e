"""What a compatibility check says: findings, and the questions that lead to them.

One type for every format, dialect, page and command (see docs: "why verdicts come from named rulesets").
"""

from __future__ import annotations

from enum import Enum

import msgspec


class Level(Enum):
    """How much a finding weighs."""

    ERROR = "error"
    """The reader cannot read the writer's data: the change is incompatible."""
    WARNING = "warning"
    """Readable, but probably not what the author meant."""
    UNKNOWN = "unknown"
    """No rule could decide. What is not known to be compatible is refused; a ruleset that trusts says WARNING."""


class Finding(msgspec.Struct, frozen=True, omit_defaults=True):
    """One reason why data written with one schema cannot be read with another.

    rule     stable name of the rule, upper case (`READER_FIELD_MISSING_DEFAULT_VALUE`)
    path     where: a JSON Pointer into the reader's schema (Avro, JSON Schema), else a dotted name
    reader   what the reader's schema has there, short text
    writer   what the writer's schema has there, short text
    why      one sentence that explains the consequence
    fix      one sentence that says what the author can do
    witness  a document the writer allows and the reader refuses, as text, where one was found
    against  number of the version compared with (1-based; its position in a stateless check)
    level    see `Level`
    """

    rule: str
    path: str
    reader: str = ""
    writer: str = ""
    why: str = ""
    fix: str = ""
    witness: str | None = None
    against: int | None = None
    level: Level = Level.ERROR

    @property
    def breaks(self) -> bool:
        """True when the finding by itself makes the change incompatible."""
        return self.level is not Level.WARNING
