"""The audit trail of changes in the log, page by page, and the refused requests."""

from __future__ import annotations

import asyncio
from typing import Annotated, Final

from litestar import get
from litestar.params import QueryParameter

from stele.apis.http.access import Place, access
from stele.apis.http.dependencies import VOLATILE
from stele.apis.http.requests import parse_whole_number
from stele.apis.native.errors import ERRORS
from stele.apis.native.params import InjectedRegistry, InjectedState
from stele.apis.native.routes.journal import After, Limit
from stele.core.access import Operation
from stele.service.audit import AuditPage
from stele.service.journal import MOST_RECORDS
from stele.service.refusals import KINDS, MOST_REFUSALS, RefusalPage, read_refusals

_LAST = 2**63 - 1
_USUAL_REFUSALS: Final = "100"
Text = Annotated[str, QueryParameter(description="part of a caller, subject, address, path or digest; in any case")]
Kind = Annotated[
    str,
    QueryParameter(
        schema_extra={"type": "string", "enum": ["", *KINDS]},
        description="`registration_refused`: refused by the policy; `refused`: refused without the right; empty: both",
    ),
]
MostRefusals = Annotated[
    str,
    QueryParameter(
        name="limit",
        schema_extra={"type": "integer", "minimum": 1, "maximum": MOST_REFUSALS},
        description="most refusals, newest first",
    ),
]
_OPTIONS = {**access(Operation.READ_AUDIT, Place.REGISTRY), VOLATILE: True}
"""Options of the endpoints. Responses are not cached."""


@get("/api/audit", responses={400: ERRORS[400], 422: ERRORS[422]}, opt=_OPTIONS)
async def read_audit(app_state: InjectedState, after: After = "0", limit: Limit = "100") -> AuditPage:
    # GET /api/audit?after&limit
    """Show who changed what, when, from where and through which API, with digests of before and after."""
    records = parse_whole_number("limit", limit, 0, MOST_RECORDS)
    return await app_state.audit.read_page(parse_whole_number("after", after, 0, _LAST), records)


@get("/api/refusals", responses={400: ERRORS[400], 422: ERRORS[422]}, opt=_OPTIONS)
async def list_refusals(
    registry: InjectedRegistry, text: Text = "", kind: Kind = "", most_refusals: MostRefusals = _USUAL_REFUSALS
) -> RefusalPage:
    # GET /api/refusals?text&kind&limit
    """Show the registrations that the policy refused and the requests without the required right, newest first."""
    limit = parse_whole_number("limit", most_refusals, 1, MOST_REFUSALS)
    return await asyncio.to_thread(read_refusals, registry.audit, text.strip(), kind, limit)


ROUTES: Final = (
    read_audit,
    list_refusals,
)
"""Endpoints of the audit trail."""
