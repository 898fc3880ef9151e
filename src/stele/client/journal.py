"""Calls about the journal of a Stele registry: what changed, the texts it names, and changes as events.

See `endpoints` for how they are written. Other registries have no journal: they answer "not found".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from stele.client.request import CachePolicy, Request, Workflow, build_query, json_decoder
from stele.protocol.cncf import CloudEvent

MOST_TEXTS = 100
"""Texts one request may ask for."""


class JournalEntry(msgspec.Struct, frozen=True):
    """One change. The record `seq` of the journal has one or more, counted from 0 by `part`.

    at       milliseconds since 1970 UTC
    actor    who asked for it, '' for nobody in particular
    via      the API it came through
    kind     what happened: `registered`, `soft_deleted`, `purged`, `subject_created`, `settings_changed` …
    namespace    '' is the default one; None where the change is one of the whole registry
    schema_id      id of the schema in its namespace
    details  what else there is to say, by kind
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
    """Changes in order. next is the last record looked through, end the last one there is: go on until they meet."""

    entries: tuple[JournalEntry, ...]
    next: int
    end: int


class EventPage(msgspec.Struct, frozen=True):
    """Events in order; next is the position to ask for next."""

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
    """What changed behind a sequence number; limit counts records looked through, 0 only asks where the journal ends.

    namespace ('' is the default one) and subject choose changes. Everything durable before the call is in the journal.
    """
    parameters = build_query({"after": after, "limit": limit, "namespace": namespace, "subject": subject})
    return Request("GET", "/api/journal", _page, parameters, subject=subject or "")


def events(
    after: str = "0", *, wait: int = 0, limit: int = 100, types: Sequence[str] = (), subject: str = ""
) -> Request[EventPage]:
    # GET /api/events?after&wait&limit&type&subject
    """What was created, changed or deleted behind a position, as CloudEvents without data.

    Args:
        after: Position: `next` of the page before, the id of an event, or the number of a record; `0` is the start.
        wait: Seconds to wait for an event where there is none yet; the client's timeout must be longer.
        limit: Records of the log that are looked through, at most.
        types: Types of events to choose; empty: all.
        subject: How the path of what was changed begins: `/schemagroups/default/schemas/orders`.
    """
    query = build_query({"after": after, "wait": wait, "limit": limit, "subject": subject or None})
    parameters = "&".join([query, *(build_query({"type": name}) for name in types)])
    return Request("GET", "/api/events", _events, parameters, cache_policy=CachePolicy.NEVER)


def schema_texts(digests: Iterable[str]) -> Workflow[dict[str, bytes]]:
    # GET /api/texts?sha256
    """Registered texts by their SHA-256 in hexadecimal; what was purged is left out."""
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
