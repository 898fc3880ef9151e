"""The journal of the registry, page by page, and registered texts by their SHA-256. Other systems follow this feed."""

from __future__ import annotations

from typing import Annotated, Final

from litestar import get
from litestar.params import QueryParameter

from stele.apis.http.access import Place, access
from stele.apis.http.requests import parse_whole_number
from stele.apis.native.errors import ERRORS
from stele.apis.native.params import InjectedRegistry
from stele.core.access import Operation
from stele.errors import InvalidRequest
from stele.service import journal as service
from stele.service.journal import MOST_RECORDS, MOST_TEXTS, JournalPage, TextsAnswer

_LAST = 2**63 - 1
_USUAL = "100"
_REFUSED = {number: ERRORS[number] for number in (400, 422)}

After = Annotated[
    str,
    QueryParameter(schema_extra={"type": "integer", "minimum": 0, "maximum": _LAST}, description="0: from the start"),
]
Limit = Annotated[
    str,
    QueryParameter(
        schema_extra={"type": "integer", "minimum": 0, "maximum": MOST_RECORDS},
        description="most records of the journal to read; 0 returns only its end",
    ),
]
InNamespace = Annotated[
    str | None,
    QueryParameter(name="namespace", description="only changes of this namespace; '' is the default namespace"),
]
OfSubject = Annotated[str | None, QueryParameter(name="subject", description="only changes of subjects with this name")]
Digests = Annotated[
    list[str] | None,
    QueryParameter(
        name="sha256",
        schema_extra={"items": {"type": "string", "pattern": "^[0-9a-f]{64}$"}, "maxItems": MOST_TEXTS},
        description="SHA-256 of a text in hexadecimal; several times for several texts",
    ),
]


@get("/api/journal", responses=_REFUSED, opt=access(Operation.READ, Place.LIST))
async def read_journal(
    registry: InjectedRegistry,
    after: After = "0",
    limit: Limit = _USUAL,
    namespace: InNamespace = None,
    subject: OfSubject = None,
) -> JournalPage:
    # GET /api/journal?after&limit&namespace&subject
    """Show the changes after a sequence number, oldest first: who changed what, when, and through which API."""
    records = parse_whole_number("limit", limit, 0, MOST_RECORDS)
    return await service.read_page(registry, parse_whole_number("after", after, 0, _LAST), records, namespace, subject)


@get("/api/texts", responses=_REFUSED, opt=access(Operation.READ, Place.LIST))
async def read_texts(registry: InjectedRegistry, digests: Digests = None) -> TextsAnswer:
    # GET /api/texts?sha256
    """Show registered texts by their SHA-256, as the journal names them; purged texts are left out."""
    hashes = digests or []
    if len(hashes) > MOST_TEXTS:
        raise InvalidRequest(f"at most {MOST_TEXTS} texts at once")
    return await service.read_texts(registry, [_parse_digest(text) for text in hashes])


def _parse_digest(text: str) -> bytes:
    try:
        sha = bytes.fromhex(text)
    except ValueError:
        sha = b""
    if len(sha) != 32:
        raise InvalidRequest("sha256 must be 64 hexadecimal digits")
    return sha


ROUTES: Final = (
    read_journal,
    read_texts,
)
"""Endpoints of the journal."""
