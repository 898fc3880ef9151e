"""Results of a review: a report for each file, with findings and their positions in the text."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

import msgspec

from stele.core.findings import Direction, Finding, SourcePosition
from stele.core.ports import Format
from stele.errors import MalformedSchema
from stele.formats.capabilities import HasLocator, HasPositions
from stele.formats.json_reader import locate_values

MALFORMED = "MALFORMED_SCHEMA"
"""Rule of the finding that a file is not a schema."""


class Outcome(Enum):
    """Outcome of the review of a file."""

    PASSED = "passed"
    """The file was compared or linted; there are no findings, or warnings only."""
    FAILED = "failed"
    """A finding breaks: an incompatible change, or one that no rule could decide."""
    UNCOMPARED = "valid; nothing to compare with"
    """A valid schema without an earlier version."""
    INVALID = "invalid"
    """No schema of its format."""


class FileFinding(Finding, frozen=True, kw_only=True):
    """A finding with its position in the reviewed file.

    line, column   from 1, columns in characters; None if the position is not known
    compared_with  name of the version it was compared with (`orders-value version 3`); '' for none
    direction      whether the new schema reads old data or the other way round; None for rules about one schema
    """

    line: int | None = None
    column: int | None = None
    compared_with: str = ""
    direction: Direction | None = None

    @classmethod
    def from_finding(
        cls,
        finding: Finding,
        position: SourcePosition | None,
        *,
        compared_with: str = "",
        direction: Direction | None = None,
    ) -> FileFinding:
        """Return the finding with a position."""
        line, column = position or (None, None)
        own = {name: getattr(finding, name) for name in Finding.__struct_fields__}
        return cls(**own, line=line, column=column, compared_with=compared_with, direction=direction)


class FileReport(msgspec.Struct, frozen=True):
    """Findings in one file.

    file           name of the file as the user gave it
    outcome        see `Outcome`
    findings       findings in the order in which they were found
    ruleset        full name of the ruleset of the comparison, '' without one
    compared_with  names of the compared versions, newest first
    error          why the file is not a schema, else None
    """

    file: str
    outcome: Outcome
    findings: tuple[FileFinding, ...] = ()
    ruleset: str = ""
    compared_with: tuple[str, ...] = ()
    error: str | None = None

    def without_positions(self) -> FileReport:
        """Return the report without lines and columns."""
        findings = tuple(msgspec.structs.replace(each, line=None, column=None) for each in self.findings)
        return msgspec.structs.replace(self, findings=findings)


def report_malformed(file: str, text: str, error: MalformedSchema) -> FileReport:
    """Return the report of a file that is not a schema."""
    line, column = error.line, error.column
    if line is None and error.path:
        line, column = _locate_in_json(text, error.path) or (None, None)
    finding = FileFinding(
        MALFORMED, error.path or "", why=str(error), fix=error.expected or "", line=line, column=column
    )
    return FileReport(file, Outcome.INVALID, (finding,), error=str(error))


def _locate_in_json(text: str, path: str) -> SourcePosition | None:
    try:
        positions = locate_values(text.encode("utf-8", "surrogatepass"))
    except MalformedSchema:
        return None
    return find_nearest(positions, path.removeprefix("#"))


class FindingLocator:
    """Finds the positions of findings in the text of the new schema."""

    def __init__(self, fmt: Format[Any], parsed: Any, text: str) -> None:
        self._format = fmt
        self._parsed = parsed
        data = text.encode("utf-8", "surrogatepass")
        self._positions = fmt.positions(parsed, data) if isinstance(fmt, HasPositions) else {}

    def locate(self, path: str, reader: Any = None) -> SourcePosition | None:
        """Return the position of a path, or of the nearest declaration around it; None for a format without positions.

        `reader` is the schema whose path it is, if that is not the new schema. Such a path may count fields. It is
        followed in `reader`, and the declaration that it leads to is looked up by name.
        """
        is_other = reader is not None and reader is not self._parsed
        if (is_other or path not in self._positions) and isinstance(self._format, HasLocator):
            location = self._format.locator(reader if is_other else self._parsed)(path)
            if location is not None and (is_other or location.path in self._positions):
                path = location.path
        return find_nearest(self._positions, path)


def find_nearest(positions: Mapping[str, SourcePosition], path: str) -> SourcePosition | None:
    """Return the position of a path, or of its longest beginning that has one, or of the whole document."""
    while path and path not in positions:
        path = path[: max(path.rfind("/"), path.rfind("."), 0)]
    if path in positions:
        return positions[path]
    return next((positions[top] for top in ("/", "#", "") if top in positions), None)


def describe_finding(finding: FileFinding) -> str:
    """Return the text of a finding in lines: the reason, the path, the compared version, the fix and the witness."""
    against = f"Compared with {finding.compared_with}." if finding.compared_with else ""
    witness = f"Witness: {finding.witness}" if finding.witness else ""
    place = f"At {finding.path}." if finding.path else ""
    return "\n".join(part for part in (finding.why, place, against, finding.fix, witness) if part) or finding.rule


def format_place(file: str, finding: FileFinding) -> str:
    """Return `file:line:column`, as far as it is known."""
    return ":".join(str(part) for part in (file, finding.line, finding.column) if part is not None)
