"""Why a request was refused: refusals of the audit trail, newest first."""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from stele.apis.http.access import Place, access
from stele.apis.http.dependencies import VOLATILE
from stele.core.access import Operation
from stele.core.audit_chain import AuditEntry
from stele.errors import StoreError
from stele.service.refusals import read_refusals
from stele.ui.pages import Page, PageRequest

_ROWS: Final = 100


class RefusedRequest(msgspec.Struct, frozen=True):
    """A refused request: status is that of its answer, operation the missing right, '' for none."""

    at: int
    actor: str
    address: str
    method: str
    path: str
    status: int
    error: str
    operation: str
    resource: str


class RefusalsPage(msgspec.Struct, frozen=True):
    """Refused requests, newest first.

    is_kept      whether this server keeps a file of the audit trail
    text         part of a caller, subject, address or path that is searched for
    is_complete  whether there are no older ones
    """

    is_kept: bool
    text: str
    rows: Sequence[RefusedRequest] = ()
    is_complete: bool = True


async def view_refusals(page: PageRequest) -> RefusalsPage:
    """Show who was refused what, and which right was missing."""
    text = page.get_query("text").strip()
    if not page.options.audit_file:
        return RefusalsPage(is_kept=False, text=text)
    try:
        found = await to_thread(read_refusals, Path(page.options.audit_file), text, _ROWS)
    except OSError as error:
        raise StoreError(f"the file of the audit trail cannot be read: {error.strerror}") from error
    return RefusalsPage(True, text, [_describe(entry) for entry in found.entries], found.is_complete)


def _describe(entry: AuditEntry) -> RefusedRequest:
    said = entry.details
    return RefusedRequest(
        at=entry.at,
        actor=entry.actor,
        address=entry.address,
        method=str(said.get("method") or ""),
        path=str(said.get("path") or ""),
        status=int(said.get("status") or 0),
        error=str(said.get("error") or ""),
        operation=str(said.get("operation") or ""),
        resource=" ".join(str(said[name]) for name in ("resource_type", "resource") if said.get(name)),
    )


def list_pages() -> list[Page]:
    """Return the pages of this module."""
    right = access(Operation.READ_AUDIT, Place.REGISTRY) | {VOLATILE: True}
    return [Page("/ui/refusals", view_refusals, "refusals.html.j2", right, menu="/refusals")]
