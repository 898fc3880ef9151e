"""Calls about the journal of a Stele registry: its entries, the schema texts they name, and changes as events.

They are written like those of `endpoints`. Other registries have no journal and answer "not found".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from stele.client.request import CachePolicy, Request, Workflow, build_query, json_decoder
from stele.protocol.cncf import CloudEvent

MOST_TEXTS = 100
"""Most texts in one request."""


class JournalEntry(msgspec.Struct, frozen=True):
    """One change. Record `seq` of the journal holds one or more changes; `part` counts them from 0.

    at         milliseconds since 1970 UTC
    actor      user who requested the change, '' when there is none
    via        the API through which the change came
    kind       what happened: `registered`, `soft_deleted`, `purged`, `subject_created`, `settings_changed` …
    namespace  '' is the default one; None for a change of the whole registry
    schema_id  id of the schema in its namespace
    details    further facts, depending on `kind`
    """

    seq: int
    part: int = 0
    at: int = 0
    actor: str = ""
    via: str = ""
    kind: str = ""
    namespace: str | None = None
    subject: str | None = None
    version: int | None = None
    schema_id: int | None = None
    details: dict[str, Any] = {}


class JournalPage(msgspec.Struct, frozen=True):
    """Changes in order, one page.

    `next` is the number of the last record that was scanned, `end` that of the last record of the journal. Request
    further pages until the two are equal.
    """

    entries: tuple[JournalEntry, ...]
    next: int
    end: int


class EventPage(msgspec.Struct, frozen=True):
    """Events in order. `next` is the position for the next request."""

    events: tuple[CloudEvent, ...]
    next: str


class _Text(msgspec.Struct, frozen=True):
    sha256: str
    text: str | None = None
    base64: bytes | None = None


class _Texts(msgspec.Struct, frozen=True):
    texts: tuple[_Text, ...] = ()
    omitted: tuple[str, ...] = ()


_page = json_decoder(JournalPage)
_texts = json_decoder(_Texts)
_events = json_decoder(EventPage)


def journal(
    after: int = 0, *, limit: int = 1000, namespace: str | None = None, subject: str | None = None
) -> Request[JournalPage]:
    # GET /api/journal?after&limit&namespace&subject
    """Return the changes after a sequence number.

    `limit` counts scanned records; 0 only returns where the journal ends. `namespace` ('' is the default one) and
    `subject` select changes. Everything durable before the call is in the journal.
    """
    parameters = build_query({"after": after, "limit": limit, "namespace": namespace, "subject": subject})
    return Request("GET", "/api/journal", _page, parameters, subject=subject or "")


def events(
    after: str = "0", *, wait: int = 0, limit: int = 100, types: Sequence[str] = (), subject: str = ""
) -> Request[EventPage]:
    # GET /api/events?after&wait&limit&type&subject
    """Return the creations, changes and deletions after a position, as CloudEvents without data.

    Args:
        after: Position: `next` of the page before, the id of an event, or the number of a record; `0` is the start.
        wait: Seconds to wait for an event when there is none yet; the client's timeout must be longer.
        limit: Most records of the log to scan.
        types: Types of events to return; empty: all.
        subject: Prefix of the path of the changed object: `/schemagroups/default/schemas/orders`.
    """
    query = build_query({"after": after, "wait": wait, "limit": limit, "subject": subject or None})
    parameters = "&".join([query, *(build_query({"type": name}) for name in types)])
    return Request("GET", "/api/events", _events, parameters, cache_policy=CachePolicy.NEVER)


def schema_texts(digests: Iterable[str]) -> Workflow[dict[str, bytes]]:
    # GET /api/texts?sha256
    """Registered texts by their SHA-256 in hexadecimal. Purged texts are left out."""
    texts: dict[str, bytes] = {}
    left = list(dict.fromkeys(digests))
    while left:
        answer = yield _some_texts(left[:MOST_TEXTS])
        texts |= {row.sha256: row.base64 or (row.text or "").encode() for row in answer.texts}
        left = [*answer.omitted, *left[MOST_TEXTS:]]
    return texts


def _some_texts(digests: Sequence[str]) -> Request[_Texts]:
    parameters = "&".join(build_query({"sha256": digest}) for digest in digests)
    return Request("GET", "/api/texts", _texts, parameters, cache_policy=CachePolicy.NEVER)
