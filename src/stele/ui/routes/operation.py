"""Operation of the registry: access rules, the audit trail, and the delivery of changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from stele.apis.http.access import Place, access
from stele.apis.http.dependencies import VOLATILE
from stele.apis.http.requests import parse_whole_number
from stele.core.access import ROLES, Operation
from stele.core.access_rule_text import parse_resource
from stele.core.audit_chain import AuditEntry
from stele.errors import InvalidRequest
from stele.service.access_rules import AccessExplanation, RuleList, explain_access, list_rules
from stele.service.delivery.exporters import ExporterOverview, list_exporters
from stele.service.delivery.overview import SubscriptionOverview, list_overviews
from stele.ui.pages import Page, PageRequest

_RECORDS: Final = 100
"""Number of log records on one page of the audit trail."""
_MOST_POSITION: Final = 2**63 - 1


class AccessPage(msgspec.Struct, frozen=True):
    """The access rules, and the answer to a question about them.

    principal, operation, resource  the question that the query asks; '' for none
    answer      the answer; None without a question or with a problem
    problem     why there is no answer; '' for none
    operations  operations to choose from
    roles       names that stand for several operations
    """

    rules: RuleList
    principal: str
    operation: str
    resource: str
    answer: AccessExplanation | None
    problem: str
    operations: Sequence[str]
    roles: dict[str, Sequence[str]]


class AuditTrailPage(msgspec.Struct, frozen=True):
    """Entries of the audit trail, newest first.

    before  highest record whose entries the page shows
    older   highest record of the next page, with older entries; None if there are none
    end     the newest record
    """

    entries: Sequence[AuditEntry]
    before: int
    older: int | None
    end: int


class EventsPage(msgspec.Struct, frozen=True):
    """Subscriptions to changes and exporters, and how far each of them is."""

    subscriptions: Sequence[SubscriptionOverview]
    exporters: Sequence[ExporterOverview]


async def view_access(page: PageRequest) -> AccessPage:
    """Show the access rules, and why a user may or may not perform an operation."""
    names = ("principal", "operation", "resource")
    principal, operation, resource = (page.get_query(name).strip() for name in names)
    answer, problem = None, ""
    if principal and operation and resource:
        try:
            parsed = parse_resource(resource)
            answer = await explain_access(page.registry, frozenset({principal}), operation, parsed)
        except InvalidRequest as error:
            problem = str(error)
    roles: dict[str, Sequence[str]] = {name: sorted(operations) for name, operations in ROLES.items()}
    rules = await list_rules(page.registry)
    return AccessPage(rules, principal, operation, resource, answer, problem, list(Operation), roles)


async def view_audit(page: PageRequest) -> AuditTrailPage:
    """Show who changed what, newest first."""
    end = (await page.registry.fresh_state()).seq
    before_text = page.get_query("before")
    before = min(parse_whole_number("before", before_text, 1, _MOST_POSITION), end) if before_text else end
    after = max(0, before - _RECORDS)
    audit_page = await page.site.audit.read_page(after, before - after)
    return AuditTrailPage(audit_page.entries[::-1], before, after or None, end)


async def view_events(page: PageRequest) -> EventsPage:
    """Show the subscriptions to changes and the exporters, and how far each of them is."""
    return EventsPage(await list_overviews(page.registry), await list_exporters(page.registry))


def list_pages() -> list[Page]:
    """Return the pages of this module."""
    return [
        Page(
            "/ui/access",
            view_access,
            "access.html.j2",
            access(Operation.MANAGE_ACCESS, Place.REGISTRY) | {VOLATILE: True},
            menu="/access",
        ),
        Page("/ui/audit", view_audit, "audit.html.j2", access(Operation.READ_AUDIT, Place.REGISTRY), menu="/audit"),
        Page(
            "/ui/events",
            view_events,
            "events.html.j2",
            access(Operation.MANAGE_EXPORTERS, Place.REGISTRY) | {VOLATILE: True},
            menu="/events",
        ),
    ]
