"""Refusals: registrations against the policy and requests without the right, newest first."""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import Sequence
from typing import Final

import msgspec

from stele.apis.http.access import Place, access
from stele.apis.http.dependencies import VOLATILE
from stele.core.access import Operation
from stele.service.refusals import KINDS, RefusalEntry, read_refusals
from stele.ui.pages import Page, PageRequest

_ROWS: Final = 100


class RefusalsPage(msgspec.Struct, frozen=True):
    """Refusals, newest first.

    is_durable   whether the rows come from a file of the audit trail; else they are those since this process started
    text         searched part of a caller, subject, address, path or digest
    kind         kind of the refusals that are shown; '' is any, and kinds lists all
    is_complete  whether there are no older refusals
    """

    is_durable: bool
    text: str
    kind: str
    kinds: Sequence[str]
    rows: Sequence[RefusalEntry]
    is_complete: bool


async def view_refusals(page: PageRequest) -> RefusalsPage:
    """Show the refusals: the caller, the request, and the rule of the policy or the missing right."""
    text, kind = page.get_query("text").strip(), page.get_query("kind")
    refusal_page = await to_thread(read_refusals, page.registry.audit, text, kind, _ROWS)
    return RefusalsPage(refusal_page.is_durable, text, kind, KINDS, refusal_page.refusals, refusal_page.is_complete)


def list_pages() -> list[Page]:
    """Return the pages of this module."""
    right = access(Operation.READ_AUDIT, Place.REGISTRY) | {VOLATILE: True}
    return [Page("/ui/refusals", view_refusals, "refusals.html.j2", right, menu="/refusals")]
