"""Keys of the DEK registry (`/dek-registry/v1/keks`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from litestar import Request, delete, get, post, put
from litestar.params import PathParameter, QueryParameter

from stele.apis.confluent import models as api
from stele.apis.confluent.errors import InvalidKey
from stele.apis.confluent.names import (
    NoSuchResource,
    is_true,
    parse_context,
    parse_subject,
    parse_subject_key,
    parse_version,
    qualify_subject,
    require_valid_key,
    slice_page,
)
from stele.apis.confluent.operations import keys
from stele.apis.confluent.operations.keys import (
    DekKey,
    KekKey,
    StoredDek,
    current_millis,
    edit_keys,
    require_usable_kek,
    store_dek,
    unwrap_dek,
)
from stele.apis.confluent.operations.schemas import Operations, read_stored_body
from stele.apis.confluent.params import (
    NOT_EMPTY,
    READ,
    WRITE,
    Context,
    Flag,
    InjectedOperations,
    Limit,
    Offset,
    Subject,
    Version,
    with_context_prefix,
)
from stele.apis.confluent.translate import find_alias_for_deks
from stele.apis.http.access import Place, access
from stele.apis.http.application import openapi_body
from stele.apis.http.dependencies import VOLATILE
from stele.apis.http.requests import decode_segment
from stele.core.access import Operation, key_resource
from stele.core.model import SubjectKey
from stele.errors import InvalidName
from stele.service.collections import Changes, Items
from stele.service.kms import ALGORITHMS

KEKS = "/dek-registry/v1/keks"
KEK = f"{KEKS}/{{name:str}}"

Name = Annotated[
    str, PathParameter(schema_extra=NOT_EMPTY, description="name of a KEK; the parameter `context` names its context")
]
InContext = Annotated[str, QueryParameter(name="context", description="context of the KEK, if the path names none")]
Permanent = Annotated[str, QueryParameter(schema_extra={"type": "boolean"}, description="`true`: delete for good")]
_Test = Annotated[
    str,
    QueryParameter(name="testSharing", schema_extra={"type": "boolean"}, description="test a shared KEK first"),
]
_Prefixes = Annotated[
    list[str] | None,
    QueryParameter(name="subjectPrefix", description="only KEKs with a DEK of a subject with this prefix"),
]

NO_CONTENT = {"status_code": 204, "responses": READ["responses"]}


def parse_kek_key(name: str, context: str, in_context: str) -> KekKey:
    """Return the key of the KEK that a path names. Raises `InvalidKey`, `InvalidContext`, `InvalidName`."""
    space = parse_context(context or in_context)
    require_valid_key(SubjectKey(space, ""))
    return keys.make_kek_key(space, decode_segment(name))


@get(with_context_prefix(KEKS), **READ, opt=access(Operation.READ_KEYS, Place.LIST))
async def list_keks(
    operations: InjectedOperations,
    context: Context = "",
    in_context: InContext = "",
    subject_prefix: _Prefixes = None,
    deleted: Flag = "",
    offset: Offset = "",
    limit: Limit = "",
) -> list[str]:
    # GET /dek-registry/v1/keks
    """Return the names of the KEKs."""
    items = await operations.read_items(keys.COLLECTION)
    space = parse_context(context or in_context)
    names = keys.list_kek_names(items, space, subject_prefix or [], deleted=is_true(deleted))
    access = operations.registry.access
    visible_names = [name for name in names if access.allows(Operation.READ_KEYS, key_resource(name))]
    return slice_page(visible_names, offset, limit, operations.options.max_items)


@post(
    with_context_prefix(KEKS),
    operation_class=openapi_body(api.CreateKekRequest),
    **WRITE,
    opt=access(Operation.MANAGE_KEYS, Place.INSIDE),
)
async def create_kek(
    operations: InjectedOperations,
    request: Request[Any, Any, Any],
    context: Context = "",
    in_context: InContext = "",
    test_sharing: _Test = "",
) -> api.Kek:
    # POST /dek-registry/v1/keks
    """Create a KEK from a key of a KMS, or restore a soft-deleted one."""
    body = await read_stored_body(operations, request, api.CreateKekRequest)
    key = parse_kek_key(body.name or "", context, in_context)
    operations.registry.access.require(Operation.MANAGE_KEYS, key_resource(key.name))
    if is_true(test_sharing) and body.shared:
        await require_usable_kek(keys.kek_in(body, current_millis()))
    kek = await edit_keys(
        operations,
        lambda items: keys.create_kek(items, key, body, operations.registry.limits.keys, current_millis()),
    )
    return keys.kek_out(key.name, kek)


@get(with_context_prefix(KEK), **READ, opt=access(Operation.READ_KEYS))
async def get_kek(
    operations: InjectedOperations, name: Name, context: Context = "", in_context: InContext = "", deleted: Flag = ""
) -> api.Kek:
    # GET /dek-registry/v1/keks/{name}
    """Return the KEK of a context, else that of the default one, without its secrets."""
    items = await operations.read_items(keys.COLLECTION)
    key, kek = keys.find_kek(items, parse_kek_key(name, context, in_context), deleted=is_true(deleted))
    return keys.kek_out(key.name, kek)


@put(
    with_context_prefix(KEK),
    operation_class=openapi_body(api.UpdateKekRequest),
    **WRITE,
    opt=access(Operation.MANAGE_KEYS),
)
async def update_kek(
    operations: InjectedOperations,
    request: Request[Any, Any, Any],
    name: Name,
    context: Context = "",
    in_context: InContext = "",
    test_sharing: _Test = "",
) -> api.Kek:
    # PUT /dek-registry/v1/keks/{name}
    """Change a KEK's properties, its description, or whether the server may use it."""
    body = await read_stored_body(operations, request, api.UpdateKekRequest)
    key = parse_kek_key(name, context, in_context)
    if is_true(test_sharing):
        _, changed = keys.update_kek(await operations.read_items(keys.COLLECTION), key, body, current_millis())
        if changed.shared:
            await require_usable_kek(changed)
    kek = await edit_keys(operations, lambda items: keys.update_kek(items, key, body, current_millis()))
    return keys.kek_out(key.name, kek)


@delete(with_context_prefix(KEK), **NO_CONTENT, opt=access(Operation.MANAGE_KEYS))
async def delete_kek(
    operations: InjectedOperations,
    name: Name,
    context: Context = "",
    in_context: InContext = "",
    permanent: Permanent = "",
) -> None:
    # DELETE /dek-registry/v1/keks/{name}
    """Delete a KEK without DEKs: first softly, then permanently."""
    key = parse_kek_key(name, context, in_context)

    def change(items: Items) -> tuple[Changes, None]:
        return keys.delete_kek(items, key, permanent=is_true(permanent), now=current_millis()), None

    await edit_keys(operations, change)


@post(with_context_prefix(f"{KEK}/undelete"), **NO_CONTENT, opt=access(Operation.MANAGE_KEYS))
async def undelete_kek(
    operations: InjectedOperations, name: Name, context: Context = "", in_context: InContext = ""
) -> None:
    # POST /dek-registry/v1/keks/{name}/undelete
    """Restore a soft-deleted KEK."""
    key = parse_kek_key(name, context, in_context)
    await edit_keys(operations, lambda items: (keys.undelete_kek(items, key, current_millis()), None))


@post(with_context_prefix(f"{KEK}/test"), **WRITE, opt=access(Operation.MANAGE_KEYS))
async def check_kek(
    operations: InjectedOperations, name: Name, context: Context = "", in_context: InContext = ""
) -> api.Kek:
    # POST /dek-registry/v1/keks/{name}/test
    """Test whether the KMS lets the server wrap a key with a shared KEK."""
    items = await operations.read_items(keys.COLLECTION)
    key, kek = keys.find_kek(items, parse_kek_key(name, context, in_context), deleted=False)
    await require_usable_kek(kek)
    return keys.kek_out(key.name, kek)


_UNWRAPPED = {**access(Operation.READ_KEYS), VOLATILE: True}
"""Options of endpoints that may return a data key in plain text. Responses are not cached, and each is audited."""

_DEKS = f"{KEK}/deks"
_DEK = f"{_DEKS}/{{subject:str}}"
_VERSIONS = f"{_DEK}/versions"
_VERSION = f"{_VERSIONS}/{{version:str}}"
_BODY = openapi_body(api.CreateDekRequest)

_Algorithm = Annotated[
    str, QueryParameter(schema_extra={"enum": list(ALGORITHMS)}, description="algorithm; default: AES256_GCM")
]
_Rewrap = Annotated[
    str, QueryParameter(schema_extra={"type": "boolean"}, description="`true`: encrypt the existing key again")
]


@get(with_context_prefix(_DEKS), **READ, opt=access(Operation.READ_KEYS))
async def list_dek_subjects(
    operations: InjectedOperations,
    name: Name,
    context: Context = "",
    in_context: InContext = "",
    deleted: Flag = "",
    offset: Offset = "",
    limit: Limit = "",
) -> list[str]:
    # GET /dek-registry/v1/keks/{name}/deks
    """Return the subjects with a DEK under a KEK."""
    items = await operations.read_items(keys.COLLECTION)
    key, _ = keys.find_kek(items, parse_kek_key(name, context, in_context), deleted=is_true(deleted))
    owners = {dek.owner for dek in keys.list_wrapped_deks(items, key, deleted=is_true(deleted))}
    names = map(qualify_subject, filter(operations.registry.access.make_filter(), owners))
    return slice_page(sorted(names), offset, limit, operations.options.max_items)


@post(with_context_prefix(_DEKS), operation_class=_BODY, **WRITE, opt=access(Operation.MANAGE_KEYS))
async def create_dek(
    operations: InjectedOperations,
    request: Request[Any, Any, Any],
    name: Name,
    context: Context = "",
    rewrap: _Rewrap = "",
) -> api.Dek:
    # POST /dek-registry/v1/keks/{name}/deks
    """Store a DEK, or generate one if the KEK is shared; the body names the subject."""
    body = await read_stored_body(operations, request, api.CreateDekRequest)
    return await _create_dek(operations, name, body.subject or "", context, body, rewrap)


@post(with_context_prefix(_DEK), operation_class=_BODY, **WRITE, opt=access(Operation.MANAGE_KEYS))
async def create_dek_of_subject(
    operations: InjectedOperations,
    request: Request[Any, Any, Any],
    name: Name,
    subject: Subject,
    context: Context = "",
    rewrap: _Rewrap = "",
) -> api.Dek:
    # POST /dek-registry/v1/keks/{name}/deks/{subject}
    """Store a DEK, or generate one if the KEK is shared."""
    body = await read_stored_body(operations, request, api.CreateDekRequest)
    if body.subject and parse_subject_key(body.subject, context) != parse_subject_key(subject, context):
        raise InvalidKey("subject")
    return await _create_dek(operations, name, subject, context, body, rewrap)


@get(with_context_prefix(_DEK), **READ, opt=_UNWRAPPED)
async def get_dek(
    operations: InjectedOperations,
    name: Name,
    subject: Subject,
    context: Context = "",
    algorithm: _Algorithm = "",
    deleted: Flag = "",
) -> api.Dek:
    # GET /dek-registry/v1/keks/{name}/deks/{subject}
    """Return the first version of a DEK."""
    return await _dek_out(operations, name, subject, context, algorithm, deleted, keys.FIRST_VERSION)


@get(with_context_prefix(_VERSIONS), **READ, opt=access(Operation.READ_KEYS))
async def list_dek_versions(
    operations: InjectedOperations,
    name: Name,
    subject: Subject,
    context: Context = "",
    algorithm: _Algorithm = "",
    deleted: Flag = "",
    offset: Offset = "",
    limit: Limit = "",
) -> list[int]:
    # GET /dek-registry/v1/keks/{name}/deks/{subject}/versions
    """Return the version numbers of a DEK, ascending."""
    items, like = await _locate_dek(operations, name, subject, context, algorithm, deleted=is_true(deleted))
    rows = keys.list_deks(items, like, deleted=is_true(deleted))
    return slice_page((int(key.version) for key, _ in rows), offset, limit, operations.options.max_items)


@get(with_context_prefix(_VERSION), **READ, opt=_UNWRAPPED)
async def get_dek_version(
    operations: InjectedOperations,
    name: Name,
    subject: Subject,
    version: Version,
    context: Context = "",
    algorithm: _Algorithm = "",
    deleted: Flag = "",
) -> api.Dek:
    # GET /dek-registry/v1/keks/{name}/deks/{subject}/versions/{version}
    """Return a version of a DEK, unwrapped if the KEK is shared."""
    return await _dek_out(operations, name, subject, context, algorithm, deleted, parse_version(version))


@delete(with_context_prefix(_DEK), **NO_CONTENT, opt=access(Operation.MANAGE_KEYS))
async def delete_dek(
    operations: InjectedOperations,
    name: Name,
    subject: Subject,
    context: Context = "",
    algorithm: _Algorithm = "",
    permanent: Permanent = "",
) -> None:
    # DELETE /dek-registry/v1/keks/{name}/deks/{subject}
    """Delete all versions of a DEK: first softly, then permanently."""
    _, like = await _locate_dek(operations, name, subject, context, algorithm, deleted=True)
    is_permanent = is_true(permanent)
    await _change_keys(
        operations,
        lambda items: keys.delete_deks(_all_versions(items, like), permanent=is_permanent, now=current_millis()),
    )


@delete(with_context_prefix(_VERSION), **NO_CONTENT, opt=access(Operation.MANAGE_KEYS))
async def delete_dek_version(
    operations: InjectedOperations,
    name: Name,
    subject: Subject,
    version: Version,
    context: Context = "",
    algorithm: _Algorithm = "",
    permanent: Permanent = "",
) -> None:
    # DELETE /dek-registry/v1/keks/{name}/deks/{subject}/versions/{version}
    """Delete a version of a DEK: first softly, then permanently."""
    number, is_permanent = parse_version(version), is_true(permanent)
    _, like = await _locate_dek(operations, name, subject, context, algorithm, deleted=True)
    await _change_keys(
        operations,
        lambda items: keys.delete_deks(
            _single_version(items, like, number), permanent=is_permanent, now=current_millis()
        ),
    )


@post(with_context_prefix(f"{_DEK}/undelete"), **NO_CONTENT, opt=access(Operation.MANAGE_KEYS))
async def undelete_dek(
    operations: InjectedOperations, name: Name, subject: Subject, context: Context = "", algorithm: _Algorithm = ""
) -> None:
    # POST /dek-registry/v1/keks/{name}/deks/{subject}/undelete
    """Restore all versions of a DEK."""
    _, like = await _locate_dek(operations, name, subject, context, algorithm, deleted=True)
    await _change_keys(
        operations, lambda items: keys.undelete_deks(items, _all_versions(items, like), current_millis())
    )


@post(with_context_prefix(f"{_VERSION}/undelete"), **NO_CONTENT, opt=access(Operation.MANAGE_KEYS))
async def undelete_dek_version(
    operations: InjectedOperations,
    name: Name,
    subject: Subject,
    version: Version,
    context: Context = "",
    algorithm: _Algorithm = "",
) -> None:
    # POST /dek-registry/v1/keks/{name}/deks/{subject}/versions/{version}/undelete
    """Restore a version of a DEK."""
    number = parse_version(version)
    _, like = await _locate_dek(operations, name, subject, context, algorithm, deleted=True)
    await _change_keys(
        operations, lambda items: keys.undelete_deks(items, _single_version(items, like, number), current_millis())
    )


# --- what endpoints share -------------------------------------------------------------------------------------------


async def _resolve_owner(operations: Operations, segment: str, context: str) -> SubjectKey:
    """Return the subject that a DEK belongs to: the one named, or the target of its setting `aliasForDeks`."""
    key = parse_subject(segment, context).key
    if not key.name:
        raise InvalidKey("subject")
    try:
        require_valid_key(key)
    except InvalidName:
        raise InvalidKey("subject") from None
    alias = find_alias_for_deks(await operations.registry.fresh_state(), key)
    return parse_subject_key(alias, key.namespace) if alias else key


async def _locate_dek(
    operations: Operations, name: str, subject: str, context: str, algorithm: str, *, deleted: bool
) -> tuple[Items, DekKey]:
    """Return the stored keys, and the key of the first version of a DEK. Raises `KeyNotFound` without such a KEK."""
    kek = parse_kek_key(name, context, "")
    owner = await _resolve_owner(operations, subject, context)
    if algorithm and algorithm not in ALGORITHMS:
        raise NoSuchResource
    items = await operations.read_items(keys.COLLECTION)
    keys.find_kek(items, kek._replace(space=owner.namespace), deleted=deleted)
    return items, keys.make_dek_key(kek.name, owner, algorithm or keys.DEFAULT_ALGORITHM, keys.FIRST_VERSION)


async def _dek_out(
    operations: Operations, name: str, subject: str, context: str, algorithm: str, deleted: str, version: int | None
) -> api.Dek:
    items, like = await _locate_dek(operations, name, subject, context, algorithm, deleted=is_true(deleted))
    return await unwrap_dek(operations, items, *keys.find_dek(items, like, version, deleted=is_true(deleted)))


async def _create_dek(
    operations: Operations, name: str, subject: str, context: str, body: api.CreateDekRequest, rewrap: str
) -> api.Dek:
    kek = parse_kek_key(name, context, "")
    owner = await _resolve_owner(operations, subject, context)
    algorithm = body.algorithm or keys.DEFAULT_ALGORITHM
    version = body.version if body.version is not None else keys.FIRST_VERSION
    if algorithm not in ALGORITHMS:
        raise InvalidKey("algorithm")
    if version < keys.FIRST_VERSION:
        raise InvalidKey("version")
    key = keys.make_dek_key(kek.name, owner, algorithm, version)
    return await store_dek(operations, kek._replace(space=owner.namespace), key, body, rewrap=is_true(rewrap))


async def _change_keys(operations: Operations, change: Callable[[Items], Changes]) -> None:
    await edit_keys(operations, lambda items: (change(items), None))


def _all_versions(items: Items, like: DekKey) -> list[tuple[DekKey, StoredDek]]:
    """Return all versions of a DEK, including soft-deleted ones. Raises `KeyNotFound` if there is none."""
    keys.find_dek(items, like, None, deleted=True)
    return keys.list_deks(items, like, deleted=True)


def _single_version(items: Items, like: DekKey, version: int | None) -> list[tuple[DekKey, StoredDek]]:
    """Return one version of a DEK as a list, None for the newest. Raises `KeyNotFound`."""
    return [keys.find_dek(items, like, version, deleted=True)]


ROUTES = [
    list_keks,
    create_kek,
    get_kek,
    update_kek,
    delete_kek,
    undelete_kek,
    check_kek,
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
