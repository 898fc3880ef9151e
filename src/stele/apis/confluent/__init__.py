"""The Confluent and Redpanda dialect: the schema registry API most clients speak, at the root of the server.

Source: docs/protocols/confluent.md, docs/protocols/redpanda.md.
"""

from __future__ import annotations

from typing import Any

from litestar import Litestar, Request
from litestar.di import Provide

from stele.apis.confluent import (
    routes_acls,
    routes_associations,
    routes_deks,
    routes_exporters,
    routes_import,
    routes_keks,
    routes_root,
    routes_schemas,
    routes_settings,
    routes_subjects,
    routes_versions,
)
from stele.apis.confluent.conventions import conventions
from stele.apis.confluent.desk import Desk, Office
from stele.apis.confluent.faults import MEDIA_TYPE, answer
from stele.apis.confluent.guid import GuidIndex
from stele.apis.confluent.hot import HotSchemas
from stele.apis.confluent.options import OLD, ConfluentOptions
from stele.apis.http.application import DialectApplication
from stele.apis.http.openapi import openapi_config
from stele.apis.http.requests import caller_name, refuse_empty_segments
from stele.service.registry import Registry
from stele.service.usage import Usage

__all__ = ["CONTENT_TYPE", "MEDIA_TYPE", "SEGMENTS", "ConfluentOptions", "HotSchemas", "application"]

SEGMENTS = (
    "subjects",
    "subjects:import",
    "schemas",
    "config",
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
"""Beginnings of the paths that are answered here."""

_SINCE_8 = (*routes_associations.ROUTES, *routes_schemas.BY_GUID, routes_root.delete_context)
"""What releases before 8.0 do not have: their profile answers 404."""

CONTENT_TYPE = MEDIA_TYPE.encode()
"""Header value of answers to clients that accept anything."""


def application(registry: Registry, options: ConfluentOptions | None = None, **settings: Any) -> Litestar:
    """The dialect as an application of its own. settings go to Litestar as they are."""
    options = options or ConfluentOptions()
    office = Office(registry, options, GuidIndex(), Usage(registry))

    def desk(request: Request[Any, Any, Any]) -> Desk:
        return Desk(office, caller_name(request))

    modules = (
        routes_root,
        routes_schemas,
        routes_subjects,
        routes_versions,
        routes_settings,
        routes_associations,
        routes_keks,
        routes_deks,
        routes_exporters,
        routes_import,
        routes_acls,
    )
    unknown = {id(handler) for handler in _SINCE_8} if options.profile == OLD else set()
    return DialectApplication(
        route_handlers=[handler for module in modules for handler in module.ROUTES if id(handler) not in unknown],
        dependencies={"desk": Provide(desk, sync_to_thread=False)},
        exception_handlers={Exception: answer(options)},
        middleware=[refuse_empty_segments, conventions],
        openapi_config=openapi_config("confluent", "Stele: Confluent dialect", options.release),
        request_max_body_size=options.max_request_bytes,
        logging_config=None,
        **settings,
    )
