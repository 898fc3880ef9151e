"""Calls that take several requests: a schema with every document it refers to, and snapshots of many schemas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from uuid import UUID

from stele.client import endpoints, settings
from stele.client.names import AssociatedName, qualify_subject, split_subject
from stele.client.request import Workflow
from stele.client.snapshot import ResolvedSchema, SchemaSnapshot, versions_between
from stele.client.types import BaselineSchema, ReferenceText, RegisteredSchema, Schema, SchemaComparison, Version
from stele.errors import InvalidName, InvalidRequest, NotFound, TooLarge
from stele.protocol.confluent import Association, SchemaReference
from stele.wire.confluent import RecordField

MAX_REFERENCES = 1000
"""Most documents that one schema may refer to, directly and indirectly."""


def resolve(schema: int | UUID, *, context: str = "") -> Workflow[ResolvedSchema]:
    # GET /schemas/ids/{id}?subject
    # GET /schemas/guids/{guid}
    """Return the schema with that id or guid, and all it refers to.

    `context` is the context of the id; '' is the default one.

    Raises `ContentNotFound`.
    """
    if isinstance(schema, UUID):
        registration = yield endpoints.schema_by_guid(schema)
    else:
        registration = yield endpoints.schema_by_id(schema, subject=qualify_subject("", context) or None)
    return (yield from _resolve_registered(registration, context))


def resolve_version(subject: str, number: Version = "latest") -> Workflow[ResolvedSchema]:
    # GET /subjects/{subject}/versions/{version}
    """Return one version of a subject, by default the newest, and all it refers to."""
    version = yield endpoints.version(subject, number)
    return (yield from _resolve_registered(version, split_subject(subject).context))


def diff(subject: str, old: Version, new: Version = "latest") -> Workflow[SchemaComparison]:
    # GET /subjects/{subject}/versions/{version}
    # POST /api/diff
    """Return what changed between two versions of a subject, and whether each reads the other's data.

    Raises `VersionNotFound`, and `InvalidRequest` for versions of two formats.
    """
    before = yield from resolve_version(subject, old)
    after = yield from resolve_version(subject, new)
    if before.schema_type != after.schema_type:
        raise InvalidRequest(f"version {old} is {before.schema_type}, {new} is {after.schema_type}: not comparable")
    comparison: SchemaComparison = yield settings.diff(
        before.schema_type.lower(), _as_baseline(before), _as_baseline(after)
    )
    return comparison


def _as_baseline(schema: ResolvedSchema) -> BaselineSchema:
    return BaselineSchema(schema.text, tuple(ReferenceText(name, text) for name, text in schema.references.items()))


def resolve_metadata(subject: str, properties: Mapping[str, str]) -> Workflow[ResolvedSchema]:
    # GET /subjects/{subject}/metadata?key&value
    """Return the newest version whose metadata has all these properties, and all it refers to.

    Raises `ContentNotFound`.
    """
    version = yield endpoints.latest_with_metadata(subject, properties)
    return (yield from _resolve_registered(version, split_subject(subject).context))


def lineage(subject: str, schema: ResolvedSchema, number: int) -> Workflow[list[ResolvedSchema]]:
    # GET /schemas/guids/{guid}/ids
    # GET /schemas/ids/{id}/versions?subject&deleted
    # GET /subjects/{subject}/versions?deleted
    # GET /subjects/{subject}/versions/{version}?deleted
    """Return the subject's versions from the one that holds the schema to version number, both included.

    Empty when the subject does not hold the schema. Soft-deleted versions are included.
    """
    schema_id = schema.id
    context = split_subject(subject).context
    if not schema_id:
        ids = yield endpoints.ids_of_guid(schema.guid)
        schema_id = next((known.id for known in ids if known.context.strip(".") == context), 0)
    places = (yield endpoints.versions_of_id(schema_id, subject=subject, deleted=True)) if schema_id else []
    own = [place.version for place in places if qualify_subject(place.subject, context) == subject]
    if not own:
        return []
    schemas = []
    for version in versions_between((yield endpoints.versions(subject, deleted=True)), max(own), number):
        registered = yield endpoints.version(subject, version, deleted=True)
        schemas.append((yield from _resolve_registered(registered, context)))
    return schemas


def associated_subject(naming: AssociatedName, topic: str, field: RecordField, record: str = "") -> Workflow[str]:
    # GET /associations/resources/{namespace}/{name}?resourceType&associationType
    """Return the subject a topic's keys or values are associated with, else the one the fallback names.

    A registry without associations counts as one that has none for the topic. Raises `InvalidName` for a topic with
    several, or with none and no fallback.
    """
    if not topic:
        raise InvalidName(topic, "does not lead to a subject: the naming strategy needs a topic")
    associations: list[Association] = []
    with suppress(NotFound):
        associations = yield settings.associations(topic, naming.cluster, types=(field,))
    if not associations:
        return naming.fallback_subject(topic, field, record)
    subjects = sorted({association.subject for association in associations})
    if len(subjects) > 1:
        raise InvalidName(topic, f"is associated with several subjects: {', '.join(subjects)}")
    return subjects[0]


def resolve_schema(schema: Schema, *, context: str = "") -> Workflow[ResolvedSchema]:
    # GET /subjects/{subject}/versions/{version}
    """Return a schema at hand, registered or not, and all it refers to."""
    references = yield from _resolve_references(schema.references, context)
    return ResolvedSchema(
        schema.text,
        schema.schema_type,
        references,
        context=context,
        metadata=schema.metadata,
        rule_set=schema.rule_set,
    )


def snapshot(*, subjects: Iterable[str] = (), ids: Iterable[int] = (), context: str = "") -> Workflow[SchemaSnapshot]:
    # GET /subjects/{subject}/versions
    # GET /subjects/{subject}/versions/{version}
    # GET /schemas/ids/{id}?subject
    """Return a snapshot of all live versions of these subjects, the schemas with these ids, and what they refer to.

    context applies to ids and to subjects that are not qualified.
    """
    pinned = []
    for name in subjects:
        subject = qualify_subject(name, context)
        for number in (yield endpoints.versions(subject)):
            pinned.append((yield from resolve_version(subject, number)))  # noqa: PERF401 - comprehensions cannot yield
    for schema_id in ids:
        pinned.append((yield from resolve(schema_id, context=context)))  # noqa: PERF401 - comprehensions cannot yield
    return SchemaSnapshot(tuple(pinned))


def _resolve_registered(registered: RegisteredSchema, context: str) -> Workflow[ResolvedSchema]:
    references = yield from _resolve_references(registered.references, context)
    return ResolvedSchema(
        registered.text,
        registered.schema_type,
        references,
        id=registered.id,
        guid=registered.guid,
        subject=qualify_subject(registered.subject, context) if registered.subject else "",
        version=registered.version,
        context=context,
        metadata=registered.metadata,
        rule_set=registered.rule_set,
    )


def _resolve_references(references: Sequence[SchemaReference], context: str) -> Workflow[dict[str, str]]:
    """Return the texts by reference name, dependencies before dependants. The first document with a name wins.

    It walks with an explicit stack, because a chain of references can be of any depth. References that are not
    qualified belong to the context of the schema that holds them.
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
        subject = qualify_subject(reference.subject, where)
        version = yield endpoints.version(subject, reference.version, deleted=True)
        bodies[reference.name] = version.text
        stack.append((reference, where, True))
        stack += [(inner, split_subject(subject).context, False) for inner in reversed(version.references)]
    return texts
