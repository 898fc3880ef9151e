"""Parameters that endpoints get besides path, query and body."""

from __future__ import annotations

from typing import NamedTuple

from litestar.di import NamedDependency

from stele.apis.native.options import NativeOptions
from stele.service.audit import AuditReader
from stele.service.registry import Registry
from stele.service.usage import Usage


class AppState(NamedTuple):
    """What all requests of an application share."""

    registry: Registry
    options: NativeOptions
    usage: Usage
    audit: AuditReader


InjectedRegistry = NamedDependency[Registry]
"""Parameter `registry` of an endpoint: the registry of the request."""
InjectedState = NamedDependency[AppState]
"""Parameter `app_state` of an endpoint: the state that all requests share."""
