"""The access check before each endpoint."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import httpx
import pytest
from litestar import Request, Response, get
from litestar.params import PathParameter

from stele.apis.http.access import Place, access
from stele.apis.http.application import DialectApplication, RegistryApplication
from stele.core.access import AccessRule, AccessRules, Operation, Resource, ResourceType
from stele.errors import Forbidden, SteleError, Unauthenticated
from stele.service.access import CALLER, AccessControl, Caller, Principal
from stele.service.registry import Registry
from stele.storage.memory import MemoryLog

_RULES = [
    AccessRule("user:admin", ("admin",)),
    AccessRule("user:ann", ("reader",), resource_type=ResourceType.NAMESPACE, namespace="own"),
]


class _AppState(NamedTuple):
    registry: Registry


@get("/undeclared")
async def _answer_undeclared() -> str:
    return "told"


@get("/named/{name:str}", opt=access(Operation.READ))
async def _answer_named(name: Annotated[str, PathParameter()]) -> str:
    return name


@get("/whole", opt=access(Operation.READ, Place.REGISTRY))
async def _answer_whole() -> str:
    return "told"


@get("/filtered", opt=access(Operation.READ, Place.LIST))
async def _answer_filtered() -> str:
    return ""


def _find_resource(request: Request[object, object, object]) -> Resource:
    return Resource(ResourceType.NAMESPACE, request.path_params["name"])


def _refuse(request: Request[object, object, object], error: Exception) -> Response[str]:
    status = {Forbidden: 403, Unauthenticated: 401}[type(error)]
    return Response(str(error), status_code=status)


async def _ask(caller: str, path: str, *, method: str = "GET", open_to_all: bool = False) -> int:
    registry = Registry(MemoryLog())
    if not open_to_all:
        registry.access = AccessControl(AccessRules(_RULES, default_allow=False))
    dialect = DialectApplication(
        [_answer_undeclared, _answer_named, _answer_whole, _answer_filtered],
        find_resource=_find_resource,
        exception_handlers={SteleError: _refuse},
        openapi_config=None,
    )
    app = RegistryApplication(dialect, _AppState(registry))
    asking = CALLER.set(Caller(Principal(caller)))
    try:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://x") as client:
            return (await client.request(method, path)).status_code
    finally:
        CALLER.reset(asking)


@pytest.mark.parametrize(
    ("path", "admin", "ann", "nobody"),
    [
        ("/undeclared", 200, 403, 401),
        ("/named/own", 200, 200, 401),
        ("/named/other", 200, 403, 401),
        ("/whole", 200, 403, 401),
        ("/filtered", 200, 200, 200),
    ],
)
async def test_who_gets_through(path: str, admin: int, ann: int, nobody: int) -> None:
    """The declared right of an endpoint decides; an endpoint without a declaration is only for administrators."""
    assert [await _ask(caller, path) for caller in ("admin", "ann", "")] == [admin, ann, nobody]
    assert await _ask("ann", path, open_to_all=True) == 200


async def test_what_the_framework_answers_itself() -> None:
    """OPTIONS requires no right."""
    assert await _ask("", "/undeclared", method="OPTIONS") == 204
