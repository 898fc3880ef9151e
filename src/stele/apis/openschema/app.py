"""Builds the application of the dialect."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any

from litestar import Request
from litestar.di import Provide
from litestar.params import QueryParameter

from stele.apis.http.access import get_app_state, parse_single
from stele.apis.http.application import DialectApplication, RegistryApplication, openapi_config
from stele.apis.http.media_types import negotiate_media_types
from stele.apis.http.requests import decode_segment, refuse_empty_segments
from stele.apis.openschema.errors import handle_error
from stele.apis.openschema.models import MEDIA_TYPE
from stele.apis.openschema.operations import AppState, Operations
from stele.apis.openschema.options import OpenSchemaOptions
from stele.apis.openschema.routes import ROUTES
from stele.apis.openschema.translate import requested_namespace
from stele.core.access import Resource, subject_resource
from stele.core.model import DEFAULT_NAMESPACE, SubjectKey
from stele.service.registry import Registry

NAME = "openschema"
"""Name of the dialect: in its prefix, its documents and its port."""
SEGMENTS: tuple[str, ...] = ()
"""First segments of paths that only this dialect answers: there are none."""

_RELEASE = "1"
"""Release of the API that the dialect follows."""

Tenant = Annotated[str, QueryParameter(description="tenant; without tenant and namespace, the name is searched in all")]
Namespace = Annotated[str, QueryParameter(description="namespace of the tenant")]


def find_resource(request: Request[Any, Any, Any]) -> Resource:
    """Return the subject that a path and the parameters `tenant` and `namespace` name. Raises `InvalidName`."""
    namespace = requested_namespace(parse_single(request, "tenant"), parse_single(request, "namespace"))
    name = decode_segment(request.path_params["subject"])
    return subject_resource(SubjectKey(DEFAULT_NAMESPACE if namespace is None else namespace, name))


def application(registry: Registry, options: OpenSchemaOptions | None = None) -> RegistryApplication:
    """Return the dialect as an application of its own.

    Args:
        registry: What the application serves.
        options: Options of the dialect; None are the defaults.
    """
    options = options or OpenSchemaOptions()
    return RegistryApplication(_build_application(options), AppState(registry, options))


@lru_cache(maxsize=8)
def _build_application(options: OpenSchemaOptions) -> DialectApplication:
    def provide_operations(
        request: Request[Any, Any, Any], tenant: Tenant = "", namespace: Namespace = ""
    ) -> Operations:
        return Operations(get_app_state(request.scope), requested_namespace(tenant, namespace))

    return DialectApplication(
        route_handlers=ROUTES,
        dependencies={"operations": Provide(provide_operations, sync_to_thread=False)},
        find_resource=find_resource,
        exception_handlers={Exception: handle_error},
        middleware=[refuse_empty_segments, negotiate_media_types({MEDIA_TYPE: 1.0, "application/json": 0.5})],
        openapi_config=openapi_config("openschema", "Stele: OpenSchema dialect", _RELEASE),
        request_max_body_size=options.max_request_bytes,
        logging_config=None,
    )
