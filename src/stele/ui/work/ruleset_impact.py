"""The effect of adopting another version of a ruleset, and its adoption."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from stele.apis.http.access import Place, access
from stele.apis.http.requests import parse_whole_number
from stele.core.access import Operation
from stele.core.model import MAX_INT32
from stele.errors import Invalid
from stele.service.ruleset_adoption import adopt_ruleset, adopted_versions
from stele.service.ruleset_impact import ComparedVersions, ImpactRow, ReportPage, ReportRequest, make_report
from stele.service.rulesets import RulesetInfo, get_ruleset
from stele.ui.forms import Destination, FieldProblem, Form, FormPage
from stele.ui.pages import Page, PageRequest
from stele.ui.work.register import VIA

_ROWS: Final = 100
_PLACE: Final = ("namespace", "subject", "version", "against")


class ImpactPage(msgspec.Struct, frozen=True):
    """The pairs of versions whose verdicts another ruleset changes.

    format, ruleset  the question: a full name, or a bare one for its newest version
    everywhere whether every subject of the format is compared; False: only those for which the ruleset decides
    info      the ruleset; None: nothing was asked, or the ruleset is unknown
    rows      pairs whose verdicts differ
    compared  number of pairs that were compared on this page
    next      query of the next page; empty on the last one
    refusal   why the caller may not adopt a ruleset; '' if the caller may
    """

    format: str
    ruleset: str
    formats: Sequence[str]
    everywhere: bool = False
    info: RulesetInfo | None = None
    rows: Sequence[ImpactRow] = ()
    compared: int = 0
    next: dict[str, str] = {}
    refusal: str = ""
    problems: Sequence[FieldProblem] = ()


async def view_ruleset_impact(page: PageRequest) -> ImpactPage:
    """Show which verdicts about registered versions another ruleset would change."""
    format_name, ruleset = page.get_query("format"), page.get_query("ruleset")
    content = ImpactPage(
        format_name,
        ruleset,
        page.registry.parser.list_format_names(),
        everywhere=bool(page.get_query("everywhere")),
        refusal=page.find_refusal(Operation.CHANGE_POLICY),
    )
    if not format_name or not ruleset:
        return content
    try:
        info = get_ruleset(format_name, ruleset, await adopted_versions(page.registry))
        request = ReportRequest(format_name, ruleset, content.everywhere, limit=_ROWS, after=_read_place(page))
        report: ReportPage = await make_report(page.registry, request)
    except Invalid as error:
        return msgspec.structs.replace(content, problems=[FieldProblem("ruleset", str(error))])
    after = report.next
    following = {name: str(getattr(after, name)) for name in _PLACE} if after is not None else {}
    return msgspec.structs.replace(content, info=info, rows=report.rows, compared=report.compared, next=following)


def _read_place(page: PageRequest) -> ComparedVersions | None:
    """Return the pair at which the page begins. Raises `InvalidRequest`."""
    subject = page.get_query("subject")
    if not subject:
        return None
    version, against = (parse_whole_number(name, page.get_query(name), 1, MAX_INT32) for name in _PLACE[2:])
    return ComparedVersions(page.get_query("namespace"), subject, version, against)


async def submit_adoption(page: PageRequest, form: Form) -> msgspec.Struct:
    """Adopt a version of a ruleset."""
    format_name, ruleset = form.get("format"), form.get("ruleset")
    try:
        await adopt_ruleset(page.registry, format_name, ruleset, via=VIA)
    except Invalid as error:
        content = await view_ruleset_impact(page)
        return msgspec.structs.replace(
            content, format=format_name, ruleset=ruleset, problems=[FieldProblem("ruleset", str(error))]
        )
    return Destination("/rulesets?done=adopted")


def list_form_pages() -> list[FormPage]:
    """Return the pages of this module."""
    page = Page(
        "/ui/rulesets/impact",
        view_ruleset_impact,
        "ruleset_impact.html.j2",
        access(Operation.READ, Place.LIST),
        menu="/rulesets",
    )
    return [FormPage(page, submit_adoption, access(Operation.CHANGE_POLICY, Place.REGISTRY))]
