"""The DEK registry's keys of a KMS (`/dek-registry/v1/keks`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from litestar import Request, delete, get, post, put
from litestar.params import PathParameter, QueryParameter

from stele.apis.confluent import keys
from stele.apis.confluent import models as api
from stele.apis.confluent.errors import InvalidKey
from stele.apis.confluent.keys import Dek, DekKey, KekKey
from stele.apis.confluent.names import (
    NoSuchResource,
    is_true,
    key_of,
    page,
    qualified,
    space_of,
    subject_of,
    version_of,
    writable_key,
)
from stele.apis.confluent.operations.dek_generation import make, now, probe, unwrapped
from stele.apis.confluent.operations.schemas import Desk, read_kept
from stele.apis.confluent.params import (
    NAMED,
    READ,
    WRITE,
    AtDesk,
    Context,
    Flag,
    Limit,
    Offset,
    Subject,
    Version,
    everywhere,
)
from stele.apis.confluent.translate import alias_for_deks
from stele.apis.http.openapi import openapi_body
from stele.apis.http.paths import decode_segment
from stele.core.model import SubjectKey
from stele.errors import InvalidName
from stele.service.collections import Changes, Items
from stele.service.kms import ALGORITHMS

KEKS = "/dek-registry/v1/keks"
KEK = f"{KEKS}/{{name:str}}"

Name = Annotated[
    str, PathParameter(schema_extra=NAMED, description="name of a KEK; the query's `context` says which context's")
]
InContext = Annotated[str, QueryParameter(name="context", description="the KEK's context, if the path names none")]
Permanent = Annotated[str, QueryParameter(schema_extra={"type": "boolean"}, description="`true`: for good")]
_Test = Annotated[
    str,
    QueryParameter(name="testSharing", schema_extra={"type": "boolean"}, description="try a shared KEK out first"),
]
_Prefixes = Annotated[
    list[str] | None,
    QueryParameter(name="subjectPrefix", description="only KEKs with a DEK of a subject that begins so"),
]

NO_CONTENT = {"status_code": 204, "responses": READ["responses"]}


def kek_key(name: str, context: str, in_context: str) -> KekKey:
    """The KEK a path means. Raises `InvalidKey`, `InvalidContext`, `InvalidName`."""
    space = space_of(context or in_context)
    writable_key(SubjectKey(space, ""))
    return keys.kek_key(space, decode_segment(name))


@get(everywhere(KEKS), **READ)
async def list_keks(
    desk: AtDesk,
    context: Context = "",
    in_context: InContext = "",
    subject_prefix: _Prefixes = None,
    deleted: Flag = "",
    offset: Offset = "",
    limit: Limit = "",
) -> list[str]:
    # GET /dek-registry/v1/keks
    """Names of the KEKs."""
    items = await desk.items(keys.COLLECTION)
    space = space_of(context or in_context)
    names = keys.kek_names(items, space, subject_prefix or [], deleted=is_true(deleted))
    return page(names, offset, limit, desk.options.max_items)


@post(everywhere(KEKS), operation_class=openapi_body(api.CreateKekRequest), **WRITE)
async def create_kek(
    desk: AtDesk,
    request: Request[Any, Any, Any],
    context: Context = "",
    in_context: InContext = "",
    test_sharing: _Test = "",
) -> api.Kek:
    # POST /dek-registry/v1/keks
    """Make a KEK of a key of a KMS, or bring back a deleted one."""
    body = await read_kept(desk, request, api.CreateKekRequest)
    key = kek_key(body.name or "", context, in_context)
    if is_true(test_sharing) and body.shared:
        await probe(keys.kek_in(body, now()))
    kek = await desk.edit(
        keys.COLLECTION, lambda items: keys.created(items, key, body, desk.registry.limits.keys, now())
    )
    return keys.kek_out(key.name, kek)


@get(everywhere(KEK), **READ)
async def get_kek(
    desk: AtDesk, name: Name, context: Context = "", in_context: InContext = "", deleted: Flag = ""
) -> api.Kek:
    # GET /dek-registry/v1/keks/{name}
    """A KEK of a context, or that of the default one; without its secrets."""
    items = await desk.items(keys.COLLECTION)
    key, kek = keys.reach_kek(items, kek_key(name, context, in_context), deleted=is_true(deleted))
    return keys.kek_out(key.name, kek)


@put(everywhere(KEK), operation_class=openapi_body(api.UpdateKekRequest), **WRITE)
async def update_kek(
    desk: AtDesk,
    request: Request[Any, Any, Any],
    name: Name,
    context: Context = "",
    in_context: InContext = "",
    test_sharing: _Test = "",
) -> api.Kek:
    # PUT /dek-registry/v1/keks/{name}
    """Change a KEK's properties, its description, or whether the server may use it."""
    body = await read_kept(desk, request, api.UpdateKekRequest)
    key = kek_key(name, context, in_context)
    if is_true(test_sharing):
        _, changed = keys.updated(await desk.items(keys.COLLECTION), key, body, now())
        if changed.shared:
            await probe(changed)
    kek = await desk.edit(keys.COLLECTION, lambda items: keys.updated(items, key, body, now()))
    return keys.kek_out(key.name, kek)


@delete(everywhere(KEK), **NO_CONTENT)
async def delete_kek(
    desk: AtDesk, name: Name, context: Context = "", in_context: InContext = "", permanent: Permanent = ""
) -> None:
    # DELETE /dek-registry/v1/keks/{name}
    """Delete a KEK without DEKs: first softly, then for good."""
    key = kek_key(name, context, in_context)

    def change(items: Items) -> tuple[Changes, None]:
        return keys.kek_removed(items, key, permanent=is_true(permanent), now=now()), None

    await desk.edit(keys.COLLECTION, change)


@post(everywhere(f"{KEK}/undelete"), **NO_CONTENT)
async def undelete_kek(desk: AtDesk, name: Name, context: Context = "", in_context: InContext = "") -> None:
    # POST /dek-registry/v1/keks/{name}/undelete
    """Bring back a soft-deleted KEK."""
    key = kek_key(name, context, in_context)
    await desk.edit(keys.COLLECTION, lambda items: (keys.kek_restored(items, key, now()), None))


@post(everywhere(f"{KEK}/test"), **WRITE)
async def try_kek(desk: AtDesk, name: Name, context: Context = "", in_context: InContext = "") -> api.Kek:
    # POST /dek-registry/v1/keks/{name}/test
    """Wrap a key with a shared KEK for nothing, to see that the KMS lets the server."""
    items = await desk.items(keys.COLLECTION)
    key, kek = keys.reach_kek(items, kek_key(name, context, in_context), deleted=False)
    await probe(kek)
    return keys.kek_out(key.name, kek)


_DEKS = f"{KEK}/deks"
_DEK = f"{_DEKS}/{{subject:str}}"
_VERSIONS = f"{_DEK}/versions"
_VERSION = f"{_VERSIONS}/{{version:str}}"
_BODY = openapi_body(api.CreateDekRequest)

_Algorithm = Annotated[
    str, QueryParameter(schema_extra={"enum": list(ALGORITHMS)}, description="AES256_GCM unless said")
]
_Rewrap = Annotated[
    str, QueryParameter(schema_extra={"type": "boolean"}, description="`true`: encrypt the key that is there anew")
]


@get(everywhere(_DEKS), **READ)
async def list_dek_subjects(
    desk: AtDesk,
    name: Name,
    context: Context = "",
    in_context: InContext = "",
    deleted: Flag = "",
    offset: Offset = "",
    limit: Limit = "",
) -> list[str]:
    # GET /dek-registry/v1/keks/{name}/deks
    """Subjects with a DEK under a KEK."""
    items = await desk.items(keys.COLLECTION)
    key, _ = keys.reach_kek(items, kek_key(name, context, in_context), deleted=is_true(deleted))
    names = {qualified(dek.owner) for dek in keys.wrapped_by(items, key, deleted=is_true(deleted))}
    return page(sorted(names), offset, limit, desk.options.max_items)


@post(everywhere(_DEKS), operation_class=_BODY, **WRITE)
async def create_dek(
    desk: AtDesk, request: Request[Any, Any, Any], name: Name, context: Context = "", rewrap: _Rewrap = ""
) -> api.Dek:
    # POST /dek-registry/v1/keks/{name}/deks
    """Store a DEK, or make one where the KEK is shared; the body names the subject."""
    body = await read_kept(desk, request, api.CreateDekRequest)
    return await _create(desk, name, body.subject or "", context, body, rewrap)


@post(everywhere(_DEK), operation_class=_BODY, **WRITE)
async def create_dek_of_subject(
    desk: AtDesk,
    request: Request[Any, Any, Any],
    name: Name,
    subject: Subject,
    context: Context = "",
    rewrap: _Rewrap = "",
) -> api.Dek:
    # POST /dek-registry/v1/keks/{name}/deks/{subject}
    """Store a DEK, or make one where the KEK is shared."""
    body = await read_kept(desk, request, api.CreateDekRequest)
    if body.subject and key_of(body.subject, context) != key_of(subject, context):
        raise InvalidKey("subject")
    return await _create(desk, name, subject, context, body, rewrap)


@get(everywhere(_DEK), **READ)
async def get_dek(
    desk: AtDesk, name: Name, subject: Subject, context: Context = "", algorithm: _Algorithm = "", deleted: Flag = ""
) -> api.Dek:
    # GET /dek-registry/v1/keks/{name}/deks/{subject}
    """The first version of a DEK."""
    return await _shown(desk, name, subject, context, algorithm, deleted, keys.FIRST_VERSION)


@get(everywhere(_VERSIONS), **READ)
async def list_dek_versions(
    desk: AtDesk,
    name: Name,
    subject: Subject,
    context: Context = "",
    algorithm: _Algorithm = "",
    deleted: Flag = "",
    offset: Offset = "",
    limit: Limit = "",
) -> list[int]:
    # GET /dek-registry/v1/keks/{name}/deks/{subject}/versions
    """Version numbers of a DEK, ascending."""
    items, like = await _asked(desk, name, subject, context, algorithm, deleted=is_true(deleted))
    rows = keys.deks(items, like, deleted=is_true(deleted))
    return page((int(key.version) for key, _ in rows), offset, limit, desk.options.max_items)


@get(everywhere(_VERSION), **READ)
async def get_dek_version(
    desk: AtDesk,
    name: Name,
    subject: Subject,
    version: Version,
    context: Context = "",
    algorithm: _Algorithm = "",
    deleted: Flag = "",
) -> api.Dek:
    # GET /dek-registry/v1/keks/{name}/deks/{subject}/versions/{version}
    """A version of a DEK; unwrapped where the KEK is shared."""
    return await _shown(desk, name, subject, context, algorithm, deleted, version_of(version))


@delete(everywhere(_DEK), **NO_CONTENT)
async def delete_dek(
    desk: AtDesk,
    name: Name,
    subject: Subject,
    context: Context = "",
    algorithm: _Algorithm = "",
    permanent: Permanent = "",
) -> None:
    # DELETE /dek-registry/v1/keks/{name}/deks/{subject}
    """Delete all versions of a DEK: first softly, then for good."""
    _, like = await _asked(desk, name, subject, context, algorithm, deleted=True)
    gone = is_true(permanent)
    await _changed(desk, lambda items: keys.deks_removed(_all(items, like), permanent=gone, now=now()))


@delete(everywhere(_VERSION), **NO_CONTENT)
async def delete_dek_version(
    desk: AtDesk,
    name: Name,
    subject: Subject,
    version: Version,
    context: Context = "",
    algorithm: _Algorithm = "",
    permanent: Permanent = "",
) -> None:
    # DELETE /dek-registry/v1/keks/{name}/deks/{subject}/versions/{version}
    """Delete a version of a DEK: first softly, then for good."""
    number, gone = version_of(version), is_true(permanent)
    _, like = await _asked(desk, name, subject, context, algorithm, deleted=True)
    await _changed(desk, lambda items: keys.deks_removed(_one(items, like, number), permanent=gone, now=now()))


@post(everywhere(f"{_DEK}/undelete"), **NO_CONTENT)
async def undelete_dek(
    desk: AtDesk, name: Name, subject: Subject, context: Context = "", algorithm: _Algorithm = ""
) -> None:
    # POST /dek-registry/v1/keks/{name}/deks/{subject}/undelete
    """Bring back all versions of a DEK."""
    _, like = await _asked(desk, name, subject, context, algorithm, deleted=True)
    await _changed(desk, lambda items: keys.deks_restored(items, _all(items, like), now()))


@post(everywhere(f"{_VERSION}/undelete"), **NO_CONTENT)
async def undelete_dek_version(
    desk: AtDesk, name: Name, subject: Subject, version: Version, context: Context = "", algorithm: _Algorithm = ""
) -> None:
    # POST /dek-registry/v1/keks/{name}/deks/{subject}/versions/{version}/undelete
    """Bring back a version of a DEK."""
    number = version_of(version)
    _, like = await _asked(desk, name, subject, context, algorithm, deleted=True)
    await _changed(desk, lambda items: keys.deks_restored(items, _one(items, like, number), now()))


# --- what endpoints share -------------------------------------------------------------------------------------------


async def _owner(desk: Desk, segment: str, context: str) -> SubjectKey:
    """The subject a DEK belongs to: the one named, or the one its setting `aliasForDeks` sends to."""
    key = subject_of(segment, context).key
    if not key.name:
        raise InvalidKey("subject")
    try:
        writable_key(key)
    except InvalidName:
        raise InvalidKey("subject") from None
    alias = alias_for_deks(await desk.registry.fresh_state(), key)
    return key_of(alias, key.namespace) if alias else key


async def _asked(
    desk: Desk, name: str, subject: str, context: str, algorithm: str, *, deleted: bool
) -> tuple[Items, DekKey]:
    """The documents, and where the versions of a DEK are. Raises `KeyNotFound` when there is no such KEK."""
    kek = kek_key(name, context, "")
    owner = await _owner(desk, subject, context)
    if algorithm and algorithm not in ALGORITHMS:
        raise NoSuchResource
    items = await desk.items(keys.COLLECTION)
    keys.reach_kek(items, kek._replace(space=owner.namespace), deleted=deleted)
    return items, keys.dek_key(kek.name, owner, algorithm or keys.DEFAULT_ALGORITHM, keys.FIRST_VERSION)


async def _shown(
    desk: Desk, name: str, subject: str, context: str, algorithm: str, deleted: str, version: int | None
) -> api.Dek:
    items, like = await _asked(desk, name, subject, context, algorithm, deleted=is_true(deleted))
    return await unwrapped(items, *keys.dek_of(items, like, version, deleted=is_true(deleted)))


async def _create(
    desk: Desk, name: str, subject: str, context: str, body: api.CreateDekRequest, rewrap: str
) -> api.Dek:
    kek = kek_key(name, context, "")
    owner = await _owner(desk, subject, context)
    algorithm = body.algorithm or keys.DEFAULT_ALGORITHM
    version = body.version if body.version is not None else keys.FIRST_VERSION
    if algorithm not in ALGORITHMS:
        raise InvalidKey("algorithm")
    if version < keys.FIRST_VERSION:
        raise InvalidKey("version")
    key = keys.dek_key(kek.name, owner, algorithm, version)
    return await make(desk, kek._replace(space=owner.namespace), key, body, rewrap=is_true(rewrap))


async def _changed(desk: Desk, change: Callable[[Items], Changes]) -> None:
    await desk.edit(keys.COLLECTION, lambda items: (change(items), None))


def _all(items: Items, like: DekKey) -> list[tuple[DekKey, Dek]]:
    """All versions of a DEK, deleted ones too. Raises `KeyNotFound` when there is none."""
    keys.dek_of(items, like, None, deleted=True)
    return keys.deks(items, like, deleted=True)


def _one(items: Items, like: DekKey, version: int | None) -> list[tuple[DekKey, Dek]]:
    """One version of a DEK, None for the newest."""
    return [keys.dek_of(items, like, version, deleted=True)]


ROUTES = [
    list_keks,
    create_kek,
    get_kek,
    update_kek,
    delete_kek,
    undelete_kek,
    try_kek,
    list_dek_subjects,
    create_dek,
    create_dek_of_subject,
    get_dek,
    list_dek_versions,
    get_dek_version,
    delete_dek,
    delete_dek_version,
    undelete_dek,
    undelete_dek_version,
]
