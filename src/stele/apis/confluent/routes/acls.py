"""Redpanda's access control entries (`/security/acls`): kept and listed. Nothing enforces them yet."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec
from litestar import Request, Response, delete, get, post
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import QueryParameter
from msgspec import UNSET, Meta, UnsetType

from stele.apis.confluent.operations.schemas import read_stored_body
from stele.apis.confluent.params import ERRORS, READ, WRITE, InjectedOperations
from stele.apis.http.openapi import openapi_body
from stele.errors import TooLarge
from stele.service.collections import Changes, Items, Key

_COLLECTION: Final = "redpanda.acls"
_MOST = 10_000
"""Entries, at most."""

_Name = Annotated[str, Meta(min_length=1, max_length=1000)]


class Acl(msgspec.Struct, frozen=True):
    """Who may do what to which subject, or to the registry as a whole; host and resource may be `*`."""

    principal: _Name
    resource: _Name
    resource_type: Literal["REGISTRY", "SUBJECT"]
    operation: Literal["ALL", "READ", "WRITE", "REMOVE", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER", "ALTER_CONFIGS"]
    permission: Literal["ALLOW", "DENY"]
    pattern_type: Literal["LITERAL", "PREFIXED", "PREFIX"] = "LITERAL"
    host: _Name = "*"
    principal_type: Literal["USER", "REDPANDA_ROLE"] | UnsetType = UNSET

    @property
    def key(self) -> Key:
        """What makes an entry: everything in it."""
        return tuple("" if value is UNSET else value for value in msgspec.structs.astuple(self))


_Word = Annotated[str, QueryParameter(description="only entries with that value")]
_BODY = openapi_body(list[Acl])


@get("/security/acls", **READ)
async def list_acls(
    operations: InjectedOperations,
    principal: _Word = "",
    principal_type: _Word = "",
    resource: _Word = "",
    resource_type: _Word = "",
    pattern_type: _Word = "",
    host: _Word = "",
    operation: _Word = "",
    permission: _Word = "",
) -> list[Acl]:
    # GET /security/acls
    """Access control entries, all or those with the given values."""
    wanted = {
        "principal": principal,
        "principal_type": principal_type,
        "resource": resource,
        "resource_type": resource_type,
        "pattern_type": pattern_type,
        "host": host,
        "operation": operation,
        "permission": permission,
    }
    items = await operations.read_items(_COLLECTION)
    rows = [msgspec.json.decode(items[key], type=Acl) for key in sorted(items)]
    return [row for row in rows if all(not value or getattr(row, name) == value for name, value in wanted.items())]


_ADDED = ResponseSpec(None, description="Added; the answer is empty", generate_examples=False)


@post(
    "/security/acls",
    operation_class=_BODY,
    **{**WRITE, "status_code": 201, "responses": {**ERRORS, 201: _ADDED}},
)
async def create_acls(operations: InjectedOperations, request: Request[Any, Any, Any]) -> Response[bytes]:
    # POST /security/acls
    """Add access control entries; those that are there stay."""
    entries = await read_stored_body(operations, request, list[Acl])

    def change(items: Items) -> tuple[Changes, None]:
        fresh = {entry.key: msgspec.json.encode(entry) for entry in entries if entry.key not in items}
        if len(items) + len(fresh) > _MOST:
            raise TooLarge(f"there are {_MOST} access control entries at most")
        return fresh, None

    await operations.edit_items(_COLLECTION, change)
    return Response(b"", status_code=201)


@delete("/security/acls", operation_class=_BODY, **WRITE)
async def delete_acls(operations: InjectedOperations, request: Request[Any, Any, Any]) -> list[Acl]:
    # DELETE /security/acls
    """Remove access control entries; answers those that were there."""
    entries = await read_stored_body(operations, request, list[Acl])

    def change(items: Items) -> tuple[Changes, list[Acl]]:
        gone = [entry for entry in entries if entry.key in items]
        return {entry.key: None for entry in gone}, gone

    return await operations.edit_items(_COLLECTION, change)


ROUTES = [list_acls, create_acls, delete_acls]
