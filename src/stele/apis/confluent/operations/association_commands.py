"""Making and ending associations: their schemas are registered with them, and may go with them."""

from __future__ import annotations

from uuid import uuid4

from msgspec.structs import replace

from stele.apis.confluent import associations as words
from stele.apis.confluent import models as api
from stele.apis.confluent.associations import STRONG, WEAK, AssociationFilter, AssociationRequest, ResourceRequest
from stele.apis.confluent.errors import (
    AssociationFrozen,
    AssociationNotFound,
    InvalidAssociation,
    RefusedChange,
    ResourceTaken,
    TooManyAssociations,
)
from stele.apis.confluent.names import qualify_subject
from stele.apis.confluent.operations import registration
from stele.apis.confluent.operations.schemas import Operations
from stele.apis.confluent.translate import version_out
from stele.core import queries
from stele.core.commands import ChangeBindings, DeleteMode, DeleteSubject
from stele.core.decide.decision import require_writable
from stele.core.model import Binding, SettingsLevel, SubjectKey, VersionState
from stele.core.state import State
from stele.errors import InUse, PreconditionFailed
from stele.service.retry import Overtaken, retry_when_overtaken


async def make_associations(
    operations: Operations, wishes: ResourceRequest, *, create: bool, dry_run: bool
) -> api.AssociationResponse:
    """Make or change the associations of a resource; nothing is written in a dry run.

    Raises what `associations.decide_bindings` and `registration.register_schema` raise, and `TooManyAssociations`.
    """
    versions: dict[str, api.Schema] = {}

    async def attempt(state: State) -> api.AssociationResponse:
        coming = [wish.subject for wish in wishes.rows if wish.schema is not None]
        made = words.decide_bindings(state, wishes, coming, create=create)
        fresh = [row for row in made if row.key not in state.bindings]
        if fresh and len(state.bindings) + len(fresh) > operations.registry.limits.associations:
            raise TooManyAssociations(operations.registry.limits.associations)
        for wish, binding in zip(wishes.rows, made, strict=True):
            if wish.schema is not None:
                if binding.lifecycle == WEAK:
                    raise InvalidAssociation("lifecycle", "cannot be WEAK when schema is provided")
                if create and binding.key in state.bindings:
                    await _require_registered(operations, state, wish, wishes)
        seen = queries.bindings_around(state, made)
        for wish in wishes.rows:
            await _register_schema(operations, wish, versions, dry_run=dry_run)
        with_guids = tuple(row if row.guid else replace(row, guid=str(uuid4())) for row in made)
        if not dry_run:
            try:
                await operations.execute(ChangeBindings(with_guids, expected=seen))
            except PreconditionFailed:
                raise Overtaken from None
        return _response_out(wishes, with_guids, versions)

    return await retry_when_overtaken(operations.registry, attempt, conflicts=())


async def _require_registered(
    operations: Operations, state: State, wish: AssociationRequest, wishes: ResourceRequest
) -> None:
    """Creating what is there again may not bring a schema that is not there."""
    assert wish.schema is not None
    draft = await operations.parse_draft(state, wish.subject, wish.schema, normalize=wish.normalize)
    if await operations.find_equivalent(state, wish.subject, draft, deleted=False) is None:
        raise ResourceTaken(wish.role, wishes.resource_id or wishes.resource)


async def _register_schema(
    operations: Operations, wish: AssociationRequest, versions: dict[str, api.Schema], *, dry_run: bool
) -> None:
    """Register the schema of a wish, or only see whether that could be done."""
    if wish.schema is None:
        return
    if dry_run:
        await _check_schema(operations, wish)
        return
    state, version = await registration.register_schema(
        operations, wish.subject, wish.schema, normalize=wish.normalize, force=False
    )
    versions[wish.role] = version_out(state, version, operations.rendering_options())


async def _check_schema(operations: Operations, wish: AssociationRequest) -> None:
    assert wish.schema is not None
    require_writable(await operations.registry.fresh_state(), SettingsLevel(*wish.subject))
    words = await operations.check_compatibility(wish.subject, wish.schema, None, normalize=wish.normalize)
    if words:
        raise RefusedChange(qualify_subject(wish.subject), (), words)


def _response_out(
    wishes: ResourceRequest, made: tuple[Binding, ...], versions: dict[str, api.Schema]
) -> api.AssociationResponse:
    infos = [replace(words.info_out(row), schema=versions.get(row.role)) for row in made]
    return api.AssociationResponse(wishes.resource, wishes.cluster, wishes.resource_id, words.TOPIC, infos)


# --- ending ---------------------------------------------------------------------------------------------------------


async def end_associations(
    operations: Operations, resource_id: str, wanted: AssociationFilter, *, cascade: bool, dry_run: bool
) -> None:
    """End associations of a resource; with cascade the subjects of STRONG ones are deleted for good.

    Raises `AssociationNotFound`, `AssociationFrozen`, `InUse`, and what the deletion raises.
    """

    async def attempt(state: State) -> None:
        rows = [
            row
            for row in words.find_by_resource_id(state, resource_id, wanted.resource_type)
            if wanted.matches_binding(row)
        ]
        if not rows:
            raise AssociationNotFound(resource_id)
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
            seen = queries.bindings_around(state, left)
            await operations.execute(ChangeBindings((), tuple(row.key for row in left), seen))

    await retry_when_overtaken(operations.registry, attempt)


async def _hard_delete_subject(operations: Operations, state: State, subject: SubjectKey) -> None:
    """Delete a subject for good; its bindings end with it."""
    seen = queries.bindings_of(state, [subject])
    rows = queries.list_versions(state.find_subject(subject), queries.ACTIVE_OR_SOFT_DELETED)
    if any(row.state is VersionState.ACTIVE for row in rows):
        await operations.execute(DeleteSubject(subject, DeleteMode.SOFT, seen))
    if rows:
        await operations.execute(DeleteSubject(subject, DeleteMode.HARD, seen))


def _require_unreferenced(state: State, subject: SubjectKey) -> None:
    for row in queries.list_versions(state.find_subject(subject), queries.ACTIVE_OR_SOFT_DELETED):
        for other in queries.list_referrers(state, subject, row.version_number, queries.ACTIVE_OR_SOFT_DELETED):
            if other.subject.key != subject:
                raise InUse(qualify_subject(subject), row.version_number)
