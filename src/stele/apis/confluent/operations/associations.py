"""Associations: requests are validated and turned into bindings, and bindings into responses; and their commands.

An association is the core's binding of a resource to a subject: the namespace is its cluster, the type its role. A
request can register the schema of an association, and delete its subject together with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple
from uuid import uuid4

from msgspec.structs import replace

from stele.apis.confluent import models as api
from stele.apis.confluent.errors import (
    AssociationFrozen,
    AssociationNotFound,
    InvalidAssociation,
    NoActiveVersion,
    RefusedChange,
    ResourceTaken,
    SubjectOwned,
    SubjectTaken,
    TooManyAssociations,
)
from stele.apis.confluent.models import ANY, STRONG, TOPIC, TYPES, WEAK, RegisterSchemaRequest
from stele.apis.confluent.names import parse_subject_key, qualify_subject, require_valid_key
from stele.apis.confluent.operations.schemas import Operations
from stele.apis.confluent.operations.versions import register_schema
from stele.apis.confluent.translate import version_out
from stele.core import queries
from stele.core.access import Operation, subject_resource
from stele.core.commands import ChangeBindings, DeleteMode, DeleteSubject
from stele.core.decide.decision import require_writable
from stele.core.model import Binding, SettingsLevel, SubjectKey, VersionState
from stele.core.state import State
from stele.errors import InUse, InvalidName, PreconditionFailed
from stele.service.retry import Overtaken, retry_when_overtaken

_LONGEST_NAME = 1000
"""Most characters of a name. Kafka limits topics to 249."""


class AssociationRequest(NamedTuple):
    """One association of a request, validated and with its defaults. None leaves a property as it is."""

    subject: SubjectKey
    role: str
    lifecycle: str | None
    frozen: bool | None
    schema: RegisterSchemaRequest | None
    normalize: bool


class ResourceRequest(NamedTuple):
    """A validated request for the associations of one resource."""

    cluster: str
    resource: str
    resource_id: str
    rows: tuple[AssociationRequest, ...]

    def new_binding(self, wish: AssociationRequest) -> Binding:
        """Return the binding of a requested association as it is created if none exists."""
        lifecycle = wish.lifecycle or (STRONG if wish.schema is not None or wish.frozen else WEAK)
        return Binding(
            cluster=self.cluster,
            resource_type=TOPIC,
            resource=self.resource,
            role=wish.role,
            subject=wish.subject,
            lifecycle=lifecycle,
            frozen=bool(wish.frozen),
            resource_id=self.resource_id,
        )


# --- requests -------------------------------------------------------------------------------------------------------


def parse_request(request: api.AssociationCreateOrUpdateRequest, context: str, *, dry_run: bool) -> ResourceRequest:
    """Return a validated request with its defaults. Raises `InvalidAssociation`, `InvalidName`."""
    resource = _require_name("resourceName", request.resource_name)
    cluster = _require_name("resourceNamespace", request.resource_namespace)
    if ":" in cluster:
        raise InvalidAssociation("resourceNamespace", "must not contain a colon")
    resource_id = request.resource_id or ""
    if resource_id or not dry_run:
        _require_name("resourceId", resource_id)
    if (request.resource_type or TOPIC) != TOPIC:
        raise InvalidAssociation("resourceType", f"must be '{TOPIC}'")
    if not request.associations:
        raise InvalidAssociation("associations", "cannot be null or empty")
    rows = tuple(_parse_association(info, cluster, resource, context) for info in request.associations)
    if len({row.role for row in rows}) < len(rows):
        raise InvalidAssociation("associationType", "must be unique within the request")
    if len({row.frozen for row in rows if row.frozen is not None}) > 1:
        raise InvalidAssociation("frozen", "all associations for a resource must be consistently frozen or non-frozen")
    return ResourceRequest(cluster, resource, resource_id, rows)


def _parse_association(
    info: api.AssociationCreateOrUpdateInfo, cluster: str, resource: str, context: str
) -> AssociationRequest:
    role = parse_association_type(info.association_type)
    if info.lifecycle not in (None, STRONG, WEAK):
        raise InvalidAssociation("lifecycle", f"must be either '{STRONG}' or '{WEAK}'")
    usual = SubjectKey(cluster, f"{resource}-{role}")
    subject = usual if info.subject is None else parse_subject_key(info.subject, context)
    if not subject.name:
        raise InvalidAssociation("subject", "cannot be null or empty")
    try:
        require_valid_key(subject)
    except InvalidName:
        raise InvalidAssociation("subject", "is not a valid subject") from None
    if info.frozen and subject != usual:
        raise InvalidAssociation("subject", f"frozen associations must use subject '{qualify_subject(usual)}'")
    if info.lifecycle == WEAK and info.schema is not None:
        raise InvalidAssociation("lifecycle", "cannot be WEAK when schema is provided")
    if info.lifecycle == WEAK and info.frozen:
        raise InvalidAssociation("frozen", "association with lifecycle of WEAK cannot be frozen")
    return AssociationRequest(subject, role, info.lifecycle, info.frozen, info.schema, bool(info.normalize))


def parse_association_type(text: str | None) -> str:
    """Return the type of an association, `value` if none is given. Raises `InvalidAssociation`."""
    if (text or TYPES[1]) not in TYPES:
        raise InvalidAssociation("associationType", "must be either 'key' or 'value'")
    return text or TYPES[1]


def _require_name(name: str, value: str | None) -> str:
    if not value:
        raise InvalidAssociation(name, "cannot be null or empty")
    if len(value) > _LONGEST_NAME:
        raise InvalidAssociation(name, f"must not be longer than {_LONGEST_NAME} characters")
    if any(char < " " or "\x7f" <= char < "\xa0" for char in value):
        raise InvalidAssociation(name, "must not contain control characters")
    return value


# --- what a request makes -------------------------------------------------------------------------------------------


def decide_bindings(
    state: State, wishes: ResourceRequest, registered: Iterable[SubjectKey], *, create: bool
) -> tuple[Binding, ...]:
    """Return the bindings that a request creates or changes, in its order.

    registered are subjects that get a version by the same request. create refuses to change existing bindings. Raises
    `NoActiveVersion`, `ResourceTaken`, `SubjectTaken`, `SubjectOwned`, `AssociationFrozen`, `InvalidAssociation`.
    """
    coming = set(registered)
    for wish in wishes.rows:
        if wish.subject not in coming and queries.latest_version(state.find_subject(wish.subject)) is None:
            raise NoActiveVersion(qualify_subject(wish.subject))
    bindings = tuple(_decide_binding(state, wishes, wish, create=create) for wish in wishes.rows)
    roles = {binding.role for binding in bindings}
    rest = [row for row in bindings_of_resource(state, wishes) if row.role not in roles]
    if len({row.frozen for row in (*bindings, *rest)}) > 1:
        raise InvalidAssociation("frozen", "all associations for a resource must be consistently frozen or non-frozen")
    for position, binding in enumerate(bindings):
        _require_free(state, binding, bindings[:position])
    return bindings


def bindings_of_resource(state: State, wishes: ResourceRequest) -> list[Binding]:
    """Return the bindings of the resource of a request, found by its id or its name."""
    known = (state.bindings.get((wishes.cluster, TOPIC, wishes.resource, role)) for role in TYPES)
    by_id = find_by_resource_id(state, wishes.resource_id, TOPIC) if wishes.resource_id else []
    return list({row.key: row for row in (*filter(None, known), *by_id)}.values())


def _decide_binding(state: State, wishes: ResourceRequest, wish: AssociationRequest, *, create: bool) -> Binding:
    fresh = wishes.new_binding(wish)
    known = next((row for row in bindings_of_resource(state, wishes) if row.role == wish.role), None)
    if known is None:
        return fresh
    resource = wishes.resource_id or wishes.resource
    if known.key != fresh.key or (wishes.resource_id and known.resource_id != wishes.resource_id):
        raise ResourceTaken(wish.role, resource)
    changed = replace(
        known,
        lifecycle=wish.lifecycle or known.lifecycle,
        frozen=known.frozen if wish.frozen is None else wish.frozen,
    )
    if changed == known and wish.subject == known.subject:
        return known
    if create:
        raise ResourceTaken(wish.role, resource)
    if wish.subject != known.subject:
        raise InvalidAssociation("subject", "subject of association cannot be changed")
    if known.frozen:
        raise AssociationFrozen(wish.role, qualify_subject(known.subject))
    if changed.frozen and known.lifecycle == WEAK:
        raise InvalidAssociation("frozen", "association with lifecycle of WEAK cannot be frozen")
    return changed


def _require_free(state: State, binding: Binding, others: Iterable[Binding]) -> None:
    """Raise `SubjectTaken` or `SubjectOwned` if other bindings of the subject rule out this one."""
    there = [row for row in queries.bindings_of(state, [binding.subject]) if row.key != binding.key]
    there += [row for row in others if row.subject == binding.subject]
    if there and binding.lifecycle == STRONG:
        raise SubjectTaken(qualify_subject(binding.subject))
    if any(row.lifecycle == STRONG for row in there):
        raise SubjectOwned(qualify_subject(binding.subject))


# --- finding --------------------------------------------------------------------------------------------------------


class AssociationFilter(NamedTuple):
    """Associations that a list shows: of one resource type; of these types and lifecycles, or of any if empty."""

    resource_type: str = TOPIC
    roles: tuple[str, ...] = ()
    lifecycles: tuple[str, ...] = ()

    def matches_binding(self, binding: Binding) -> bool:
        """Return whether a binding passes the filter."""
        return (
            binding.resource_type == self.resource_type
            and (not self.roles or binding.role in self.roles)
            and (not self.lifecycles or binding.lifecycle in self.lifecycles)
        )


def find_by_resource_id(state: State, resource_id: str, resource_type: str) -> list[Binding]:
    """Return the bindings of the resource with an id."""
    return sorted(queries.bindings_of_resource(state, resource_type, resource_id), key=lambda row: row.key)


def find_by_name(state: State, cluster: str, resource: str) -> list[Binding]:
    """Return the bindings of the resource with a name; `-` matches every cluster or every name."""
    if ANY not in (cluster, resource):
        candidates = (state.bindings.get((cluster, TOPIC, resource, role)) for role in TYPES)
        return [row for row in candidates if row is not None]
    return [row for row in state.bindings.values() if cluster in (ANY, row.cluster) and resource in (ANY, row.resource)]


def list_out(bindings: Iterable[Binding], wanted: AssociationFilter) -> list[api.Association]:
    """Return the associations that pass a filter, sorted by namespace, name and type."""
    return [association_out(row) for row in sorted(bindings, key=lambda row: row.key) if wanted.matches_binding(row)]


def info_out(binding: Binding) -> api.AssociationInfo:
    """Return an association as a response about its resource shows it."""
    return api.AssociationInfo(qualify_subject(binding.subject), binding.role, binding.lifecycle, binding.frozen)


def association_out(binding: Binding) -> api.Association:
    """Return an association as lists show it."""
    return api.Association(
        subject=qualify_subject(binding.subject),
        guid=binding.guid,
        resource_name=binding.resource,
        resource_namespace=binding.cluster,
        resource_id=binding.resource_id,
        resource_type=binding.resource_type,
        association_type=binding.role,
        lifecycle=binding.lifecycle,
        frozen=binding.frozen,
    )


async def make_associations(
    operations: Operations, wishes: ResourceRequest, *, create: bool, dry_run: bool
) -> api.AssociationResponse:
    """Create or change the associations of a resource; a dry run writes nothing.

    Raises what `associations.decide_bindings` and `register_schema` raise, and `TooManyAssociations`.
    """
    versions: dict[str, api.SubjectVersionBody] = {}
    for wish in wishes.rows:
        resource = subject_resource(wish.subject)
        operations.registry.access.require(Operation.BIND, resource)
        if wish.schema is not None:
            operations.registry.access.require(Operation.REGISTER, resource)

    async def attempt(state: State) -> api.AssociationResponse:
        coming = [wish.subject for wish in wishes.rows if wish.schema is not None]
        bindings = decide_bindings(state, wishes, coming, create=create)
        fresh = [row for row in bindings if row.key not in state.bindings]
        if fresh and len(state.bindings) + len(fresh) > operations.registry.limits.associations:
            raise TooManyAssociations(operations.registry.limits.associations)
        for wish, binding in zip(wishes.rows, bindings, strict=True):
            if wish.schema is not None:
                if binding.lifecycle == WEAK:
                    raise InvalidAssociation("lifecycle", "cannot be WEAK when schema is provided")
                if create and binding.key in state.bindings:
                    await _require_registered(operations, state, wish, wishes)
        expected_bindings = queries.bindings_around(state, bindings)
        for wish in wishes.rows:
            await _register_schema(operations, wish, versions, dry_run=dry_run)
        with_guids = tuple(row if row.guid else replace(row, guid=str(uuid4())) for row in bindings)
        if not dry_run:
            try:
                await operations.execute(ChangeBindings(with_guids, expected=expected_bindings))
            except PreconditionFailed:
                raise Overtaken from None
        return _response_out(wishes, with_guids, versions)

    return await retry_when_overtaken(operations.registry, attempt, conflicts=())


async def _require_registered(
    operations: Operations, state: State, wish: AssociationRequest, wishes: ResourceRequest
) -> None:
    """Raise `ResourceTaken` if a request creates an existing association with a schema that is not registered."""
    assert wish.schema is not None
    draft = await operations.parse_draft(state, wish.subject, wish.schema, normalize=wish.normalize)
    if await operations.find_equivalent(state, wish.subject, draft, deleted=False) is None:
        raise ResourceTaken(wish.role, wishes.resource_id or wishes.resource)


async def _register_schema(
    operations: Operations, wish: AssociationRequest, versions: dict[str, api.SubjectVersionBody], *, dry_run: bool
) -> None:
    """Register the schema of an association; a dry run only checks whether it could be registered."""
    if wish.schema is None:
        return
    if dry_run:
        await _check_schema(operations, wish)
        return
    versions[wish.role] = await register_schema(
        operations,
        wish.subject,
        wish.schema,
        lambda state, version: version_out(state, version, operations.rendering_options()),
        normalize=wish.normalize,
        force=False,
    )


async def _check_schema(operations: Operations, wish: AssociationRequest) -> None:
    assert wish.schema is not None
    require_writable(await operations.registry.fresh_state(), SettingsLevel(*wish.subject))
    words = await operations.check_compatibility(wish.subject, wish.schema, None, normalize=wish.normalize)
    if words:
        raise RefusedChange(qualify_subject(wish.subject), (), words)


def _response_out(
    wishes: ResourceRequest, bindings: tuple[Binding, ...], versions: dict[str, api.SubjectVersionBody]
) -> api.AssociationResponse:
    infos = [replace(info_out(row), schema=versions.get(row.role)) for row in bindings]
    return api.AssociationResponse(wishes.resource, wishes.cluster, wishes.resource_id, TOPIC, infos)


# --- ending ---------------------------------------------------------------------------------------------------------


async def end_associations(
    operations: Operations, resource_id: str, wanted: AssociationFilter, *, cascade: bool, dry_run: bool
) -> None:
    """Delete associations of a resource. With cascade, the subjects of STRONG ones are deleted permanently.

    Raises `AssociationNotFound`, `AssociationFrozen`, `InUse`, and what the deletion raises.
    """
    access = operations.registry.access

    async def attempt(state: State) -> None:
        bindings = find_by_resource_id(state, resource_id, wanted.resource_type)
        rows = [row for row in bindings if wanted.matches_binding(row) and access.can_read(row.subject)]
        if not rows:
            raise AssociationNotFound(resource_id)
        for row in rows:
            access.require(Operation.BIND, subject_resource(row.subject))
        for row in rows:
            if row.frozen and not cascade:
                raise AssociationFrozen(row.role, qualify_subject(row.subject))
            require_writable(state, SettingsLevel(*row.subject))
        owned = [row.subject for row in rows if cascade and row.lifecycle == STRONG]
        for subject in owned:
            _require_unreferenced(state, subject)
        if dry_run:
            return
        for subject in owned:
            await _hard_delete_subject(operations, state, subject)
        left = [row for row in rows if row.subject not in owned]
        if left:
            expected_bindings = queries.bindings_around(state, left)
            await operations.execute(ChangeBindings((), tuple(row.key for row in left), expected_bindings))

    await retry_when_overtaken(operations.registry, attempt)


async def _hard_delete_subject(operations: Operations, state: State, subject: SubjectKey) -> None:
    """Delete a subject permanently, together with its bindings."""
    bindings = queries.bindings_of(state, [subject])
    rows = queries.list_versions(state.find_subject(subject), queries.ACTIVE_OR_SOFT_DELETED)
    if any(row.state is VersionState.ACTIVE for row in rows):
        await operations.execute(DeleteSubject(subject, DeleteMode.SOFT, bindings))
    if rows:
        await operations.execute(DeleteSubject(subject, DeleteMode.HARD, bindings))


def _require_unreferenced(state: State, subject: SubjectKey) -> None:
    for row in queries.list_versions(state.find_subject(subject), queries.ACTIVE_OR_SOFT_DELETED):
        for other in queries.list_referrers(state, subject, row.version_number, queries.ACTIVE_OR_SOFT_DELETED):
            if other.subject.key != subject:
                raise InUse(qualify_subject(subject), row.version_number)
