"""Endpoints of the dialect."""

from __future__ import annotations

from stele.apis.xregistry.routes import collections, registry, schemas

ROUTES = [*registry.ROUTES, *collections.ROUTES, *schemas.ROUTES]
