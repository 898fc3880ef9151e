"""Endpoints of the dialect."""

from __future__ import annotations

from stele.apis.pravega.routes import encodings, groups, schemas

ROUTES = [*groups.ROUTES, *schemas.ROUTES, *encodings.ROUTES]
"""All endpoints."""
