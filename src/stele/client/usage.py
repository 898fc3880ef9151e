"""Calls about the results of censuses, and about the effects of deletions, of a Stele registry.

They are written like those of `endpoints`. Other registries do not have these routes and answer "not found".
"""

from __future__ import annotations

import msgspec

from stele.client.request import JSON, Effect, Request, Workflow, build_path, build_query, encode_body, json_decoder

MOST_PLACES = 100
"""Most places in one answer."""


class VersionUsage(msgspec.Struct, frozen=True):
    """The records of one version at a place.

    namespace    of the subject, '' for the default one
    schema_id    id of the version's schema in its namespace
    bytes        size of the records with their frames
    first_seen, last_seen   when the oldest and the newest were written, milliseconds since 1970 UTC; None: not known
    """

    subject: str
    version: int
    schema_id: int
    records: int
    namespace: str = ""
    bytes: int = 0
    first_seen: int | None = None
    last_seen: int | None = None


class CensusRecord(msgspec.Struct, frozen=True):
    """Result of one census at a place.

    counted_at   time of the census, milliseconds since 1970 UTC
    whole        whether it counted the whole place, not a part or a sample of it
    records      number of records that it counted
    """

    counted_at: int
    whole: bool = True
    records: int = 0
    seen: tuple[VersionUsage, ...] = ()


class LocationUsage(CensusRecord, frozen=True, kw_only=True):
    """A place and its last census."""

    place: str


class DeletionWarning(msgspec.Struct, frozen=True):
    """A version that a deletion would delete, and a place where a census found its records. `message` is the text."""

    place: str
    subject: str
    version: int
    records: int
    counted_at: int
    message: str
    whole: bool = True
    last_seen: int | None = None


class DeletionPreview(msgspec.Struct, frozen=True):
    """The versions that a deletion would delete, and what is known about their records."""

    versions: tuple[int, ...]
    warnings: tuple[DeletionWarning, ...] = ()


class _Page(msgspec.Struct, frozen=True):
    places: tuple[LocationUsage, ...]
    next: str | None = None


_page = json_decoder(_Page)
_place = json_decoder(LocationUsage)
_outlook = json_decoder(DeletionPreview)


def usage(*, namespace: str | None = None, subject: str | None = None) -> Workflow[list[LocationUsage]]:
    # GET /api/usage?after&limit&namespace&subject
    """Return the last census of every place, by name.

    With a namespace or a subject: only places that hold its records.
    """
    places: list[LocationUsage] = []
    after: str | None = None
    while True:
        parameters = build_query({"after": after, "limit": MOST_PLACES, "namespace": namespace, "subject": subject})
        answer = yield Request("GET", "/api/usage", _page, parameters, subject=subject or "")
        places += answer.places
        if answer.next is None:
            return places
        after = answer.next


def record_usage(place: str, census: CensusRecord) -> Request[LocationUsage]:
    # PUT /api/usage/{place}
    """Record a census of a place. It replaces the previous one. Raises `InvalidName`, `TooLarge`."""
    route = build_path("api", "usage", place)
    return Request("PUT", route, _place, body=encode_body(census), media=JSON, effect=Effect.WRITE)


def forget_usage(place: str) -> Request[LocationUsage]:
    # DELETE /api/usage/{place}
    """Delete the census of a place, and return it. Raises `NotFound`."""
    return Request("DELETE", build_path("api", "usage", place), _place, effect=Effect.DELETE)


def preview_deletion(subject: str, version: int | None = None) -> Request[DeletionPreview]:
    # GET /api/deletions/{subject}?version
    """Return what the deletion of a subject, or of one version of it, would delete, and the records known of it.

    Raises `SubjectNotFound`, `VersionNotFound`.
    """
    parameters = build_query({"version": version})
    return Request("GET", build_path("api", "deletions", subject), _outlook, parameters, subject=subject)
