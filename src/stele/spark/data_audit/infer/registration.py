"""An inferred schema offered to a registry: asked about first, registered when nothing is against it."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final, cast

import msgspec

from stele.client import Metadata, ResolvedSchema, Schema, SchemaRegistryClient, SchemaSnapshot
from stele.client.serdes.schemas import parse_schema
from stele.errors import Incompatible, Invalid, NotFound
from stele.formats.capabilities import ANNOTATIONS, HasOutline
from stele.spark.data_audit.infer.proposal import ProposedField
from stele.spark.registry.clients import RegistryLike, as_picklable, get_client, retry_unavailable

PREFIX: Final = "stele.inferred"
"""Of the properties of a schema's metadata: `stele.inferred.records`, `stele.inferred.field.place.city` …"""
MOST_NOTES: Final = 200
_LONGEST: Final = 300
"""Characters of a property."""


class SchemaOffer(msgspec.Struct, frozen=True):
    """What became of it.

    version, id  of the version that has the schema; 0 where it was refused
    there        whether the newest version was that schema already, but for what it tells people
    against      why the subject's policy refuses it
    """

    subject: str
    version: int = 0
    id: int = 0
    there: bool = False
    against: tuple[str, ...] = ()

    @property
    def is_registered(self) -> bool:
        """Whether the subject has the schema."""
        return self.version > 0


def offer_schema(
    registry: RegistryLike, subject: str, schema: ResolvedSchema, notes: Metadata, *, patience: float
) -> SchemaOffer:
    """Register a schema with its notes, unless the newest version says the same or the policy refuses it.

    Raises `Invalid` for a snapshot, `MalformedSchema`, `ReadOnly`, `RegistryUnreachable`.
    """
    if isinstance(registry, SchemaSnapshot):
        raise Invalid("a schema is registered in a registry, a snapshot of one takes nothing")
    address = as_picklable(registry)
    assert not isinstance(address, SchemaSnapshot)
    client = cast("SchemaRegistryClient", get_client(address))
    return retry_unavailable(lambda: _try_offer(client, subject, schema, notes), patience)


def _try_offer(client: SchemaRegistryClient, subject: str, schema: ResolvedSchema, notes: Metadata) -> SchemaOffer:
    with suppress(NotFound):
        newest = client.resolve_version(subject)
        if (
            newest.schema_type == schema.schema_type
            and _comparable_outline(newest) == _comparable_outline(schema) is not None
        ):
            return SchemaOffer(subject, newest.version, newest.id, there=True)
    wanted = Schema(schema.text, schema.schema_type, metadata=notes)
    asked = client.check_compatibility(subject, wanted)
    if not asked.is_compatible:
        return SchemaOffer(
            subject, against=tuple(asked.messages or ()) or ("it is not compatible with earlier versions",)
        )
    try:
        made = client.register(subject, wanted)
    except Incompatible as refusal:  # somebody registered another version meanwhile
        return SchemaOffer(subject, against=(str(refusal),))
    number = made.version or client.lookup(subject, wanted).version
    return SchemaOffer(subject, number, made.id)


def _comparable_outline(schema: ResolvedSchema) -> list[Any] | None:
    """What a schema declares but for what only speaks to people; None for formats that cannot tell."""
    parsed = parse_schema(schema)
    if not isinstance(parsed.format, HasOutline):
        return None
    return [
        (node.path, node.kind, {key: value for key, value in node.attributes.items() if key not in ANNOTATIONS})
        for node in parsed.format.outline(parsed.parsed)
    ]


def make_notes(fields: tuple[ProposedField, ...], records: int, confidence: float) -> Metadata:
    """The notes as properties of a schema, of many fields the least sure ones."""
    properties = {f"{PREFIX}.records": str(records), f"{PREFIX}.confidence": str(confidence)}
    for field in sorted(fields, key=lambda it: it.confidence)[:MOST_NOTES]:
        note = f"{field.confidence}: {field.note}"
        properties[f"{PREFIX}.field.{field.path}"] = note if len(note) <= _LONGEST else f"{note[: _LONGEST - 1]}…"
    return Metadata(properties=properties)
