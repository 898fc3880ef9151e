"""The changes in the log as an audit trail, page by page."""

from __future__ import annotations

from litestar import get
from litestar.handlers import HTTPRouteHandler

from stele.apis.http.access import Place, access
from stele.apis.http.dependencies import VOLATILE
from stele.apis.http.requests import parse_whole_number
from stele.apis.native.errors import ERRORS
from stele.apis.native.routes.journal import After, Limit
from stele.core.access import Operation
from stele.service.audit import AuditPage, AuditReader
from stele.service.journal import MOST_RECORDS
from stele.service.registry import Registry

_LAST = 2**63 - 1
_OPTIONS = {**access(Operation.READ_AUDIT, Place.REGISTRY), VOLATILE: True}
"""No page of the trail is kept in memory."""


def create_routes(registry: Registry) -> list[HTTPRouteHandler]:
    """Return the endpoints about the audit trail of one registry."""
    reader = AuditReader(registry)

    @get("/api/audit", responses={400: ERRORS[400], 422: ERRORS[422]}, opt=_OPTIONS)
    async def read_audit(after: After = "0", limit: Limit = "100") -> AuditPage:
        # GET /api/audit?after&limit
        """Show who changed what, when, from where and through which API, with digests of before and after."""
        records = parse_whole_number("limit", limit, 0, MOST_RECORDS)
        return await reader.read_page(parse_whole_number("after", after, 0, _LAST), records)

    return [read_audit]
