"""The DEK registry's keys of a KMS (`/dek-registry/v1/keks`)."""

from __future__ import annotations

from typing import Annotated, Any

from litestar import Request, delete, get, post, put
from litestar.params import PathParameter, QueryParameter

from stele.apis.confluent import entities_keys as api
from stele.apis.confluent import keys
from stele.apis.confluent.bodies import read_kept
from stele.apis.confluent.key_making import now, probe
from stele.apis.confluent.keys import KekKey
from stele.apis.confluent.names import is_true, page, space_of, writable_key
from stele.apis.confluent.parameters import NAMED, READ, WRITE, AtDesk, Context, Flag, Limit, Offset, everywhere
from stele.apis.http.openapi import openapi_body
from stele.apis.http.paths import decode_segment
from stele.core.model import SubjectKey
from stele.service.collections import Changes, Items

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


ROUTES = [list_keks, create_kek, get_kek, update_kek, delete_kek, undelete_kek, try_kek]
