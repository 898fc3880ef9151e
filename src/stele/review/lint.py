"""Lint of schema files: the rules that apply, their severities, and the files that are skipped."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatch
from typing import Literal

import msgspec
from msgspec.structs import replace

from stele.core.findings import Finding, Severity
from stele.errors import InvalidRequest, MalformedSchema
from stele.formats import lint as rules
from stele.formats.registry import get_format
from stele.review.report import FileFinding, FileReport, FindingLocator, Outcome, report_malformed
from stele.service.check import Candidate
from stele.service.lint import LintRequest, lint_schema

ALL_RULES = "ALL"
"""Selects every rule, those that are off by default too."""

RuleLevel = Literal["error", "warning", "off"]


class LintConfig(msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    """Lint configuration of files: a table `[lint]` of a manifest, or a file `stele-lint.toml`.

    select            rules to apply, ALL for every one; None: all that are on by default
    extend_select     rules to apply in addition
    ignore            rules to leave out
    severity          severity of a rule's findings; `off` leaves the rule out
    per_file_ignores  rules to leave out, by pattern of paths (`legacy/*`)
    exclude           patterns of paths that are not linted
    """

    select: tuple[str, ...] | None = None
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    severity: Mapping[str, RuleLevel] = {}
    per_file_ignores: Mapping[str, tuple[str, ...]] = {}
    exclude: tuple[str, ...] = ()

    def is_excluded(self, path: str) -> bool:
        """Return whether a file is not linted."""
        return any(fnmatch(path, pattern) for pattern in self.exclude)

    def list_rules(self, format_name: str, path: str) -> tuple[str, ...]:
        """Return the rules that a file is judged by. Raises `UnknownRule`."""
        fmt = get_format(format_name)
        every = tuple(rules.lint_rules_of(fmt))
        chosen = rules.default_rules_of(fmt) if self.select is None else self.select
        chosen = (*chosen, *self.extend_select)
        off = {rule for rule, level in self.severity.items() if level == "off"}
        off |= {rule for pattern, names in self.per_file_ignores.items() if fnmatch(path, pattern) for rule in names}
        left_out = rules.require_known_rules(fmt, {*off, *self.ignore})
        wanted = every if ALL_RULES in chosen else rules.require_known_rules(fmt, chosen)
        return tuple(rule for rule in every if rule in wanted and rule not in left_out)

    def weigh(self, finding: Finding) -> Finding:
        """Return the finding with the severity that is configured for its rule."""
        level = self.severity.get(finding.rule)
        return finding if level is None or level == "off" else replace(finding, level=Severity(level))


def lint_file(
    file: str, format_name: str, schema: Candidate, config: LintConfig, before: Candidate | None = None
) -> FileReport:
    """Lint a file. `before` is its previous version, for rules about changes.

    A file that is not a schema results in a report, too. Raises `UnknownRule`, `TooLarge`, and `InvalidRequest` for a
    previous version that is not a schema.
    """
    wanted = config.list_rules(format_name, schema.name)
    request = LintRequest(format_name, schema.schema, None, wanted, (), schema.references, schema.name)
    try:
        parsed = get_format(format_name).parse(
            schema.schema.encode("utf-8", "surrogatepass"),
            {each.name: each.schema.encode("utf-8", "surrogatepass") for each in schema.references},
            name=schema.name,
        )
    except MalformedSchema as error:
        return report_malformed(file, schema.schema, error)
    try:
        answer = lint_schema(replace(request, before=before))
    except MalformedSchema as error:
        raise InvalidRequest(str(error)) from None
    locator = FindingLocator(get_format(format_name), parsed, schema.schema)
    findings = tuple(
        FileFinding.from_finding(config.weigh(finding), locator.locate(finding.path)) for finding in answer.findings
    )
    failed = any(finding.breaks for finding in findings)
    return FileReport(file, Outcome.FAILED if failed else Outcome.PASSED, findings)
