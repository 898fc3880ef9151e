"""Endpoints of the dialect."""

from __future__ import annotations

from stele.apis.openschema.routes import compatibility, schemas, subjects

ROUTES = [*subjects.ROUTES, *schemas.ROUTES, *compatibility.ROUTES]
"""All endpoints."""
