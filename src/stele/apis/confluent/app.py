"""The Confluent dialect, which Redpanda and Karapace speak too, as an application.

Source: docs/protocols/confluent.md, docs/protocols/redpanda.md, docs/protocols/karapace.md.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from litestar import Request
from litestar.di import Provide

from stele.apis.confluent.errors import MEDIA_TYPE, create_error_handler
from stele.apis.confluent.guid import GuidIndex
from stele.apis.confluent.known_lists import KnownLists
from stele.apis.confluent.names import parse_level
from stele.apis.confluent.operations.schemas import AppState, Operations
from stele.apis.confluent.options import ConfluentOptions
from stele.apis.confluent.routes import associations, exporters, keys, schemas, server, settings, subjects
from stele.apis.http.access import get_app_state
from stele.apis.http.application import DialectApplication, RegistryApplication, openapi_config
from stele.apis.http.media_types import negotiate_media_types
from stele.apis.http.plain_endpoints import call_plain_endpoints
from stele.apis.http.requests import decode_segment, refuse_empty_segments
from stele.core.access import Resource, key_resource, level_resource
from stele.service.registry import Registry
from stele.service.usage import Usage

SEGMENTS = (
    "subjects",
    "subjects:import",
    "schemas",
    "config",
    "config:batchGet",
    "mode",
    "contexts",
    "compatibility",
    "v1/metadata",
    "associations",
    "associations:batch",
    "associations:batchGet",
    "associations:batchMutate",
    "dek-registry",
    "exporters",
    "security",
    "status/ready",
)
"""First segments of the paths that the dialect answers."""

IMMUTABLE = (
    "/schemas/ids/{id}",
    "/schemas/ids/{id}/schema",
    "/contexts/{context}/schemas/ids/{id}",
    "/contexts/{context}/schemas/ids/{id}/schema",
    "/schemas/guids/{guid}",
)
"""Path templates whose answers never change if the request has no query, because an id is assigned only once."""

REPEATABLE = ("/subjects/", "/compatibility/")
"""Path prefixes with POST endpoints that only read: look-ups, checks, and registrations of known schemas."""

_OFFERED = {MEDIA_TYPE: 1.0, "application/vnd.schemaregistry+json": 0.9, "application/json": 0.5}
"""Media types that responses can have, each with the preference of the server."""

_SINCE_8 = (*associations.ROUTES, *schemas.BY_GUID, server.delete_context)
"""Endpoints that releases before 8.0 do not have. In the profiles of those releases they answer 404."""

CONTENT_TYPE = MEDIA_TYPE.encode()
"""Content type of responses to clients that accept any."""

_MODULES = (server, schemas, subjects, settings, associations, keys, exporters)


def find_resource(request: Request[Any, Any, Any]) -> Resource:
    """Return the KEK, subject, context or registry that a path names. Raises `InvalidContext`."""
    names = request.path_params
    if "name" in names:
        return key_resource(decode_segment(names["name"]))
    return level_resource(parse_level(names.get("subject", ""), names.get("context", "")))


def application(registry: Registry, options: ConfluentOptions | None = None) -> RegistryApplication:
    """Return the dialect as an application of its own."""
    options = options or ConfluentOptions()
    app_state = AppState(registry, options, GuidIndex(), Usage(registry), KnownLists())
    return RegistryApplication(_build_application(options), app_state)


@lru_cache(maxsize=8)
def _build_application(options: ConfluentOptions) -> DialectApplication:
    def operations(request: Request[Any, Any, Any]) -> Operations:
        return Operations(get_app_state(request.scope), request.scope)

    unknown = set() if options.differences.has_guids else {id(handler) for handler in _SINCE_8}
    return DialectApplication(
        route_handlers=[handler for module in _MODULES for handler in module.ROUTES if id(handler) not in unknown],
        dependencies={"operations": Provide(operations, sync_to_thread=False)},
        exception_handlers={Exception: create_error_handler(options)},
        find_resource=find_resource,
        middleware=[refuse_empty_segments, negotiate_media_types(_OFFERED), call_plain_endpoints(operations)],
        openapi_config=openapi_config("confluent", "Stele: Confluent dialect", options.release),
        request_max_body_size=options.max_request_bytes,
        logging_config=None,
    )
