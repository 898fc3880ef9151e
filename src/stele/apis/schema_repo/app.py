"""Builds the application of the two dialects."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from litestar import Request, Router
from litestar.di import Provide

from stele import __version__
from stele.apis.http.access import get_app_state
from stele.apis.http.application import DialectApplication, RegistryApplication, openapi_config
from stele.apis.http.requests import decode_segment, refuse_empty_segments
from stele.apis.schema_repo.errors import handle_error
from stele.apis.schema_repo.ids import IdIndex, get_strategy
from stele.apis.schema_repo.operations import AVRO1124, SCHEMA_REPO, AppState, DialectTraits, Operations
from stele.apis.schema_repo.options import SchemaRepoOptions
from stele.apis.schema_repo.routes import avro1124, browser, subjects
from stele.apis.schema_repo.translate import parse_policy
from stele.core.access import Resource, subject_resource
from stele.core.model import DEFAULT_NAMESPACE, SubjectKey
from stele.service.registry import Registry

SEGMENTS = ("avro1124", "schema-repo", "schema-repo-browser", "schema-repo-admin", "status")
"""First segments of the paths that the dialects answer."""


def find_resource(request: Request[Any, Any, Any]) -> Resource:
    """Return the subject that a path names, or its group, which is called `groups` if the path names none."""
    names = request.path_params
    name = names.get("subject") or names.get("group") or "groups"
    return subject_resource(SubjectKey(DEFAULT_NAMESPACE, decode_segment(name)))


def application(registry: Registry, options: SchemaRepoOptions | None = None) -> RegistryApplication:
    """Return both dialects as one application.

    Args:
        registry: What the application serves.
        options: Options of the dialects; None are the defaults.

    Raises:
        UnknownPolicy: The options name a policy or a validator that is not installed.
        InvalidRequest: The options name an id strategy that is not installed.
    """
    options = options or SchemaRepoOptions()
    check_options(options)
    app_state = AppState(registry, options, IdIndex(options.ids))
    return RegistryApplication(_build_application(options.max_request_bytes), app_state)


@lru_cache(maxsize=8)
def _build_application(max_request_bytes: int) -> DialectApplication:
    return DialectApplication(
        route_handlers=[
            Router("/", route_handlers=avro1124.ROUTES, dependencies=_dependencies(AVRO1124)),
            Router(
                "/",
                route_handlers=[*subjects.ROUTES, *browser.ROUTES],
                dependencies=_dependencies(SCHEMA_REPO),
            ),
        ],
        find_resource=find_resource,
        exception_handlers={Exception: handle_error},
        middleware=[refuse_empty_segments],
        openapi_config=openapi_config("schema-repo", "Stele: AVRO-1124 and schema-repo dialects", __version__),
        request_max_body_size=max_request_bytes,
        logging_config=None,
    )


def check_options(options: SchemaRepoOptions) -> None:
    """Raise `UnknownPolicy` or `InvalidRequest` if options name a policy, validator or strategy that is missing."""
    get_strategy(options.ids)
    for words in (options.default_validators, *options.models.values()):
        parse_policy(words, options.models)


def _dependencies(traits: DialectTraits) -> dict[str, Provide]:
    def provide_operations(request: Request[Any, Any, Any]) -> Operations:
        return Operations(get_app_state(request.scope), traits)

    return {"operations": Provide(provide_operations, sync_to_thread=False)}
