"""API keys: programs prove with them who they are. Nobody sees a key again after it was made."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import msgspec
from litestar import Request, delete, get, post
from litestar.datastructures import ResponseHeader
from litestar.handlers import HTTPRouteHandler
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import PathParameter

from stele.apis.http.access import Place, access
from stele.apis.http.application import openapi_body
from stele.apis.http.requests import decode_segment, read_body
from stele.apis.native.errors import ERRORS, NativeError
from stele.core.access import REGISTRY_RESOURCE, Operation
from stele.service import api_keys as service
from stele.service.access import CALLER
from stele.service.registry import Registry

KeyId = Annotated[str, PathParameter(name="id", description="id of a key, which stands in it after `stele_`")]

_MANAGE = access(Operation.MANAGE_ACCESS, Place.REGISTRY)
_NO_STORE = ResponseHeader(name="Cache-Control", value="no-store", description="The key is shown once")
_NO_KEY = {404: ResponseSpec(NativeError, description="No key has this id", generate_examples=False)}


class ApiKeyRequest(msgspec.Struct, frozen=True):
    """A key to be made: who a request with it comes from, in which groups he is, and when it ends (null: never)."""

    name: str
    groups: list[str] = []
    expires: datetime | None = None


def create_routes(registry: Registry) -> list[HTTPRouteHandler]:
    """Return the endpoints about API keys of one registry."""

    @get("/api/access/keys", opt=access(Operation.MANAGE_ACCESS, Place.LIST))
    async def list_keys() -> service.ApiKeysOut:
        # GET /api/access/keys
        """List all keys, or those of the caller, if he has no right to the others."""
        keys = await service.list_api_keys(registry)
        is_manager = registry.access.allows(Operation.MANAGE_ACCESS, REGISTRY_RESOURCE)
        caller = CALLER.get().principal.name
        visible = {
            key_id: stored
            for key_id, stored in keys.items()
            if is_manager or (caller and caller in {stored.name, stored.created_by})
        }
        return service.ApiKeysOut(
            [service.ApiKeyOut(key_id, **_describe(stored)) for key_id, stored in visible.items()]
        )

    @post(
        "/api/access/keys",
        opt=_MANAGE,
        operation_class=openapi_body(ApiKeyRequest),
        responses=ERRORS,
        response_headers=[_NO_STORE],
    )
    async def create_key(request: Request[Any, Any, Any]) -> service.CreatedApiKey:
        # POST /api/access/keys
        """Make a key. Its answer is the only one that shows it."""
        wanted = await read_body(request, ApiKeyRequest)
        key_id, stored, key = await service.create_api_key(
            registry, wanted.name, wanted.groups, wanted.expires, via="native"
        )
        return service.CreatedApiKey(key_id, **_describe(stored), key=key)

    @delete("/api/access/keys/{id:str}", status_code=200, opt=_MANAGE, responses=_NO_KEY)
    async def revoke_key(key_id: KeyId) -> service.ApiKeyOut:
        # DELETE /api/access/keys/{id}
        """Revoke a key: it is worth nothing from now on. Answers what it was."""
        key_id = decode_segment(key_id)
        stored = await service.revoke_api_key(registry, key_id, via="native")
        return service.ApiKeyOut(key_id, **_describe(stored))

    return [list_keys, create_key, revoke_key]


def _describe(stored: service.StoredApiKey) -> dict[str, Any]:
    return {
        "name": stored.name,
        "groups": list(stored.groups),
        "created": stored.created,
        "created_by": stored.created_by,
        "expires": stored.expires,
    }
