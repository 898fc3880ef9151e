"""Stele's own API, below `/api`: typed, documented, with one shape for every error.

Here: the stateless check of schemas, policies, the rulesets verdicts come from, and what else can be made of a schema.
The rest joins as further route modules.
"""

from __future__ import annotations

from typing import Any

from litestar import Litestar

from stele import __version__
from stele.apis.http.application import DialectApplication
from stele.apis.http.openapi import openapi_config
from stele.apis.native import (
    routes_check,
    routes_convert,
    routes_diff,
    routes_journal,
    routes_lint,
    routes_policies,
    routes_rulesets,
    routes_usage,
)
from stele.apis.native.faults import answer
from stele.service.registry import Registry

__all__ = ["application"]


def application(registry: Registry, *, max_request_bytes: int = 16 * 1024 * 1024, **settings: Any) -> Litestar:
    """The API as an application of its own. settings go to Litestar as they are."""
    return DialectApplication(
        route_handlers=[
            routes_check.checking(registry),
            routes_diff.comparing(registry),
            routes_lint.linting(registry),
            *routes_rulesets.routes(registry),
            *routes_policies.routes(registry),
            *routes_convert.routes(registry),
            *routes_journal.routes(registry),
            *routes_usage.routes(registry),
        ],
        exception_handlers={Exception: answer},
        openapi_config=openapi_config("native", "Stele", __version__),
        request_max_body_size=max_request_bytes,
        logging_config=None,
        **settings,
    )
