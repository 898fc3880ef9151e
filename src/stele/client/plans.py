"""Questions that take several requests: a schema together with every document it refers to, and snapshots of many."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from uuid import UUID

from stele.client import calls, settings
from stele.client.names import AssociatedName, qualify, split
from stele.client.request import Plan
from stele.client.snapshot import ResolvedSchema, SchemaSnapshot, between
from stele.client.types import RegisteredSchema, Schema, Version
from stele.errors import InvalidName, NotFound, TooLarge
from stele.protocol.confluent import Association, SchemaReference
from stele.wire.confluent import RecordField

MAX_REFERENCES = 1000
"""DocumentAggregator one schema may draw in; a registry that says more is not followed."""


def resolve(schema: int | UUID, *, context: str = "") -> Plan[ResolvedSchema]:
    # GET /schemas/ids/{id}?subject
    # GET /schemas/guids/{guid}
    """The schema with that id or guid, and all it refers to. context: where the id counts, '' for the default one.

    Raises `ContentNotFound`.
    """
    if isinstance(schema, UUID):
        found = yield calls.schema_by_guid(schema)
    else:
        found = yield calls.schema_by_id(schema, subject=qualify("", context) or None)
    return (yield from _resolved(found, context))


def resolve_version(subject: str, number: Version = "latest") -> Plan[ResolvedSchema]:
    # GET /subjects/{subject}/versions/{version}
    """One version of a subject, by default the newest, and all it refers to."""
    found = yield calls.version(subject, number)
    return (yield from _resolved(found, split(subject).context))


def resolve_metadata(subject: str, properties: Mapping[str, str]) -> Plan[ResolvedSchema]:
    # GET /subjects/{subject}/metadata?key&value
    """The newest version whose metadata has all these properties, and all it refers to. Raises `ContentNotFound`."""
    found = yield calls.latest_with_metadata(subject, properties)
    return (yield from _resolved(found, split(subject).context))


def lineage(subject: str, schema: ResolvedSchema, number: int) -> Plan[list[ResolvedSchema]]:
    # GET /schemas/guids/{guid}/ids
    # GET /schemas/ids/{id}/versions?subject&deleted
    # GET /subjects/{subject}/versions?deleted
    # GET /subjects/{subject}/versions/{version}?deleted
    """The subject's versions from the one that holds the schema to version number, both included.

    Empty when the subject does not hold the schema. Hidden versions count.
    """
    schema_id = schema.id
    context = split(subject).context
    if not schema_id:
        ids = yield calls.ids_of_guid(schema.guid)
        schema_id = next((known.id for known in ids if known.context.strip(".") == context), 0)
    places = (yield calls.versions_of_id(schema_id, subject=subject, deleted=True)) if schema_id else []
    own = [place.version for place in places if qualify(place.subject, context) == subject]
    if not own:
        return []
    found = []
    for version in between((yield calls.versions(subject, deleted=True)), max(own), number):
        registered = yield calls.version(subject, version, deleted=True)
        found.append((yield from _resolved(registered, context)))
    return found


def associated_subject(naming: AssociatedName, topic: str, field: RecordField, record: str = "") -> Plan[str]:
    # GET /associations/resources/{namespace}/{name}?resourceType&associationType
    """The subject a topic's keys or values are associated with, else the one the fallback names.

    A registry that knows no associations has none. Raises `InvalidName` for a topic with several, or with none and no
    fallback.
    """
    if not topic:
        raise InvalidName(topic, "names no subject: the naming strategy needs a topic")
    found: list[Association] = []
    with suppress(NotFound):
        found = yield settings.associations(topic, naming.cluster, types=(field,))
    if not found:
        return naming.otherwise(topic, field, record)
    subjects = sorted({association.subject for association in found})
    if len(subjects) > 1:
        raise InvalidName(topic, f"is associated with several subjects: {', '.join(subjects)}")
    return subjects[0]


def resolve_schema(schema: Schema, *, context: str = "") -> Plan[ResolvedSchema]:
    # GET /subjects/{subject}/versions/{version}
    """A schema at hand, registered or not, and all it refers to."""
    references = yield from _closure(schema.references, context)
    return ResolvedSchema(
        schema.text,
        schema.schema_type,
        references,
        context=context,
        metadata=schema.metadata,
        rule_set=schema.rule_set,
    )


def snapshot(*, subjects: Iterable[str] = (), ids: Iterable[int] = (), context: str = "") -> Plan[SchemaSnapshot]:
    # GET /subjects/{subject}/versions
    # GET /subjects/{subject}/versions/{version}
    # GET /schemas/ids/{id}?subject
    """All live versions of these subjects and the schemas with these ids, and what they refer to, as one source.

    context holds for ids and for subjects which are not qualified.
    """
    pinned = []
    for name in subjects:
        subject = qualify(name, context)
        for number in (yield calls.versions(subject)):
            pinned.append((yield from resolve_version(subject, number)))  # noqa: PERF401 - comprehensions cannot yield
    for schema_id in ids:
        pinned.append((yield from resolve(schema_id, context=context)))  # noqa: PERF401 - comprehensions cannot yield
    return SchemaSnapshot(tuple(pinned))


def _resolved(found: RegisteredSchema, context: str) -> Plan[ResolvedSchema]:
    references = yield from _closure(found.references, context)
    return ResolvedSchema(
        found.text,
        found.schema_type,
        references,
        id=found.id,
        guid=found.guid,
        subject=qualify(found.subject, context) if found.subject else "",
        version=found.version,
        context=context,
        metadata=found.metadata,
        rule_set=found.rule_set,
    )


def _closure(references: Sequence[SchemaReference], context: str) -> Plan[dict[str, str]]:
    """Texts by reference name, dependencies before dependants; the first document of a name wins, as elsewhere.

    Walks with a stack of its own: a chain of references is as deep as a registry likes. References which are not
    qualified count in the context of the schema that holds them.
    """
    texts: dict[str, str] = {}
    seen: set[str] = set()
    stack = [(reference, context, False) for reference in reversed(references)]
    bodies: dict[str, str] = {}
    while stack:
        reference, where, entered = stack.pop()
        if entered:
            texts[reference.name] = bodies.pop(reference.name)
            continue
        if reference.name in seen:
            continue
        seen.add(reference.name)
        if len(seen) > MAX_REFERENCES:
            raise TooLarge(f"a schema refers to more than {MAX_REFERENCES} others")
        subject = qualify(reference.subject, where)
        found = yield calls.version(subject, reference.version, deleted=True)
        bodies[reference.name] = found.text
        stack.append((reference, where, True))
        stack += [(inner, split(subject).context, False) for inner in reversed(found.references)]
    return texts
