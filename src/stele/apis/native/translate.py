"""Answers of the native API, from what the service gives. Pure."""

from __future__ import annotations

import msgspec

from stele.core.findings import Finding, Level
from stele.service.changes import Change
from stele.service.check import CheckAnswer
from stele.service.diff import DiffAnswer
from stele.service.lint import LintAnswer
from stele.service.rejudging import Direction, Place, ReportPage, Row
from stele.service.rulesets import RulesetInfo


class FindingOut(msgspec.Struct, frozen=True, omit_defaults=True):
    """One reason why data written with `writer` cannot be read with `reader`, and what to do about it.

    against counts the entries of the request's `against` from 1; level is there only when it is not an error:
    `warning`, or `unknown` where no rule could decide.
    """

    rule: str
    path: str
    reader: str
    writer: str
    why: str
    fix: str
    against: int | None = None
    witness: str | None = None
    level: str | None = None


class CheckOut(msgspec.Struct, frozen=True):
    """The verdict of a check: compatible when no finding is an error, nor unknown unless that is allowed."""

    compatible: bool
    findings: list[FindingOut]


def check_out(answer: CheckAnswer) -> CheckOut:
    """The verdict as the API words it."""
    return CheckOut(answer.compatible, [finding_out(finding) for finding in answer.findings])


def finding_out(finding: Finding) -> FindingOut:
    """A finding as the API words it."""
    return FindingOut(
        rule=finding.rule,
        path=finding.path,
        reader=finding.reader,
        writer=finding.writer,
        why=finding.why,
        fix=finding.fix,
        against=finding.against,
        witness=finding.witness,
        level=None if finding.level is Level.ERROR else finding.level.value,
    )


class LintOut(msgspec.Struct, frozen=True):
    """What the rules object to, as warnings; `reader` is what stands there, `writer` what the version before had."""

    findings: list[FindingOut]


def lint_out(answer: LintAnswer) -> LintOut:
    """Advice as the API words it."""
    return LintOut([finding_out(finding) for finding in answer.findings])


class ReasonOut(FindingOut, frozen=True):
    """A finding about a change; direction is `backward` when the new schema reads, `forward` when the old one does."""

    direction: str = ""


class ChangeOut(msgspec.Struct, frozen=True):
    """One difference.

    kind        `added`, `removed`, `changed`, `renamed` or `moved`
    path        of the declaration in the new version, of a removed one in the old version; was: in the old version,
                where that is another one
    what        kind of declaration, or for `changed` the attribute
    annotation  whether only people see the difference, as in documentation
    backward    whether the new schema reads data of the old one in spite of it; forward: the other way round
    """

    kind: str
    path: str
    was: str | None
    what: str
    before: str
    after: str
    annotation: bool
    backward: bool
    forward: bool
    findings: list[ReasonOut]


class DiffOut(msgspec.Struct, frozen=True):
    """What changed, and what follows.

    backward is whether the new schema reads data of the old one, forward the other way round; null where nothing is
    compared. ruleset is the full name of the rules that decided, text a unified diff of the normalised texts.
    complete is false when there is more than is listed.
    """

    changes: list[ChangeOut]
    backward: bool | None
    forward: bool | None
    ruleset: str
    text: str
    complete: bool


def diff_out(answer: DiffAnswer) -> DiffOut:
    """A comparison as the API words it."""
    return DiffOut(
        [_change_out(change) for change in answer.changes],
        answer.backward,
        answer.forward,
        answer.ruleset,
        answer.text,
        answer.complete,
    )


def _change_out(change: Change) -> ChangeOut:
    return ChangeOut(
        kind=change.kind.value,
        path=change.path,
        was=change.was or None,
        what=change.what,
        before=change.before,
        after=change.after,
        annotation=change.annotation,
        backward=change.backward,
        forward=change.forward,
        findings=[
            ReasonOut(**msgspec.structs.asdict(finding_out(reason.finding)), direction=reason.direction.value)
            for reason in change.findings
        ],
    )


class RulesetsOut(msgspec.Struct, frozen=True):
    """The rulesets of all installed formats, and which version of each is in force in this registry."""

    rulesets: list[RulesetInfo]


class RowOut(msgspec.Struct, frozen=True, omit_defaults=True):
    """A pair of versions that would be judged otherwise: `now` by `ruleset_now`, `then` by `ruleset_then`."""

    space: str
    subject: str
    version: int
    against: int
    direction: Direction
    ruleset_now: str
    ruleset_then: str
    now: str
    then: str
    findings: list[FindingOut]


class ReportOut(msgspec.Struct, frozen=True):
    """One page: compared counts the pairs looked at; next goes into the next request's `after`, null at the end."""

    rows: list[RowOut]
    compared: int
    next: Place | None


def report_out(page: ReportPage) -> ReportOut:
    """A page as the API words it."""
    return ReportOut([_row_out(row) for row in page.rows], page.compared, page.next)


def _row_out(row: Row) -> RowOut:
    plain = {name: getattr(row, name) for name in Row.__struct_fields__}
    return RowOut(**{**plain, "findings": [finding_out(finding) for finding in row.findings]})
