"""What a census found, told to the registry: it warns whoever deletes a version whose records were seen."""

from __future__ import annotations

import time
from datetime import datetime
from typing import cast

from stele.client import CensusRecord, LocationUsage, SchemaRegistryClient, SchemaSnapshot, VersionUsage
from stele.client.names import split_subject
from stele.errors import Invalid
from stele.spark.data_audit.census import Census, IdUsage
from stele.spark.registry.clients import PATIENCE, RegistryLike, as_picklable, get_client, retry_unavailable


def record_usage(
    found: Census, place: str, registry: RegistryLike, *, whole: bool = True, patience: float = PATIENCE
) -> LocationUsage:
    """Record a census in the registry it asked, in place of the last one of the same place.

    place   what was counted, in words for people: `topic orders`, `table shop.orders`, a path
    whole   whether all of it was counted, not a part or a sample

    Ids that are registered in several subjects are recorded for each, unless the census was told whose they are. Ids
    the registry does not know are left out. Raises `Invalid` for a snapshot, which nobody can tell anything, `NotFound`
    for a registry that keeps no censuses, `InvalidName`, `TooLarge`, `RegistryUnreachable`.
    """
    if isinstance(registry, SchemaSnapshot):
        raise Invalid("a census is recorded in a registry, a snapshot of one takes nothing")
    asked = as_picklable(registry)
    assert not isinstance(asked, SchemaSnapshot)
    census = make_census_record(found, counted_at=time.time_ns() // 1_000_000, whole=whole)
    # what answers for the registry on the driver is a whole client, not only what tasks ask of it
    client = cast("SchemaRegistryClient", get_client(asked))
    return retry_unavailable(lambda: client.record_usage(place, census), patience)


def make_census_record(found: Census, *, counted_at: int, whole: bool = True) -> CensusRecord:
    """A census as the registry keeps it; counted_at is in milliseconds since 1970 UTC."""
    rows = tuple(row for seen in found.ids if seen.schema_id for row in _usage_rows(seen))
    return CensusRecord(counted_at, whole, found.records, rows)


def _usage_rows(seen: IdUsage) -> list[VersionUsage]:
    made = []
    for at in seen.versions:
        context, subject = split_subject(at.subject)
        made.append(
            VersionUsage(
                subject,
                at.version,
                seen.schema_id,
                seen.records,
                namespace=context,
                bytes=seen.bytes,
                first_seen=_to_millis(seen.first),
                last_seen=_to_millis(seen.last),
            )
        )
    return made


def _to_millis(text: str) -> int | None:
    """RFC 3339 as milliseconds since 1970 UTC; times before have no place there."""
    return max(0, int(datetime.fromisoformat(text).timestamp() * 1000)) if text else None
